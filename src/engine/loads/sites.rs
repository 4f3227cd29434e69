//! The loads and stores of the blocks that are entered most often, and a run that times single executions of loads,
//! with loads of known levels on this host for comparison.

use crate::steps::Places;
use isa::code::text;
use loads::latency::{Calibration, Histogram, Level, Timed, granularity};
use loads::pattern::{Part, origins};
use probe::bursts::{Pace, Recorded};
use probe::count::{Counts, Wanted};
use probe::emit::{MOST_BITS, MOST_TIMED};
use probe::facts::Function;
use probe::plan::{Load, Request, What, loads, stores};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use tma::Error;
use workload::{Fenced, Triple, fenced_loads};

/// The blocks that are analysed have this share of the executed instructions of their function: of a
/// slow load there may be few in the whole program.
const SHARE: f64 = 0.99;
/// Most blocks that are analysed.
const MOST: usize = 400;

/// Pages as a power of two in which the stack of one thread is taken to lie: those of different threads
/// are 8 MiB apart (glibc's default).
pub(super) const STACK: u32 = 9;

/// One load or store.
pub(super) struct Site {
    /// Its function, in the order of the request.
    pub function: usize,
    pub load: Load,
    /// Whether it only stores: its addresses are recorded, and nothing else.
    pub is_store: bool,
    /// The instruction.
    pub text: String,
    /// How often it was executed.
    pub executions: u64,
    /// The loads that its address may be computed from.
    pub origins: Vec<usize>,
    /// Why it was not observed, if so.
    pub refused: Option<String>,
}

/// The loads and stores of a run.
pub(super) struct Sites {
    /// Function and block → entries.
    hot: BTreeMap<(usize, u64), u64>,
    /// Whether other blocks were entered, too, that could have been analysed.
    is_part: bool,
    all: RefCell<Vec<Site>>,
}

impl Sites {
    /// None yet; the counts of all blocks say which are analysed, of `only` this code if it is given.
    pub fn new(counts: &Counts, wanted: &[Wanted], only: Option<&Places>) -> Self {
        let mut chosen = Vec::new();
        let mut entered = 0;
        for (function, found) in counts.functions.iter().enumerate() {
            let mut blocks = Vec::new();
            for block in found.iter().flat_map(|found| &found.blocks) {
                let own = || only.zip(wanted.get(function)).and_then(|(all, of)| all.get(&of.path));
                let is_in = |range: &Range<u64>| range.start < block.end && block.start < range.end;
                let is_one = only.is_none() || own().is_some_and(|ranges| ranges.iter().any(is_in));
                if let (Ok(count @ 1..), true) = (&block.count, is_one) {
                    blocks.push((*count, (function, block.start), block.instructions as u64));
                }
            }
            entered += blocks.len();
            chosen.extend(most_executed(blocks));
        }
        chosen.sort_unstable_by(|a, b| b.cmp(a));
        chosen.truncate(MOST);
        let hot: BTreeMap<_, _> = chosen.into_iter().map(|(count, block)| (block, count)).collect();
        Self { is_part: hot.len() < entered, hot, all: RefCell::default() }
    }

    /// Adds the loads and stores of a function; those that are observed, and whether they store.
    pub fn add(&self, number: usize, function: &Function) -> Vec<(Load, bool)> {
        let (found, refused) = loads(function);
        let entries = |at: u64| {
            let block = function.blocks.iter().find(|b| (b.start..b.end).contains(&at))?;
            self.hot.get(&(number, block.start)).copied()
        };
        let words = |at: u64| {
            let all = function.blocks.iter().flat_map(|b| &b.instructions);
            all.into_iter().find(|i| i.ip() == at).map_or(String::new(), text)
        };
        let mut all = self.all.borrow_mut();
        let first = all.len();
        for load in found {
            let Some(executions) = entries(load.at) else { continue };
            all.push(Site {
                function: number,
                text: words(load.at),
                load,
                is_store: false,
                executions,
                origins: Vec::new(),
                refused: None,
            });
        }
        let own: Vec<Load> = all[first..].iter().map(|site| site.load.clone()).collect();
        let addresses: Vec<u64> = own.iter().map(|load| load.at).collect();
        let part = |block: &probe::facts::Block| Part {
            instructions: block.instructions.clone(),
            successors: block.successors.clone(),
        };
        if !own.is_empty() {
            let parts: Vec<Part> = function.blocks.iter().map(part).collect();
            let from = origins(&parts, &addresses);
            for (site, from) in all[first..].iter_mut().zip(from) {
                site.origins = from.into_iter().map(|origin| first + origin).collect();
            }
        }
        for (at, why) in refused {
            let Some(executions) = entries(at) else { continue };
            let untimed = Some(why);
            let load = Load { at, width: 0, is_written: false, is_locked: false, untimed };
            all.push(Site {
                function: number,
                load,
                is_store: false,
                text: words(at),
                executions,
                origins: Vec::new(),
                refused: Some(why.to_string()),
            });
        }
        let mut observed: Vec<(Load, bool)> = own.into_iter().map(|load| (load, false)).collect();
        for load in stores(function) {
            let Some(executions) = entries(load.at) else { continue };
            observed.push((load.clone(), true));
            let (text, origins) = (words(load.at), Vec::new());
            let (function, is_store, refused) = (number, true, None);
            all.push(Site { function, load, is_store, text, executions, origins, refused });
        }
        observed
    }

