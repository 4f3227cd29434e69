//! Costs of a piece's loads and stores, and of fetching its code: fenced latencies of loads beyond the first cache,
//! lines that streams bring in ahead of time in the fenced run or store to, and how much code is hot.

use super::pieces::{Function, Kind, PieceOf};
use estimate::{Interval, Loads};
use report::documents::count::{self, Count, Level, LoadRow, TimerRow};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Bytes of the first cache and of the second: streams over no more hit them.
const FIRST: f64 = 48e3;
const SECOND: f64 = 1e6;
/// A usual latency of memory, as a multiple of its least.
const MEMORY: f64 = 2.0;

/// The most that unmeasured loads take, as a multiple of the least latency of memory, as they may miss the TLB and wait
/// for others: 185 ns against 55 (a chase over 64 MiB in pages of 4 KiB, Zen 5).
const LOADED: f64 = 5.0;

/// From this multiple of memory's latency on it is far more: another socket's takes some 1.5 to 2 times as long.
const FAR: f64 = 2.5;

/// Loads and stores that have less of what all can cost are not named.
const NAMED: f64 = 0.1;

/// The loads and stores of a piece.
#[derive(Clone, Default)]
pub(super) struct Accesses<'a> {
    pub loads: Vec<&'a LoadRow>,
    pub stores: Vec<&'a LoadRow>,
}

/// The cost of a piece's loads and stores in cycles; `None` if no latencies are known.
pub(super) fn of(accesses: &Accesses, count: &Count, ghz: f64, is_loop: bool) -> Option<Loads> {
    let timer = count.timer.as_ref()?;
    let mut sum = Loads::default();
    for row in &accesses.loads {
        let executions = row.executions.unwrap_or(0) as f64;
        let beyond = beyond(row, timer).times(executions * ghz);
        if !is_known(row) {
            let most = LOADED * timer.memory;
            sum.unknown += row.executions.map_or(f64::INFINITY, |n| n as f64 * most * ghz);
        }
        let is_chase =
            row.class.as_ref().is_some_and(|class| class.kind == count::Kind::PointerChase);
        if is_chase && is_loop {
            sum.carried = sum.carried.plus_alike(beyond);
        }
        let streamed = Interval::exact(streamed(row, timer) * executions * ghz);
        let most = if streamed.high > beyond.high { streamed } else { beyond };
        sum.at_most = sum.at_most.plus_alike(most);
    }
    for row in &accesses.stores {
        let most = streamed(row, timer) * row.executions.unwrap_or(0) as f64 * ghz;
        sum.at_most = sum.at_most.plus_alike(Interval::exact(most));
    }
    Some(sum)
}

/// Whether anything says what a load costs: its latency, or that it reads one address or walks over memory.
fn is_known(row: &LoadRow) -> bool {
    let walks = |kind| matches!(kind, count::Kind::Constant | count::Kind::Stride);
    row.latency.is_some()
        || !row.levels.is_empty()
        || row.executions == Some(0)
        || row.class.as_ref().is_some_and(|class| walks(class.kind))
}

