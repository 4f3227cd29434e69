//! The hot loads of chosen functions of a command: their access patterns, and which caches serve them.
//!
//! | file | concern |
//! |---|---|
//! | `contention` | the cache lines that threads contend for |
//! | `sites` | the loads and stores of the blocks that are entered most often, and a run that times loads |
//! | `heap` | where the memory was allocated |
//!
//! All that becomes rows of the document here.
//!
//! Each kind of record has a run of its own: probes of one would be part of what the other sees. The run here records
//! addresses and values of loads, addresses of stores, and what memory is allocated meanwhile.

mod contention;
mod heap;
mod sites;

use crate::recorded_loads::fields::Fields;
use crate::steps::{self, Places, Subject};
use heap::{Allocators, Found, found};
use loads::class::Class;
use loads::latency::{Level, Unmeasured, limits, shares};
use loads::pattern::{Classified, Event, Load, classify};
use probe::bursts::{Pace, Recorded};
use probe::count::{Counts, Wanted};
use probe::facts::Function;
use probe::plan::{Request, What};
use report::documents::Purpose;
use report::documents::count::{
    AllocationSite, ContendedLine, Cost, LevelMean, LevelShare, LoadClass, LoadLatency, LoadMemory,
    LoadRow, TimerRow,
};
use sites::{Latencies, NoLatencies, STACK, Site, Sites, Timing};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tma::Address;

/// Results of the runs.
pub(crate) struct Loads {
    /// The loads, those executed most often first.
    pub rows: Vec<LoadRow>,
    /// The stores, which are not timed.
    pub stores: Vec<LoadRow>,
    /// The cache lines that threads contend for.
    pub contended: Vec<ContendedLine>,
    /// Where the memory that they read was allocated.
    pub allocation_sites: Vec<AllocationSite>,
    /// The latencies that theirs were compared with.
    pub timer: Option<TimerRow>,
    /// Times of the runs.
    pub cost: Vec<Cost>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// The signal that interrupted a run.
    pub interrupted: Option<i32>,
}

/// Records twice more, for the loads of these functions (with their names), whose blocks were counted; only for those
/// of some code, without allocations, and for not much longer than the run itself, where `only` says so.
///
/// # Errors
/// As [`Subject::record`].
pub(crate) fn loads(
    subject: &mut Subject<'_>,
    functions: &[(&str, &Wanted)],
    counts: &Counts,
    only: Option<&Places>,
) -> tma::Result<Loads> {
    let asked = Asked::new(functions, counts, only);
    let requests = |number: usize, function: &Function| asked.requests(number, function);
    let recorded = match &asked.allocators {
        Some(all) => subject.record(&all.wanted, &requests, PACE)?,
        None => subject.record(&asked.wanted, &requests, SHORT)?,
    };
    let mut cost = vec![subject.cost(Purpose::Addresses, &recorded)];
    let mut notes: Vec<String> = steps::notes(Purpose::Addresses, &recorded).collect();
    let mut interrupted = recorded.interrupted;
    let mut timed = None;
    if interrupted.is_none() {
        match asked.timing(subject.plain.filter(|_| only.is_some()), 1.0) {
            Ok(timing) => {
                let requests = |number: usize, _: &Function| timing.requests(number);
                let recorded = subject.record(&asked.wanted, &requests, timing.pace)?;
                cost.push(subject.cost(Purpose::Latencies, &recorded));
                notes.extend(steps::notes(Purpose::Latencies, &recorded));
                interrupted = recorded.interrupted;
                timed = Some(timing.read(&recorded));
            }
            Err(why) => timed = Some(Err(why)),
        }
    }
    let found = asked.read(functions, &recorded, timed);
    notes.extend(found.notes);
    Ok(Loads { cost, notes, interrupted, ..found })
}

/// The loads and stores to record.
pub(crate) struct Asked {
    pub wanted: Vec<Wanted>,
    sites: Sites,
    /// Where memory is allocated, if that is asked for.
    allocators: Option<Allocators>,
}

