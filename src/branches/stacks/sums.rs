//! Windows → edges, ranges and sampled instructions, with distributions of cycles and trips.

use super::window::{Edge, Edges, Range, Skipped, Window};
use profile::address_space::ModuleAddress;
use profile::text::Counts;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A mode has at least this share of all values (design: APT-GET's peaks of the iteration times).
const LEAST_SHARE: f64 = 0.02;

/// Values below this are counted in place: most are.
const LOW: usize = 64;

/// How often each value occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Counts of the values below [`LOW`]; empty if there are none.
    low: Vec<u64>,
    high: BTreeMap<u64, u64>,
}

impl Distribution {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        *self.slot(value) += 1;
    }

    /// Adds the values of another.
    pub fn add_all(&mut self, other: &Self) {
        for (value, n) in other.counts() {
            *self.slot(value) += n;
        }
    }

    fn slot(&mut self, value: u64) -> &mut u64 {
        if value >= LOW as u64 {
            return self.high.entry(value).or_default();
        }
        if self.low.is_empty() {
            self.low.resize(LOW, 0);
        }
        &mut self.low[value as usize]
    }

    /// How often a value occurred.
    pub fn count(&self, value: u64) -> u64 {
        match self.low.get(value as usize).filter(|_| value < LOW as u64) {
            Some(n) => *n,
            None => self.high.get(&value).copied().unwrap_or(0),
        }
    }

    /// How many values there are.
    pub fn number(&self) -> u64 {
        self.counts().map(|(_, n)| n).sum()
    }

    /// Values and how often they occurred, in order of value.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let low = (0..).zip(self.low.iter().copied()).filter(|(_, n)| *n > 0);
        low.chain(self.high.iter().map(|(value, n)| (*value, *n)))
    }

    /// The mean, if there are values.
    pub fn mean(&self) -> Option<f64> {
        let number = self.number();
        let sum: f64 = self.counts().map(|(value, n)| value as f64 * n as f64).sum();
        (number > 0).then(|| sum / number as f64)
    }

    /// The median, if there are values; between the two middle ones of an even number.
    pub fn median(&self) -> Option<f64> {
        let number = self.number();
        let at = |rank: u64| {
            let mut below = 0;
            self.counts().find_map(|(value, n)| {
                below += n;
                (below > rank).then_some(value)
            })
        };
        let upper = at(number / 2)?;
        let lower = if number.is_multiple_of(2) { at(number / 2 - 1)? } else { upper };
        Some((lower + upper) as f64 / 2.0)
    }

    /// The smallest value that this share of all is not above; none if there are no values.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let most = share * self.number() as f64;
        let mut below = 0;
        self.counts().find_map(|(value, n)| {
            below += n;
            (below as f64 >= most).then_some(value)
        })
    }

    /// The values around which others gather: no adjacent value is more frequent, and the value and the next one
    /// together have at least 2 % of all.
    pub fn modes(&self) -> Vec<u64> {
        let all = self.number() as f64;
        let of = |value: u64| self.count(value);
        self.counts()
            .filter(|(value, n)| {
                let (before, after) = (value.checked_sub(1).map_or(0, of), of(value + 1));
                (n + after) as f64 >= LEAST_SHARE * all && *n > before && *n >= after
            })
            .map(|(value, _)| value)
            .collect()
    }
}

/// Sums over an edge.
#[derive(Debug, Clone, Default)]
pub struct EdgeSum {
    /// How often it was taken.
    pub count: u64,
    /// Newest entries that repeat it, which are not used.
    pub repeated: u64,
    /// How often it was marked as predicted or mispredicted, …
    pub marked: u64,
    /// … and as mispredicted.
    pub mispredicted: u64,
    /// Cycles since the branch before.
    pub cycles: Distribution,
}

/// Sums over a range.
#[derive(Debug, Clone, Default)]
pub struct RangeSum {
    /// How often it was executed.
    pub count: u64,
    /// Executions in the whole run, estimated from the periods; 0 if that is not possible.
    pub executions: f64,
    /// Cycles of it, with the branch that ends it.
    pub cycles: Distribution,
}

/// All that was recorded of one event.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Samples with branches; 0 for traces and counts.
    pub samples: u64,
    /// Whether branches come from a trace.
    pub is_traced: bool,
    /// Entries, skipped ones included.
    pub entries: u64,
    /// Skipped entries.
    pub skipped: Skipped,
    /// Taken branches.
    pub edges: FxHashMap<Edge, EdgeSum>,
    /// Straight code.
    pub ranges: FxHashMap<Range, RangeSum>,
    /// Samples by their own address.
    pub instructions: FxHashMap<ModuleAddress, u64>,
}

