//! Windows → edges, ranges and sampled instructions.

use super::distribution::Distribution;
use super::window::{Range, Skipped, Window};
use profile::address_space::ModuleAddress;
use profile::text::Counts;
use rustc_hash::FxHashMap;

/// A branch and one of its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The branch; `None` outside all known mappings.
    pub from: Option<ModuleAddress>,
    /// Its target.
    pub to: Option<ModuleAddress>,
}

/// What was recorded of an edge.
#[derive(Debug, Clone, Default)]
pub struct EdgeSum {
    /// How often it was taken.
    pub count: u64,
    /// How often it was marked as predicted or mispredicted, …
    pub marked: u64,
    /// … and as mispredicted.
    pub mispredicted: u64,
    /// Cycles since the branch before.
    pub cycles: Distribution,
}

/// What was recorded of a range.
#[derive(Debug, Clone, Default)]
pub struct RangeSum {
    /// How often it was executed.
    pub count: u64,
    /// How often it was executed in the whole run, estimated from the periods; 0 if they do not tell.
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
    /// What was skipped.
    pub skipped: Skipped,
    /// Taken branches.
    pub edges: FxHashMap<Edge, EdgeSum>,
    /// Straight code.
    pub ranges: FxHashMap<Range, RangeSum>,
    /// Samples by their own address.
    pub instructions: FxHashMap<ModuleAddress, u64>,
}

impl Sums {
    /// Adds a window.
    pub fn add(&mut self, window: &Window) {
        if let Some(place) = window.place {
            *self.instructions.entry(place).or_default() += 1;
        }
        if window.entries == 0 {
            return;
        }
        self.samples += u64::from(window.is_sample);
        self.is_traced |= !window.is_sample;
        self.entries += window.entries;
        self.skipped.add(&window.skipped);
        for step in &window.steps {
            let sum = self.edges.entry(Edge { from: step.from, to: step.to }).or_default();
            sum.count += 1;
            sum.marked += u64::from(step.mispredicted.is_some());
            sum.mispredicted += u64::from(step.mispredicted == Some(true));
            if let Some(cycles) = step.cycles {
                sum.cycles.add(cycles.into());
            }
        }
        let mut skipped = Skipped::default();
        for (range, step) in window.ranges(&mut skipped) {
            let Some(range) = range else { continue };
            let sum = self.ranges.entry(range).or_default();
            sum.count += 1;
            sum.executions += window.weight.unwrap_or(0.0);
            if let Some(cycles) = step.cycles {
                sum.cycles.add(cycles.into());
            }
        }
        self.skipped.add(&skipped);
    }

    /// Those of counts; the program is module 0.
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

    /// Whether any entry has cycles.
    pub fn has_cycles(&self) -> bool {
        self.edges.values().any(|sum| sum.cycles.number() > 0)
    }

    /// Whether any entry tells its prediction.
    pub fn has_predictions(&self) -> bool {
        self.edges.values().any(|sum| sum.marked > 0)
    }
}
