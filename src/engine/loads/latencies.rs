//! A run that times single executions of loads, and loads of known levels on this host.

use super::sites::{Site, Sites};
use crate::subject::Subject;
use loads::latency::{Calibration, Histogram, Level, Timed, granularity};
use probe::bursts::{Pace, Recorded};
use probe::count::Wanted;
use probe::emit::{MOST_BITS, MOST_TIMED};
use probe::facts::Function;
use probe::plan::{Request, What};
use std::collections::BTreeMap;
use std::fmt;
use tma::{Error, Result};
use workload::{Fenced, Triple, fenced_loads};

/// Timed executions of a load, about.
const TIMED: u64 = 4096;
/// Timed executions a second, where [`TIMED`] would take longer than half of the run, as each takes about 1.5 µs.
const A_SECOND: f64 = 3e5;
/// Timed executions of a load at least.
const FEWEST: u64 = 256;
/// Most records in all: 16 MiB.
const RECORDS: u64 = 1 << 20;
/// Executions of a load from which on it is timed in bursts at random times, which cost little between them: their
/// number, and records of each at least. Other loads would be timed too densely.
const OFTEN: u64 = 1 << 26;
const BURSTS: u64 = 32;
const LEAST: u64 = 256;
/// Length of pauses as a multiple of bursts. With what timing costs, one in about [`INSIDE`] executions is in a burst.
const PAUSE: f64 = 3.0;
const INSIDE: u64 = 8;
/// Bits of executions to the next one that is timed, at least, where there are enough of them: fences before each
/// would delay all.
const SPARSE: u8 = 8;

/// Latencies of loads.
pub(super) struct Latencies {
    /// By site, in ticks.
    pub of: BTreeMap<usize, Timed>,
    /// Ticks of the fences without a load on this host.
    pub none: Histogram,
    /// Ticks of a load from the first cache there.
    pub near: Histogram,
    /// Why a site was not timed.
    pub refused: BTreeMap<usize, String>,
    /// Loads of known levels, before and after.
    pub calibrations: Vec<Calibration>,
    /// Ticks of the counter in a nanosecond.
    pub ticks_per_ns: f64,
    /// The step of the counter.
    pub step: u32,
}

/// Why latencies say nothing here.
pub(super) enum NoLatencies {
    /// Loads of known levels cannot be timed on this host.
    Host(Error),
    /// Loads of known levels could be timed before the run, but not after it.
    Gone,
}

impl fmt::Display for NoLatencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => error.fmt(f),
            Self::Gone => f.write_str("the caches have gone"),
        }
    }
}