impl Sums {
    /// Sums from counts; the program is module 0.
    pub fn of_counts(counts: &Counts) -> Self {
        let at = |address| ModuleAddress { module: 0, address };
        let mut sums = Self::default();
        sums.skipped.unmapped = counts.outside;
        for ((from, to), count) in &counts.branches {
            sums.entries = sums.entries.saturating_add(*count);
            let edge = Edge { from: Some(at(*from)), to: Some(at(*to)) };
            sums.edges.insert(edge, EdgeSum { count: *count, ..EdgeSum::default() });
        }
        for ((first, last), count) in &counts.ranges {
            let range = Range { module: 0, first: *first, last: *last };
            sums.ranges.insert(range, RangeSum { count: *count, ..RangeSum::default() });
        }
        let samples = counts.instructions.iter().map(|(address, n)| (at(*address), *n));
        sums.instructions = samples.collect();
        sums
    }

    /// How often the edge from a branch to a target was taken.
    pub fn taken(&self, from: ModuleAddress, to: ModuleAddress) -> u64 {
        self.edges.get(&Edge { from: Some(from), to: Some(to) }).map_or(0, |sum| sum.count)
    }

    /// Whether any entry has cycles.
    pub fn has_cycles(&self) -> bool {
        self.edges.values().any(|sum| sum.cycles.number() > 0)
    }

    /// Whether any entry has a prediction.
    pub fn has_predictions(&self) -> bool {
        self.edges.values().any(|sum| sum.marked > 0)
    }
}

/// The sums of all events, as they grow.
#[derive(Debug, Default)]
pub struct Growing {
    /// Without edges and ranges.
    events: Vec<Sums>,
    /// By number.
    edges: Vec<EdgeSum>,
    ranges: Vec<((usize, Range), RangeSum)>,
    numbers: FxHashMap<(usize, Range), u32>,
    /// For each edge the last range that it ended: target of the branch before, and its number.
    last: Vec<Option<(ModuleAddress, u32)>>,
}

impl Growing {
    /// Sums for this number of events.
    pub fn new(events: usize) -> Self {
        Self { events: vec![Sums::default(); events], ..Self::default() }
    }

    /// Adds a window of an event.
    pub fn add(&mut self, event: usize, window: &Window) {
        let Some(sums) = self.events.get_mut(event) else { return };
        if let Some(place) = window.place {
            *sums.instructions.entry(place).or_default() += 1;
        }
        if window.entries == 0 {
            return;
        }
        sums.samples += u64::from(window.is_sample);
        sums.is_traced |= !window.is_sample;
        sums.entries += window.entries;
        sums.skipped.add(&window.skipped);
        for step in &window.steps {
            let number = step.edge as usize;
            if self.edges.len() <= number {
                self.edges.resize_with(number + 1, EdgeSum::default);
                self.last.resize(number + 1, None);
            }
            let sum = &mut self.edges[number];
            sum.count += 1;
            sum.marked += u64::from(step.mispredicted.is_some());
            sum.mispredicted += u64::from(step.mispredicted == Some(true));
            if let Some(cycles) = step.cycles {
                sum.cycles.add(cycles.into());
            }
        }
        // The newest entry repeats the one before, which is the last step.
        if let Some(step) = window.steps.last() {
            self.edges[step.edge as usize].repeated += window.skipped.duplicated;
        }
        let skipped = self.add_ranges(event, window);
        self.events[event].skipped.add(&skipped);
    }

    fn add_ranges(&mut self, event: usize, window: &Window) -> Skipped {
        let mut skipped = Skipped::default();
        for (range, step) in window.ranges(&mut skipped) {
            let Some(range) = range else { continue };
            let first = ModuleAddress { module: range.module, address: range.first };
            let last = &mut self.last[step.edge as usize];
            let number = match last {
                Some((before, number)) if *before == first => *number,
                _ => {
                    let ranges = &mut self.ranges;
                    let number = *self.numbers.entry((event, range)).or_insert_with(|| {
                        ranges.push(((event, range), RangeSum::default()));
                        (ranges.len() - 1) as u32
                    });
                    *last = Some((first, number));
                    number
                }
            };
            let (_, sum) = &mut self.ranges[number as usize];
            sum.count += 1;
            sum.executions += window.weight.unwrap_or(0.0);
            if let Some(cycles) = step.cycles {
                sum.cycles.add(cycles.into());
            }
        }
        skipped
    }

    /// The sums of each event, with the edges of these numbers.
    pub fn finish(mut self, edges: &Edges) -> Vec<Sums> {
        for (number, sum) in (0_u32..).zip(self.edges).filter(|(_, sum)| sum.count > 0) {
            self.events[edges.event(number)].edges.insert(edges.get(number), sum);
        }
        for ((event, range), sum) in self.ranges {
            self.events[event].ranges.insert(range, sum);
        }
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand.
    #[test]
    fn mean_median_and_modes() {
        let mut values = Distribution::default();
        assert_eq!((values.mean(), values.median()), (None, None));
        for value in [4, 4, 4, 5, 40, 41, 41] {
            values.add(value);
        }
        assert_eq!(values.median(), Some(5.0));
        assert_eq!(values.mean(), Some(139.0 / 7.0));
        assert_eq!(values.modes(), [4, 41]);
        values.add(3);
        assert_eq!(values.median(), Some(4.5), "between 4 and 5");
    }
}