/// Which loads and stores can cost most, with what is known of each; `None` where none costs anything.
pub(super) fn named(accesses: &Accesses, count: &Count) -> Option<String> {
    let timer = count.timer.as_ref()?;
    let mut all: Vec<(f64, String)> = Vec::new();
    for row in &accesses.loads {
        let executions = row.executions.unwrap_or(0) as f64;
        let (missed, streamed) = (beyond(row, timer).value, streamed(row, timer));
        let how = if streamed > missed { STREAM.to_owned() } else { levels(row) };
        all.push((missed.max(streamed) * executions, one(row, &how)));
    }
    for row in &accesses.stores {
        let cost = streamed(row, timer) * row.executions.unwrap_or(0) as f64;
        all.push((cost, one(row, "a stream of stores")));
    }
    let sum: f64 = all.iter().map(|(cost, _)| cost).sum();
    all.retain(|(cost, _)| *cost > NAMED * sum);
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(2);
    let texts: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Nanoseconds that the costliest load takes, and memory, where the former are far more: each was timed alone, so that
/// it waited for no other load, but for the walks of the page table that it needs.
pub(super) fn walks(accesses: &Accesses, count: &Count) -> Option<(f64, f64)> {
    let memory = count.timer.as_ref()?.memory;
    let cost = |row: &&&LoadRow| beyond_first(row, count);
    let costliest = accesses.loads.iter().max_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let mean = costliest.latency.as_ref()?.mean;
    (mean >= FAR * memory).then_some((mean, memory))
}

const STREAM: &str =
    "through more than the cache holds; timed alone, its loads are prefetched in time";

fn one(row: &LoadRow, how: &str) -> String {
    let class = row.class.as_ref();
    let class = class.map_or(String::new(), |class| match class.stride {
        Some(stride) if class.kind == count::Kind::Stride => format!("stride {stride}, "),
        _ => format!("{}, ", class.kind.to_string().replace('_', " ")),
    });
    format!("`{}` at {}: {class}{how}", row.instruction, row.address)
}

fn levels(row: &LoadRow) -> String {
    let level = |one: &count::LevelShare| {
        (one.share >= 0.005).then(|| format!("{} {:.0} %", one.level, 100.0 * one.share))
    };
    row.levels.iter().filter_map(level).collect::<Vec<_>>().join(", ")
}

/// Nanoseconds that all executions of a load take beyond those of a hit in the first cache.
pub(super) fn beyond_first(row: &LoadRow, count: &Count) -> f64 {
    let Some(timer) = &count.timer else { return 0.0 };
    row.executions.unwrap_or(0) as f64 * beyond(row, timer).value
}

/// The mean latency of a level in nanoseconds.
fn mean(timer: &TimerRow, level: Level) -> Option<f64> {
    timer.caches.iter().find(|one| one.level == level).map(|one| one.mean)
}

/// Nanoseconds of an execution beyond those of a hit in the first cache.
fn beyond(row: &LoadRow, timer: &TimerRow) -> Interval {
    let first = mean(timer, Level::L1).unwrap_or(0.0);
    let Some(latency) = &row.latency else { return Interval::default() };
    if row.levels.is_empty() {
        return Interval::new(0.0, 0.0, (latency.mean - first).max(0.0));
    }
    let mut sum = Interval::default();
    for level in row.levels.iter().filter(|level| level.level != Level::L1) {
        // The second cache is known by its mean only: the counter's steps are larger.
        let known = mean(timer, level.level).filter(|_| level.level == Level::L2);
        let own = known.or(level.latency).or_else(|| mean(timer, level.level));
        let more = (own.unwrap_or(timer.memory) - first).max(0.0);
        sum = sum.plus_alike(Interval::new(level.share, level.low, level.high).times(more));
    }
    sum
}

/// Nanoseconds of an execution of a stride over more than the first cache, if nothing brought its lines ahead of it.
fn streamed(row: &LoadRow, timer: &TimerRow) -> f64 {
    let Some(class) = row.class.as_ref().filter(|class| class.kind == count::Kind::Stride) else {
        return 0.0;
    };
    let (Some(stride), Some(steps)) = (class.stride, class.steps) else { return 0.0 };
    let stride = stride.unsigned_abs() as f64;
    let walked = stride * steps as f64 / class.breaks.unwrap_or(0).max(1) as f64;
    let lines = (stride / LINE).min(1.0);
    let first = mean(timer, Level::L1).unwrap_or(0.0);
    if walked <= FIRST {
        return 0.0;
    }
    if walked <= SECOND {
        return lines * (mean(timer, Level::L2).unwrap_or(first) - first).max(0.0);
    }
    lines * MEMORY * timer.memory
}

/// Bytes of a cache line.
const CODE_LINE: u64 = 64;
/// The lines that hold this share of all fetches are hot.
const SHARE: f64 = 0.9;
/// Cycles of a fetch from the second cache and the third, and from memory: the first two as manuals state them for
/// loads (AMD family 1Ah: 14 and about 50; Intel: 14 to 16 and 50 to 75), the last as DRAM takes.
const SECOND_CACHE: (f64, f64) = (1e6, 16.0);
const THIRD_CACHE: (f64, f64) = (32e6, 75.0);
const FROM_MEMORY: f64 = 500.0;
/// Bytes of code that a first-level TLB of 64 pages of 4 KiB maps, as of AMD's Zen cores, and the most cycles of a hit
/// in the second level: as Intel's formula of ITLB misses on Haswell and Broadwell has it (`events/intel/hsw.toml`).
const SECOND_TLB: (f64, f64) = (262_144.0, 14.0);
/// Bytes of the first cache, if the core's is not known: the smallest of current cores.
const SMALLEST_FIRST: f64 = 32e3;

/// The hot code.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Footprint {
    /// Bytes of its lines.
    pub bytes: f64,
    /// Bytes of the first cache.
    pub first: f64,
}

