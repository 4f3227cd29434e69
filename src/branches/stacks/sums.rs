//! Windows → edges, ranges and sampled instructions.

use super::distribution::Distribution;
use super::edges::{Edge, Edges};
use super::window::{Range, Skipped, Window};
use profile::address_space::ModuleAddress;
use profile::text::Counts;
use rustc_hash::FxHashMap;

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
