//! Loads as rows of the document.

use super::sites::{Latencies, Site, Sites};
use crate::recorded_loads::fields::Fields;
use loads::class::Class;
use loads::latency::{Level, Unmeasured, limits, shares};
use loads::pattern::Classified;
use probe::count::Wanted;
use report::documents::count::{
    LevelMean, LevelShare, LoadClass, LoadLatency, LoadMemory, LoadRow, TimerRow,
};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tma::Address;

/// Nanoseconds that no load from memory takes: an interrupt or a page fault came between.
const MOST: f64 = 5_000.0;

/// Recorded data of the loads and stores, by number of their site.
pub(super) struct Seen<'a> {
    pub classes: &'a [Option<Classified>],
    pub memory: &'a mut BTreeMap<usize, LoadMemory>,
    pub timed: Option<&'a Latencies>,
}

/// The loads, or the stores, those executed most often first.
pub(super) fn rows(
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
pub(super) fn timer(timed: &Latencies) -> Option<TimerRow> {
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