impl Footprint {
    /// Finds the hot lines of functions, each of which stands for this many.
    pub fn of<'a>(
        functions: impl Iterator<Item = (f64, &'a Function)>,
        first: Option<usize>,
    ) -> Self {
        let mut lines: BTreeMap<(&str, u64), (f64, f64)> = BTreeMap::new();
        for (times, function) in functions {
            for block in 0..function.flow.blocks.len() {
                let executed = function.executed(block);
                if executed > 0.0 {
                    for line in lines_of(function, block) {
                        let fetched = lines.entry((&function.module, line)).or_default();
                        *fetched = (fetched.0 + executed, times);
                    }
                }
            }
        }
        let bytes = hot(lines.into_values().collect()) * CODE_LINE as f64;
        Self::with(bytes, first)
    }

    /// With this much hot code.
    pub fn with(bytes: f64, first: Option<usize>) -> Self {
        Self { bytes, first: first.map_or(SMALLEST_FIRST, |bytes| bytes as f64) }
    }

    /// The most cycles that a line costs when it is reached, on average.
    pub fn each(&self) -> FetchCost {
        if self.bytes <= self.first {
            return FetchCost::default();
        }
        let latency = match self.bytes {
            bytes if bytes <= SECOND_CACHE.0 => SECOND_CACHE.1,
            bytes if bytes <= THIRD_CACHE.0 => THIRD_CACHE.1,
            _ => FROM_MEMORY,
        };
        let beyond = |fits: f64| (1.0 - fits / self.bytes).max(0.0);
        FetchCost {
            caches: beyond(self.first) * latency,
            translation: beyond(SECOND_TLB.0) * SECOND_TLB.1,
        }
    }

    /// The most cycles that fetching the code of a piece can cost: each line that does not fit, each time that it is
    /// reached.
    pub fn cost(&self, at: PieceOf) -> FetchCost {
        let PieceOf { function, piece } = at;
        let lines = |block: &usize| lines_of(function, *block).count() as f64;
        let own: f64 = piece.blocks.iter().map(lines).sum();
        let fetched = match (piece.kind, piece.entered) {
            // While it goes around it has its code.
            (Kind::Loop(_), Some(entered)) if own * CODE_LINE as f64 <= self.first => own * entered,
            _ => piece.blocks.iter().map(|block| lines(block) * function.executed(*block)).sum(),
        };
        self.each().times(fetched)
    }
}

/// The most cycles that fetching code can cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct FetchCost {
    /// From beyond the first cache.
    pub caches: f64,
    /// Translating its addresses beyond the first TLB.
    pub translation: f64,
}

impl FetchCost {
    /// That many times.
    pub fn times(self, number: f64) -> Self {
        Self { caches: self.caches * number, translation: self.translation * number }
    }
}

/// The lines that a block is in.
pub(super) fn lines_of(function: &Function, block: usize) -> RangeInclusive<u64> {
    let range = function.range(block);
    range.start / CODE_LINE..=(range.end - 1) / CODE_LINE
}