impl Asked {
    /// Of these functions; only in `only` this code, without allocations, if it is given.
    pub fn new(functions: &[(&str, &Wanted)], counts: &Counts, only: Option<&Places>) -> Self {
        let wanted: Vec<Wanted> = functions.iter().map(|(_, wanted)| (*wanted).clone()).collect();
        let allocators = only.is_none().then(|| Allocators::new(&counts.files, &wanted));
        Self { sites: Sites::new(counts, &wanted, only), wanted, allocators }
    }

    /// Addresses and values in a function, by its number.
    pub fn requests(&self, number: usize, function: &Function) -> Vec<Request> {
        let own = self.sites.add(number, function).into_iter();
        let loads = own.flat_map(|(load, is_store)| {
            let value = What::Value { width: load.width };
            let is_read = !is_store && load.has_value();
            let value = is_read.then_some(Request { at: load.at, what: value });
            [Some(Request { at: load.at, what: What::Address }), value].into_iter().flatten()
        });
        self.allocators.iter().filter_map(|all| all.request(number)).chain(loads).collect()
    }

    /// How the loads of all [`requests`](Self::requests) are timed; `share` of their executions are in windows.
    ///
    /// # Errors
    /// Why latencies say nothing here.
    pub fn timing(&self, plain: Option<f64>, share: f64) -> Result<Timing, NoLatencies> {
        Timing::new(&self.sites, plain, share)
    }

    /// The loads as rows, from their addresses and latencies.
    pub fn read(
        mut self,
        functions: &[(&str, &Wanted)],
        recorded: &Recorded,
        timed: Option<Result<Latencies, NoLatencies>>,
    ) -> Loads {
        let mut notes = self.sites.notes();
        let of = observed(&mut self.sites, recorded);
        let (classes, heap) = classes(&mut self.sites, &of, self.allocators.as_ref(), recorded);
        let contended = contention::lines(functions, &self.sites.read(), recorded, &of);
        notes.extend(heap.notes);
        let timed = timed.and_then(|timed| {
            let found = timed.map_err(|why| notes.push(format!("latencies: {why}")));
            found.ok()
        });
        let (mut of, timed) = (heap.of, timed.as_ref());
        let mut seen = Seen { classes: &classes, memory: &mut of, timed };
        let mut row = |are_stores| rows(functions, &self.sites, &mut seen, are_stores);
        let (loads, stores) = (row(false), row(true));
        let timer = timed.and_then(timer);
        let allocation_sites = heap.sites;
        let (cost, interrupted) = (Vec::new(), recorded.interrupted);
        Loads { rows: loads, stores, contended, allocation_sites, timer, cost, notes, interrupted }
    }
}

/// Bursts of 8,192 records, at most 128 of them: an address and a value for each execution.
const PACE: Pace = Pace { length: 1 << 13, bursts: 128, pause: 1.0 };
/// [`PACE`] for a run that is to take not much longer than without.
const SHORT: Pace = Pace { pause: 4.0, ..PACE };

/// The site of each observed instruction; sites note why they were not observed.
fn observed(sites: &mut Sites, recorded: &Recorded) -> Vec<Option<usize>> {
    let all = sites.all();
    let number: BTreeMap<(usize, u64), usize> =
        all.iter().enumerate().map(|(n, site)| ((site.function, site.load.at), n)).collect();
    let of: Vec<Option<usize>> = recorded
        .observed
        .iter()
        .map(|o| number.get(&(o.function, o.request.at)).copied())
        .collect();
    for (observed, site) in recorded.observed.iter().zip(&of) {
        let is_load = !matches!(observed.request.what, What::Allocated { .. });
        if let (Some(why), Some(site), true) = (&observed.refused, site, is_load) {
            all[*site].refused = Some(why.to_string());
        }
    }
    of
}

/// The classes of the loads, and what memory they read; `of` has the sites of observed instructions.
fn classes(
    sites: &mut Sites,
    of: &[Option<usize>],
    allocators: Option<&Allocators>,
    recorded: &Recorded,
) -> (Vec<Option<Classified>>, Found) {
    let all = sites.all();
    let loads: Vec<Load> = all
        .iter()
        .map(|site| Load { width: site.load.width, origins: site.origins.clone() })
        .collect();
    let heap = allocators.map(|all| found(recorded, of, all)).unwrap_or_default();
    (classify(&loads, &events(recorded, of)), heap)
}

