//! Costs of a piece's loads and stores: fenced latencies of loads beyond the first cache, lines that streams bring in
//! ahead of time in the fenced run or store to.

use estimate::{Interval, Loads};
use report::documents::count::{self, Count, Level, LoadRow, TimerRow};

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Bytes of the first cache and of the second: streams over no more hit them.
const FIRST: f64 = 48e3;
const SECOND: f64 = 1e6;
/// Bytes of the largest third cache that a core reaches (Xeon 6980P: 504 MB).
const LAST: f64 = 504e6;
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
        let cycles = row.executions.unwrap_or(0) as f64 * ghz;
        let beyond = beyond(row, timer).times(cycles);
        if !is_known(row) {
            let most = LOADED * timer.memory;
            sum.unknown += row.executions.map_or(f64::INFINITY, |n| n as f64 * most * ghz);
        }
        let is_chase =
            row.class.as_ref().is_some_and(|class| class.kind == count::Kind::PointerChase);
        if is_chase && is_loop {
            sum.carried = sum.carried.plus_alike(beyond.all);
        }
        let streamed = streamed(row, timer).times(cycles);
        add(&mut sum, if streamed.all.high > beyond.all.high { streamed } else { beyond });
    }
    for row in &accesses.stores {
        let all = streamed(row, timer).all.times(row.executions.unwrap_or(0) as f64 * ghz);
        add(&mut sum, Beyond::of_level(3, all));
    }
    Some(sum)
}

/// Adds what a load or store costs.
fn add(sum: &mut Loads, one: Beyond) {
    let own = Beyond { all: sum.at_most, levels: sum.levels };
    Beyond { all: sum.at_most, levels: sum.levels } = own.plus(one);
}

const NONE: Interval = Interval { value: 0.0, low: 0.0, high: 0.0 };

/// What a load or store costs beyond a hit in the first cache, and of that its levels, as in [`Loads::levels`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Beyond {
    all: Interval,
    levels: [Interval; 4],
}

impl Beyond {
    /// All of it of one level.
    fn of_level(number: usize, all: Interval) -> Self {
        let mut levels = [NONE; 4];
        levels[number] = all;
        Self { all, levels }
    }

    /// That may be of any of these levels.
    fn of_any(levels: [bool; 4], all: Interval) -> Self {
        Self {
            all,
            levels: levels.map(|is| Interval::new(0.0, 0.0, if is { all.high } else { 0.0 })),
        }
    }

    fn plus(self, other: Self) -> Self {
        let level = |number: usize| self.levels[number].plus_alike(other.levels[number]);
        Self { all: self.all.plus_alike(other.all), levels: std::array::from_fn(level) }
    }

    fn times(self, factor: f64) -> Self {
        Self { all: self.all.times(factor), levels: self.levels.map(|one| one.times(factor)) }
    }
}

/// The number of a level among [`Loads::levels`].
fn number(level: Level) -> usize {
    match level {
        Level::Cache(..=2) => 0,
        Level::Cache(_) => 1,
        Level::Memory => 2,
    }
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
        let of = |of: Beyond| of.all.value;
        let (missed, streamed) = (of(beyond(row, timer)), of(streamed(row, timer)));
        let how = if streamed > missed { STREAM.to_owned() } else { levels(row) };
        all.push((missed.max(streamed) * executions, one(row, &how)));
    }
    for row in &accesses.stores {
        let cost = streamed(row, timer).all.value * row.executions.unwrap_or(0) as f64;
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
    row.executions.unwrap_or(0) as f64 * beyond(row, timer).all.value
}

/// The mean latency of a level in nanoseconds.
fn mean(timer: &TimerRow, level: Level) -> Option<f64> {
    timer.caches.iter().find(|one| one.level == level).map(|one| one.mean)
}

/// Nanoseconds of an execution beyond those of a hit in the first cache.
fn beyond(row: &LoadRow, timer: &TimerRow) -> Beyond {
    let first = mean(timer, Level::L1).unwrap_or(0.0);
    let Some(latency) = &row.latency else { return Beyond::default() };
    if row.levels.is_empty() {
        let most = Interval::new(0.0, 0.0, (latency.mean - first).max(0.0));
        return Beyond::of_any([true, true, true, false], most);
    }
    let mut sum = Beyond::default();
    for level in row.levels.iter().filter(|level| level.level != Level::L1) {
        // The second cache is known by its mean only: the counter's steps are larger.
        let known = mean(timer, level.level).filter(|_| level.level == Level::L2);
        let own = known.or(level.latency).or_else(|| mean(timer, level.level));
        let more = (own.unwrap_or(timer.memory) - first).max(0.0);
        let share = Interval::new(level.share, level.low, level.high);
        sum = sum.plus(Beyond::of_level(number(level.level), share.times(more)));
    }
    sum
}

/// Nanoseconds of an execution of a stride over more than the first cache, if nothing brought its lines ahead of it.
fn streamed(row: &LoadRow, timer: &TimerRow) -> Beyond {
    let Some(class) = row.class.as_ref().filter(|class| class.kind == count::Kind::Stride) else {
        return Beyond::default();
    };
    let (Some(stride), Some(steps)) = (class.stride, class.steps) else { return Beyond::default() };
    let stride = stride.unsigned_abs() as f64;
    let walked = stride * steps as f64 / class.breaks.unwrap_or(0).max(1) as f64;
    let lines = (stride / LINE).min(1.0);
    let first = mean(timer, Level::L1).unwrap_or(0.0);
    if walked <= FIRST {
        return Beyond::default();
    }
    if walked <= SECOND {
        let more = lines * (mean(timer, Level::L2).unwrap_or(first) - first).max(0.0);
        return Beyond::of_level(0, Interval::exact(more));
    }
    let all = Interval::exact(lines * MEMORY * timer.memory);
    let share =
        |level| row.levels.iter().find(|one| one.level == level).map_or(0.0, |one| one.share);
    // Lines that come from memory are fetched from there where none is prefetched, as at the start of a page.
    match (share(Level::Memory), share(Level::L3)) {
        _ if walked > LAST => Beyond::of_level(2, all),
        (memory, last) if memory > last => Beyond::of_level(2, all),
        _ => Beyond::of_any([false, true, true, false], all),
    }
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
}