/// Times the loads; or the reason why latencies say nothing here.
pub(super) fn run(
    subject: &mut Subject<'_>,
    wanted: &[Wanted],
    sites: &Sites,
    is_short: bool,
) -> Result<std::result::Result<(Latencies, Recorded), NoLatencies>> {
    let before = match fenced_loads() {
        Ok(found) => found,
        Err(error) => return Ok(Err(NoLatencies::Host(error))),
    };
    let all = sites.read();
    let mut chosen: Vec<usize> = (0..all.len()).filter(|number| is_timed(&all[*number])).collect();
    chosen.sort_by_key(|number| std::cmp::Reverse(all[*number].executions));
    chosen.truncate(MOST_TIMED as usize);
    let executions = || chosen.iter().map(|number| all[*number].executions);
    let (timed, often) = match subject.plain.filter(|_| is_short) {
        Some(plain) => {
            (timed(plain, chosen.len()), OFTEN.min(timed(plain, chosen.len()) << MOST_BITS))
        }
        None => (TIMED, OFTEN),
    };
    let inside = if executions().any(|n| n >= often) { INSIDE } else { 1 };
    let bits = |executions| bits(executions, inside, timed);
    let expected = executions().map(|n| (n / inside) >> (bits(n) - 1)).sum();
    let pace = pace(expected, inside);
    let number: BTreeMap<(usize, u64), usize> =
        chosen.iter().map(|n| ((all[*n].function, all[*n].load.at), *n)).collect();
    let requests = |function: usize, _: &Function| -> Vec<Request> {
        let own = number.range((function, 0)..=(function, u64::MAX));
        own.map(|(_, site)| {
            let Site { load, executions, .. } = &all[*site];
            let what = What::Latency { width: load.width, bits: bits(*executions) };
            Request { at: load.at, what }
        })
        .collect()
    };
    let recorded = subject.record(wanted, &requests, pace)?;
    let Ok(after) = fenced_loads() else { return Ok(Err(NoLatencies::Gone)) };
    let known =
        || [&before, &after].into_iter().flat_map(|one| one.levels.iter().flat_map(|l| &l.1));
    let mut found = Latencies {
        of: BTreeMap::new(),
        none: known().map(|one| one.none).collect(),
        near: known().map(|one| one.near).collect(),
        refused: BTreeMap::new(),
        ticks_per_ns: f64::midpoint(before.ticks_per_ns, after.ticks_per_ns),
        calibrations: [&before, &after].map(calibration).to_vec(),
        step: 0,
    };
    let mut ticks: BTreeMap<usize, Vec<(u32, u32)>> = BTreeMap::new();
    let site = |index: usize| {
        let observed = recorded.observed.get(index)?;
        number.get(&(observed.function, observed.request.at)).copied()
    };
    for record in recorded.bursts.iter().flat_map(|burst| &burst.records) {
        if let Some(site) = site(record.site as usize) {
            ticks.entry(site).or_default().push(((record.value >> 32) as u32, record.value as u32));
        }
    }
    for (index, observed) in recorded.observed.iter().enumerate() {
        if let (Some(why), Some(site)) = (&observed.refused, site(index)) {
            found.refused.insert(site, why.to_string());
        }
    }
    found.of = ticks.into_iter().map(|(site, all)| (site, Timed::of(all))).collect();
    let known = found.calibrations.iter().flat_map(|one| one.levels.iter().map(|(_, all)| all));
    found.step = granularity(known.chain(found.of.values()).flat_map(Timed::all));
    found.calibrations.iter_mut().for_each(|one| one.step = found.step);
    Ok(Ok((found, recorded)))
}

fn is_timed(site: &Site) -> bool {
    site.load.untimed.is_none()
}

/// The pace of timing `expected` executions, of one in `inside` of all.
fn pace(expected: u64, inside: u64) -> Pace {
    let several = Pace {
        length: (expected / BURSTS).clamp(LEAST, RECORDS / BURSTS) as usize,
        bursts: BURSTS as usize,
        pause: PAUSE,
    };
    let whole = (expected + expected / 4).clamp(TIMED, RECORDS) as usize;
    if inside > 1 { several } else { Pace { length: whole, bursts: 4, pause: 0.0 } }
}

/// The timed executions of each of `loads` loads of a run of this many seconds.
fn timed(seconds: f64, loads: usize) -> u64 {
    ((seconds * A_SECOND / loads.max(1) as f64) as u64).clamp(FEWEST, TIMED)
}

/// Bits of the number of executions from one that is timed to the next, where one in `inside` may be: half of that on
/// average.
fn bits(executions: u64, inside: u64, timed: u64) -> u8 {
    let most = |inside: u64| (2 * executions / inside / timed).max(2).ilog2() as u8;
    most(inside).max(most(1).min(SPARSE)).clamp(1, MOST_BITS)
}

fn calibration(of: &Fenced) -> Calibration {
    let level = |(number, all): &(u8, Vec<Triple>)| {
        let level = if *number == 0 { Level::Memory } else { Level::Cache(*number) };
        (level, Timed::of(all.iter().map(|one| (one.near, one.load))))
    };
    Calibration { step: 0, levels: of.levels.iter().map(level).collect() }
}
