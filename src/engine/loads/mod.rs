//! The hot loads of chosen functions of a command: their access patterns, and which caches serve them.
//!
//! | file | concern |
//! |---|---|
//! | `sites` | the loads and stores of the blocks that are entered most often, and a run that times loads |
//! | `heap` | where the memory was allocated |
//! | `rows` | all that as rows of the document |
//!
//! Each kind of record has a run of its own: probes of one would be part of what the other sees. The run here records
//! addresses and values of loads, addresses of stores, and what memory is allocated meanwhile.

mod heap;
mod rows;
mod sites;

use crate::subject::{self, Places, Subject};
use heap::{Allocators, Found, found};
use loads::pattern::{Classified, Event, Load, classify};
use probe::bursts::{Pace, Recorded};
use probe::count::{Counts, Wanted};
use probe::facts::Function;
use probe::plan::{Request, What};
use report::documents::Purpose;
use report::documents::count::{AllocationSite, Cost, LoadRow, TimerRow};
use sites::Sites;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tma::Result;

/// Results of the runs.
pub(crate) struct Loads {
    /// The loads, those executed most often first.
    pub rows: Vec<LoadRow>,
    /// The stores, which are not timed.
    pub stores: Vec<LoadRow>,
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
) -> Result<Loads> {
    let wanted: Vec<Wanted> = functions.iter().map(|(_, wanted)| (*wanted).clone()).collect();
    let mut sites = Sites::new(counts, &wanted, only);
    // Allocations are looked for in no file where they are not wanted.
    let files = if only.is_some() { &BTreeSet::new() } else { &counts.files };
    let (classes, heap, recorded) = run(subject, &wanted, files, &mut sites, only.is_some())?;
    let mut cost = vec![subject.cost(Purpose::Addresses, &recorded)];
    let mut notes = sites.notes();
    notes.extend(subject::notes(Purpose::Addresses, &recorded));
    notes.extend(heap.notes);
    let mut interrupted = recorded.interrupted;
    let mut timed = None;
    if interrupted.is_none() {
        match sites::run(subject, &wanted, &sites, only.is_some())? {
            Ok((found, recorded)) => {
                cost.push(subject.cost(Purpose::Latencies, &recorded));
                notes.extend(subject::notes(Purpose::Latencies, &recorded));
                interrupted = recorded.interrupted;
                timed = Some(found);
            }
            Err(why) => notes.push(format!("latencies: {why}")),
        }
    }
    let (mut of, timed) = (heap.of, timed.as_ref());
    let mut seen = rows::Seen { classes: &classes, memory: &mut of, timed };
    let mut row = |are_stores| rows::rows(functions, &sites, &mut seen, are_stores);
    let (rows, stores) = (row(false), row(true));
    let timer = timed.and_then(rows::timer);
    let allocation_sites = heap.sites;
    Ok(Loads { rows, stores, allocation_sites, timer, cost, notes, interrupted })
}

/// Bursts of 8,192 records, at most 128 of them: an address and a value for each execution.
const PACE: Pace = Pace { length: 1 << 13, bursts: 128, pause: 1.0 };
/// [`PACE`] for a run that is to take not much longer than without.
const SHORT: Pace = Pace { pause: 4.0, ..PACE };
/// Pages as a power of two in which the stack of one thread is taken to lie: those of different threads
/// are 8 MiB apart (glibc's default).
const STACK: u32 = 9;

/// Records in processes that have code of these files, and finds the loads, their classes and what memory they read.
fn run(
    subject: &mut Subject<'_>,
    wanted: &[Wanted],
    files: &BTreeSet<PathBuf>,
    sites: &mut Sites,
    is_short: bool,
) -> Result<(Vec<Option<Classified>>, Found, Recorded)> {
    let allocators = Allocators::new(files, wanted);
    let requests = |number: usize, function: &Function| -> Vec<Request> {
        let own = sites.add(number, function).into_iter();
        let loads = own.flat_map(|(load, is_store)| {
            let value = What::Value { width: load.width };
            let is_read = !is_store && load.has_value();
            let value = is_read.then_some(Request { at: load.at, what: value });
            [Some(Request { at: load.at, what: What::Address }), value].into_iter().flatten()
        });
        allocators.request(number).into_iter().chain(loads).collect()
    };
    let recorded =
        subject.record(&allocators.wanted, &requests, if is_short { SHORT } else { PACE })?;
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
    let loads: Vec<Load> = all
        .iter()
        .map(|site| Load { width: site.load.width, origins: site.origins.clone() })
        .collect();
    let heap = found(&recorded, &of, &allocators);
    Ok((classify(&loads, &events(&recorded, &of)), heap, recorded))
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