/// The executions of each thread and function in each burst: other functions' are not needed to tell
/// where an address comes from.
fn events(recorded: &Recorded, of: &[Option<usize>]) -> Vec<Vec<Event>> {
    let mut found = Vec::new();
    for burst in &recorded.bursts {
        let mut own: BTreeMap<(u32, usize), Vec<Event>> = BTreeMap::new();
        for record in &burst.records {
            let site = record.site as usize;
            let (Some(observed), Some(Some(load))) = (recorded.observed.get(site), of.get(site))
            else {
                continue;
            };
            let events = own.entry((record.stack >> STACK, observed.function)).or_default();
            match observed.request.what {
                What::Address => {
                    events.push(Event { load: *load, address: record.value, value: None });
                }
                // After its address, unless the burst begins between the two.
                What::Value { .. } => match events.last_mut() {
                    Some(last) if last.load == *load => last.value = Some(record.value),
                    _ => {}
                },
                _ => {}
            }
        }
        found.extend(own.into_values());
    }
    found
}

/// Nanoseconds that no load from memory takes: an interrupt or a page fault came between.
const MOST: f64 = 5_000.0;

/// Recorded data of the loads and stores, by number of their site.
struct Seen<'a> {
    classes: &'a [Option<Classified>],
    memory: &'a mut BTreeMap<usize, LoadMemory>,
    timed: Option<&'a Latencies>,
}

/// The loads, or the stores, those executed most often first.
fn rows(
    functions: &[(&str, &Wanted)],
    sites: &Sites,
    seen: &mut Seen,
    are_stores: bool,
) -> Vec<LoadRow> {
    let all = sites.read();
    let mut order: Vec<usize> = (0..all.len()).filter(|n| all[*n].is_store == are_stores).collect();
    order.sort_by_key(|number| (std::cmp::Reverse(all[*number].executions), all[*number].load.at));
    let mut programs: HashMap<&Path, Fields> = HashMap::new();
    let mut row = |number: usize| {
        let site = &all[number];
        let (name, wanted) = functions[site.function];
        let mut row = LoadRow {
            module: wanted.path.display().to_string(),
            function: name.to_owned(),
            address: Address(site.load.at),
            instruction: site.text.clone(),
            field: fields(&mut programs, &wanted.path, site.load.at),
            executions: Some(site.executions),
            memory: seen.memory.remove(&number),
            reasons: site.refused.iter().cloned().collect(),
            ..LoadRow::default()
        };
        match seen.classes.get(number).and_then(Option::as_ref) {
            Some(found) => row.class = Some(class(&all, found)),
            None if row.reasons.is_empty() => {
                row.reasons.push("addresses: too few executions were recorded".to_owned());
            }
            None => {}
        }
        if let (Some(timed), false) = (seen.timed, are_stores) {
            time(&mut row, timed, number, site);
        }
        row
    };
    order.into_iter().map(&mut row).collect()
}

/// The operand of an instruction in the source.
fn fields<'a>(
    programs: &mut HashMap<&'a Path, Fields>,
    path: &'a Path,
    address: u64,
) -> Option<String> {
    let program = programs.entry(path).or_insert_with(|| Fields::of(path));
    program.at(address).map(|field| field.text)
}

fn class(all: &[Site], found: &Classified) -> LoadClass {
    let class = words(all, &found.class);
    LoadClass {
        stride: class.stride.or(found.stride),
        steps: found.steps.map(|(same, _)| same),
        breaks: found.steps.map(|(_, other)| other),
        windows: found.windows,
        share: found.agree as f64 / found.windows.max(1) as f64,
        ..class
    }
}