/// How many lines have most of the fetches: each line with its fetches, and how many it stands for.
fn hot(mut lines: Vec<(f64, f64)>) -> f64 {
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all: f64 = lines.iter().map(|(fetches, times)| fetches * times).sum();
    let mut sum = 0.0;
    let is_missing = |(fetches, times): &&(f64, f64)| {
        let before = sum;
        sum += fetches * times;
        before < SHARE * all
    };
    lines.iter().take_while(is_missing).map(|(_, times)| times).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::{LevelMean, LevelShare, LoadClass, LoadLatency};

    fn count() -> Count {
        let cache = |level, mean| LevelMean { level, mean };
        let caches = vec![cache(Level::L1, 2.0), cache(Level::L2, 5.0)];
        Count {
            timer: Some(TimerRow { caches, memory: 60.0, ..TimerRow::default() }),
            ..Count::default()
        }
    }

    fn row(kind: count::Kind, levels: &[(Level, f64, f64)]) -> LoadRow {
        let level = |(level, share, latency): &(Level, f64, f64)| LevelShare {
            level: *level,
            share: *share,
            low: *share,
            high: *share,
            latency: Some(*latency),
        };
        LoadRow {
            executions: Some(1000),
            class: Some(LoadClass { kind, ..LoadClass::default() }),
            levels: levels.iter().map(level).collect(),
            latency: Some(LoadLatency::default()),
            ..LoadRow::default()
        }
    }

    fn loads(row: &LoadRow) -> Accesses<'_> {
        Accesses { loads: vec![row], ..Accesses::default() }
    }

    /// By hand: 1,000 stores to a line each, of 2 × 60 ns, at 3 GHz.
    #[test]
    fn stores_to_more_than_the_caches_cost_their_lines() {
        let mut store = row(count::Kind::Stride, &[]);
        let class = store.class.as_mut().unwrap();
        (class.stride, class.steps, class.breaks) = (Some(64), Some(500_000), Some(0));
        let all = Accesses { stores: vec![&store], ..Accesses::default() };
        let found = of(&all, &count(), 3.0, true).unwrap();
        assert!((found.at_most.value - 360_000.0).abs() < 1e-6, "{found:?}");
        assert_eq!(named(&all, &count()).unwrap(), "`` at 0x0: stride 64, a stream of stores");
    }

    /// By hand: 1,000 × (0.25 × 3 ns + 0.5 × 100 ns) at 3 GHz.
    #[test]
    fn latencies_beyond_the_first_cache_are_summed() {
        let levels = [(Level::L1, 0.25, 1.0), (Level::L2, 0.25, 9.0), (Level::Memory, 0.5, 102.0)];
        let chase = row(count::Kind::PointerChase, &levels);
        let found = of(&loads(&chase), &count(), 3.0, true).unwrap();
        assert!((found.at_most.value - 152_250.0).abs() < 1e-6, "{found:?}");
        assert_eq!(found.carried, found.at_most);
        let found = of(&loads(&chase), &count(), 3.0, false).unwrap();
        assert_eq!(found.carried, Interval::default());
    }

    /// By hand: 1,000 × 5 × 60 ns at 3 GHz, or any number of times.
    #[test]
    fn what_was_not_measured_of_a_load_may_be_memory() {
        let mut unmeasured = row(count::Kind::PointerChase, &[]);
        unmeasured.latency = None;
        let found = of(&loads(&unmeasured), &count(), 3.0, true).unwrap();
        assert!((found.unknown - 900_000.0).abs() < 1e-6, "{found:?}");
        assert_eq!(found.at_most, Interval::default());
        unmeasured.executions = None;
        assert_eq!(of(&loads(&unmeasured), &count(), 3.0, true).unwrap().unknown, f64::INFINITY);
        // One address stays in the first cache.
        unmeasured.class.as_mut().unwrap().kind = count::Kind::Constant;
        assert_eq!(of(&loads(&unmeasured), &count(), 3.0, true).unwrap(), Loads::default());
    }

    /// The least latency of memory is 60 ns.
    #[test]
    fn loads_that_take_far_longer_than_memory_walk_the_page_table() {
        let of = |mean| {
            let mut one = row(count::Kind::PointerChase, &[(Level::Memory, 1.0, mean)]);
            one.latency.as_mut().unwrap().mean = mean;
            walks(&loads(&one), &count())
        };
        assert_eq!((of(149.0), of(240.0)), (None, Some((240.0, 60.0))));
        assert_eq!(walks(&Accesses::default(), &count()), None);
    }

    /// By hand: half a line for each step of 32 bytes; 2 × 60 ns a line; 32 × 4000 bytes in a row hit L2.
    #[test]
    fn lines_that_come_ahead_of_their_loads_count_as_if_they_did_not() {
        let mut stream = row(count::Kind::Stride, &[(Level::L1, 1.0, 1.0)]);
        let class = stream.class.as_mut().unwrap();
        (class.stride, class.steps, class.breaks) = (Some(-32), Some(500_000), Some(0));
        let found = of(&loads(&stream), &count(), 3.0, true).unwrap();
        assert!((found.at_most.value - 180_000.0).abs() < 1e-6, "{found:?}");
        stream.class.as_mut().unwrap().breaks = Some(125);
        let found = of(&loads(&stream), &count(), 3.0, true).unwrap();
        assert!((found.at_most.value - 4_500.0).abs() < 1e-6, "{found:?}");
        stream.class.as_mut().unwrap().breaks = Some(125_000);
        assert_eq!(of(&loads(&stream), &count(), 3.0, true).unwrap(), Loads::default());
    }

    #[test]
    fn lines_that_are_hardly_fetched_are_not_hot() {
        let each = |times: f64, all: Vec<f64>| hot(all.iter().map(|one| (*one, times)).collect());
        assert_eq!(each(1.0, vec![1.0, 50.0, 50.0, 1.0]), 2.0);
        assert_eq!(each(3.0, vec![1.0; 100]), 270.0);
        assert_eq!(each(1.0, Vec::new()), 0.0);
    }
}
