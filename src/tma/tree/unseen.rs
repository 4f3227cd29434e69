//! Program phases that the readings of a group may have missed.
//!
//! A group that was enabled for few time slices may have missed a phase of the program that others saw, and then its
//! readings do not vary. How much the program varies is known from all nodes together: φ is the variance between slices
//! over the largest that shares of their size can have, v (1 - v). With it a share is at least as uncertain as a
//! proportion of φ·k out of k slices (A. Agresti and B. A. Coull, *The American Statistician* 52, 1998: two successes
//! and two failures more). A program that does not vary adds nothing.

use super::readings::Readings;
use crate::tables::{NodeId, NodeKind, Table};

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