fn words(all: &[Site], class: &Class) -> LoadClass {
    let kind = || LoadClass { kind: class.kind(), ..LoadClass::default() };
    let at = |of: usize| all.get(of).map(|site| Address(site.load.at));
    match class {
        Class::Constant | Class::UnknownStride | Class::Complex { .. } | Class::Irregular => kind(),
        Class::Stride(stride) => LoadClass { stride: Some(*stride), ..kind() },
        Class::Chase { scale: 1, offset } => {
            LoadClass { scale: Some(1), offset: near(*offset), ..kind() }
        }
        // The offset is the address of an array.
        Class::Chase { scale, .. } => LoadClass { scale: Some(*scale), ..kind() },
        Class::OffsetOfChase { of, offset } => {
            LoadClass { of: at(*of), offset: near(*offset), ..kind() }
        }
        Class::IndirectDelta { of } => LoadClass { of: at(*of), ..kind() },
        Class::Indirect { of, scale, inner } => LoadClass {
            of: at(*of),
            scale: Some(*scale),
            inner: Some(Box::new(words(all, inner))),
            ..kind()
        },
    }
}

/// Offsets beyond this are addresses of this run: the loaded value is an index on a base.
const FAR: u64 = 1 << 31;

fn near(offset: i64) -> Option<i64> {
    Some(offset).filter(|offset| offset.unsigned_abs() < FAR)
}

/// Adds the latency and the levels.
fn time(row: &mut LoadRow, timed: &Latencies, number: usize, site: &Site) {
    let Some(ticks) = timed.of.get(&number) else {
        let why = timed.refused.get(&number).cloned();
        let why = why.or_else(|| Some(site.load.untimed?.to_string()));
        let why = why.unwrap_or_else(|| Unmeasured::Load.to_string());
        row.reasons.push(format!("latency: {why}"));
        row.reasons.dedup();
        return;
    };
    // A word in the first cache, timed right before, takes as much more than nothing as on its own.
    let floor = ticks.near.usual().unwrap_or(0.0) - first(timed);
    let ns = |ticks: f64| (ticks - floor).max(0.0) / timed.ticks_per_ns;
    let usual = ticks.load.below((MOST * timed.ticks_per_ns) as u32);
    let quantile = |share: f64| ns(f64::from(usual.quantile(share).unwrap_or(0)));
    row.latency = Some(LoadLatency {
        samples: usual.total(),
        interrupted: ticks.load.total() - usual.total(),
        mean: ns(usual.mean().unwrap_or(0.0)),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
    });
    match shares(ticks, &timed.calibrations) {
        Err(why) => row.reasons.push(format!("levels: {why}")),
        Ok(found) => {
            let mut before = 0.0;
            row.levels = found
                .into_iter()
                .map(|one| {
                    let middle = before + one.share / 2.0;
                    before += one.share;
                    LevelShare {
                        level: one.level,
                        share: one.share,
                        low: one.low,
                        high: one.high,
                        latency: (one.share > 0.0).then(|| quantile(middle)),
                    }
                })
                .collect();
        }
    }
}

/// Ticks of a load from the first cache.
fn first(timed: &Latencies) -> f64 {
    let (near, none) = (timed.near.usual(), timed.none.usual());
    near.zip(none).map_or(0.0, |(near, none)| (near - none).max(0.0))
}

/// The latencies that those of the program were compared with.
fn timer(timed: &Latencies) -> Option<TimerRow> {
    let limits = limits(timed.calibrations.first()?).ok()?;
    let first = first(timed);
    let ns = |ticks: f64| ticks / timed.ticks_per_ns;
    let cache = |(level, mean): (Level, f64)| LevelMean { level, mean: ns(mean + first) };
    let near = timed.near.usual().unwrap_or(0.0);
    Some(TimerRow {
        ticks_per_ns: timed.ticks_per_ns,
        step: timed.step,
        floor: timed.none.usual().unwrap_or(0.0),
        caches: limits.means().map(cache).collect(),
        memory: ns(f64::from(limits.memory) - near + first),
        assumed: limits.assumed.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_run_are_no_offsets() {
        let offset = |offset| words(&[], &Class::OffsetOfChase { of: 0, offset }).offset;
        assert_eq!((offset(-24), offset(94_489_509_548_037)), (Some(-24), None));
        assert_eq!(offset(i64::MIN), None);
        let chase = Class::Chase { scale: 1, offset: 94_489_509_548_037 };
        assert_eq!(words(&[], &chase).offset, None);
    }
}
