//! The repeated readings of a group, and the program phases that they may have missed.
//!
//! A group that was enabled for few time slices may have missed a phase of the program that others saw, and then its
//! readings do not vary. How much the program varies is known from all nodes together: φ is the variance between slices
//! over the largest that shares of their size can have, v (1 - v). With it a share is at least as uncertain as a
//! proportion of φ·k out of k slices (A. Agresti and B. A. Coull, *The American Statistician* 52, 1998: two successes
//! and two failures more). A program that does not vary adds nothing.

use crate::counts::GroupCounts;
use crate::tables::{EventId, NodeId, NodeKind, Table};

/// Fewest readings of a group that give an error.
pub const MIN_READINGS: usize = 8;
/// Nanoseconds of a time slice of the kernel's multiplexing (PERF_CPU_HRTIMER in kernel/events/core.c).
const SLICE: f64 = 4e6;

/// The repeated readings of one group, however it is known.
pub(super) struct Readings {
    pub events: Vec<EventId>,
    /// Sums over all readings, by event.
    pub sums: Vec<f64>,
    /// Running time of each reading (live), or 1 each (imported intervals).
    pub weights: Vec<f64>,
    /// Counts by reading and event, in the unit of `sums`.
    pub values: Vec<Vec<f64>>,
    /// Scaled total = sum × `enabled` / sum of weights.
    pub enabled: f64,
    /// Share of the time it ran.
    pub share: f64,
    /// Number of observations of the program: time slices, at least one a reading.
    pub looks: f64,
}

impl Readings {
    pub(super) fn of(group: &GroupCounts) -> Option<Self> {
        match group {
            // The reading of an interval: nothing to compare.
            GroupCounts::Live { readings, .. } if readings.len() < MIN_READINGS => None,
            GroupCounts::Live { events, readings, enabled } => {
                let weights: Vec<f64> = readings.iter().map(|r| r.running as f64).collect();
                let values = readings.iter().map(|r| r.values.iter().map(|v| *v as f64).collect());
                let share = group.running_share().unwrap_or(1.0);
                let looks = weights.iter().sum::<f64>() / SLICE;
                Self::new(events.clone(), weights, values.collect(), *enabled as f64, share, looks)
            }
            GroupCounts::Imported { events, running, intervals } => {
                let events = events.iter().map(|(e, _)| *e).collect();
                let n = intervals.len();
                let share = running.unwrap_or(0.0);
                Self::new(events, vec![1.0; n], intervals.clone(), n as f64, share, n as f64)
            }
            GroupCounts::Missing { .. } => None,
        }
    }

    fn new(
        events: Vec<EventId>,
        weights: Vec<f64>,
        values: Vec<Vec<f64>>,
        enabled: f64,
        share: f64,
        looks: f64,
    ) -> Option<Self> {
        let complete = values.iter().all(|v| v.len() == events.len());
        if values.len() < MIN_READINGS || !complete {
            return None;
        }
        let sums = (0..events.len()).map(|i| values.iter().map(|v| v[i]).sum()).collect();
        let looks = looks.max(values.len() as f64);
        Some(Self { events, sums, weights, values, enabled, share, looks })
    }

    /// How much of the spread between readings is an error of the total. All of it where a group ran
    /// half of the time or less; a group that ran all the time counted everything. (Cochran's finite
    /// population correction, 1 - share, holds for readings drawn at random from many unlike ones; where
    /// each has seen a part of much the same it is twice too small at a share of one half.)
    pub(super) fn unseen(&self) -> f64 {
        (2.0 * (1.0 - self.share)).clamp(0.0, 1.0)
    }
}

/// Two-sided 95 % quantile of the normal distribution.
const Z95: f64 = 1.96;

/// Variation of all nodes of the tree.
#[derive(Debug)]
pub(super) struct Unseen<'t> {
    table: &'t Table,
    /// By node.
    nodes: Vec<Seen>,
    /// φ.
    varies: f64,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Variance between time slices.
    variance: f64,
    /// The fewest time slices of its groups.
    slices: f64,
    /// How much of the spread between readings is an error.
    unseen: f64,
}

impl<'t> Unseen<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        let nothing = Seen { variance: 0.0, slices: f64::INFINITY, unseen: 0.0 };
        Self { table, nodes: vec![nothing; table.nodes.len()], varies: 0.0 }
    }

    /// Enters the variance of the value of node `n` that the readings of a group give.
    pub(super) fn enter(&mut self, n: NodeId, readings: &Readings, variance: f64) {
        let seen = &mut self.nodes[usize::from(n)];
        if variance.is_finite() {
            seen.variance += variance * readings.looks;
        }
        seen.slices = seen.slices.min(readings.looks);
        seen.unseen = seen.unseen.max(readings.unseen());
    }

    /// Works φ out, when all groups are entered, from the values of nodes.
    pub(super) fn compare(&mut self, value: impl Fn(usize) -> Option<f64>) {
        let (mut variance, mut largest) = (0.0, 0.0);
        for (n, seen) in self.nodes.iter().enumerate().filter(|(n, _)| self.is_share(*n)) {
            if let (Some(v), true) = (value(n), seen.slices.is_finite()) {
                variance += seen.variance;
                largest += spread(v);
            }
        }
        self.varies = if largest > 0.0 { (variance / largest).min(1.0) } else { 0.0 };
    }

    /// The least half width at 95 % of node `n`.
    pub(super) fn least(&self, n: usize, value: f64, unlimited: f64) -> f64 {
        let Seen { slices, unseen, .. } = self.nodes[n];
        if !self.is_share(n) {
            return 0.0;
        }
        // A value beyond its limit is off by that much at least.
        let beyond = (value - unlimited).abs();
        let beyond = if beyond.is_finite() { beyond } else { 0.0 };
        if !slices.is_finite() {
            return beyond;
        }
        let value = value.clamp(0.0, 1.0);
        let centre = (value * slices + 2.0) / (slices + 4.0);
        let width = Z95 * (unseen * self.varies * spread(centre) / (slices + 4.0)).sqrt();
        beyond.max(width + (centre - value).abs() * self.varies * unseen)
    }

    fn is_share(&self, n: usize) -> bool {
        self.table.nodes[n].kind == NodeKind::Tree
    }
}

/// The largest variance that parts of a share can have.
fn spread(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    share * (1.0 - share)
}