    /// The loads and stores.
    pub fn all(&mut self) -> &mut Vec<Site> {
        self.all.get_mut()
    }

    /// All sites, to read.
    pub fn read(&self) -> std::cell::Ref<'_, Vec<Site>> {
        self.all.borrow()
    }

    /// Limits of the sites.
    pub fn notes(&self) -> Vec<String> {
        let share = SHARE * 100.0;
        let note = format!(
            "loads: those of the blocks with {share:.0} % of the executed instructions of each \
             function, of {MOST} blocks at most"
        );
        if self.is_part { vec![note] } else { Vec::new() }
    }
}

/// The blocks of a function (entries, place, instructions) that are analysed, with their entries.
fn most_executed<P: Ord + Copy>(mut blocks: Vec<(u64, P, u64)>) -> Vec<(u64, P)> {
    blocks.sort_unstable_by(|a, b| b.cmp(a));
    let executed: u64 = blocks.iter().map(|(count, _, length)| count * length).sum();
    let mut sum = 0;
    let is_missing = |(count, _, length): &&(u64, P, u64)| {
        let before = sum as f64;
        sum += count * length;
        before < SHARE * executed as f64
    };
    blocks.iter().take_while(is_missing).map(|(count, place, _)| (*count, *place)).collect()
}

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
pub(crate) struct Latencies {
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
pub(crate) enum NoLatencies {
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

/// How loads are timed, with loads of known levels on this host before.
pub(crate) struct Timing {
    /// The pace of the run, or of all windows together.
    pub pace: Pace,
    /// Function and address → site, and what is asked of it.
    of: BTreeMap<(usize, u64), (usize, What)>,
    before: Fenced,
}

impl Timing {
    /// Of the loads of these sites; for not much longer than the `plain` run, if it is given. `share` of all executions
    /// are where they are timed.
    ///
    /// # Errors
    /// Loads of known levels cannot be timed here.
    pub(super) fn new(sites: &Sites, plain: Option<f64>, share: f64) -> Result<Self, NoLatencies> {
        let before = fenced_loads().map_err(NoLatencies::Host)?;
        let all = sites.read();
        let mut chosen: Vec<usize> = (0..all.len()).filter(|n| is_timed(&all[*n])).collect();
        chosen.sort_by_key(|number| std::cmp::Reverse(all[*number].executions));
        chosen.truncate(MOST_TIMED as usize);
        let within = |number: &usize| (all[*number].executions as f64 * share).ceil() as u64;
        let (timed, often) = match plain {
            Some(plain) => {
                let timed = timed(plain * share, chosen.len());
                (timed, OFTEN.min(timed << MOST_BITS))
            }
            None => (TIMED, OFTEN),
        };
        let inside = if chosen.iter().any(|n| within(n) >= often) { INSIDE } else { 1 };
        let bits = |number: &usize| bits(within(number), inside, timed);
        let expected = chosen.iter().map(|n| (within(n) / inside) >> (bits(n) - 1)).sum();
        let asked = |number: &usize| {
            let Site { function, load, .. } = &all[*number];
            let what = What::Latency { width: load.width, bits: bits(number) };
            ((*function, load.at), (*number, what))
        };
        let of = chosen.iter().map(asked).collect();
        Ok(Self { pace: pace(expected, inside), of, before })
    }

    /// The loads of a function, by its number.
    pub fn requests(&self, function: usize) -> Vec<Request> {
        let own = self.of.range((function, 0)..=(function, u64::MAX));
        own.map(|((_, at), (_, what))| Request { at: *at, what: *what }).collect()
    }

    /// The latencies, with loads of known levels on this host after.
    ///
    /// # Errors
    /// These cannot be timed any more.
    pub fn read(self, recorded: &Recorded) -> Result<Latencies, NoLatencies> {
        let Self { of, before, .. } = self;
        let after = fenced_loads().map_err(|_| NoLatencies::Gone)?;
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
            of.get(&(observed.function, observed.request.at)).map(|(site, _)| *site)
        };
        for record in recorded.bursts.iter().flat_map(|burst| &burst.records) {
            if let Some(site) = site(record.site as usize) {
                let own = ticks.entry(site).or_default();
                own.push(((record.value >> 32) as u32, record.value as u32));
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
        Ok(found)
    }
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
