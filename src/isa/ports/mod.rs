//! µops of instructions and the ports that they can use, and how µops load the ports of a core. `table` has the
//! tables, `file` their format.
//!
//! Everything here is a prediction from published tables. A form that a table lacks is `None`.

mod file;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use file::Invalid;
pub use table::Ports;

/// A set of ports: bit n is the table's n-th port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortSet(pub u32);

impl PortSet {
    /// Whether it has port `n`.
    pub fn has(self, n: usize) -> bool {
        self.0 >> n & 1 == 1
    }

    /// Whether all of its ports are in `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Number of ports.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// µops of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// The ports that they can use.
    pub ports: PortSet,
    /// Number of µops, or cycles that they occupy a unit that is not pipelined.
    pub amount: f64,
}

/// The µops of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Uops {
    /// By the ports that they can use.
    pub uses: Vec<Use>,
    /// Issue slots.
    pub slots: f64,
    /// Why it has no µop of its own besides loads: a zero idiom, an eliminated move, a fused pair.
    pub without: Option<&'static str>,
    /// Source of the figures.
    pub source: String,
}

/// µops spread over ports so that the busiest port is as free as can be, then the next one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spread {
    /// For each instruction, cycles on each port.
    pub rows: Vec<Vec<f64>>,
    /// Cycles on each port.
    pub total: Vec<f64>,
    /// Cycles of the busiest port: no assignment of µops to ports needs fewer.
    pub bound: f64,
}

/// Rounds of scaling. They converge geometrically: each group is the smallest of its density.
const ROUNDS: usize = 2000;

/// Spreads the µops of a block over `ports` ports.
///
/// The bound is the largest (µops whose ports lie within S) / |S| over all sets S of ports: by Hall's
/// theorem this much is needed, and reached. Sets other than unions of the µops' port sets need not be
/// tried. The densest set gets its load first; the others share the ports that are left.
///
/// ```
/// use isa::ports::{PortSet, Uops, Use, spread};
///
/// let uops = |ports, amount| {
///     let uses = vec![Use { ports: PortSet(ports), amount }];
///     Some(Uops { uses, slots: amount, without: None, source: String::new() })
/// };
/// // Three µops for ports 0 and 1, and two for 0, 1 or 2: 3/2 and 5/3, so 5/3 cycles.
/// let found = spread(&[uops(0b011, 3.0), uops(0b111, 2.0)], 3);
/// assert!((found.bound - 5.0 / 3.0).abs() < 1e-9);
/// assert!(found.total.iter().all(|cycles| (cycles - found.bound).abs() < 1e-6));
/// ```
pub fn spread(block: &[Option<Uops>], ports: usize) -> Spread {
    let mut amounts: BTreeMap<PortSet, f64> = BTreeMap::new();
    for Use { ports, amount } in block.iter().flatten().flat_map(|u| &u.uses) {
        *amounts.entry(*ports).or_default() += amount;
    }
    let shares = shares(&amounts, ports);
    let row = |uops: &Option<Uops>| {
        let mut row = vec![0.0; ports];
        for Use { ports, amount } in uops.iter().flat_map(|u| &u.uses) {
            let share = &shares[ports];
            row.iter_mut().zip(share).for_each(|(cell, share)| *cell += amount * share);
        }
        row
    };
    let rows: Vec<Vec<f64>> = block.iter().map(row).collect();
    let total = (0..ports).map(|port| rows.iter().map(|row| row[port]).sum()).collect();
    let whole: Vec<_> = amounts.iter().map(|(set, amount)| (*set, *amount)).collect();
    Spread { rows, total, bound: densest(&whole).map_or(0.0, |(_, load)| load) }
}

/// The ports with the most µops for each of them, as [`spread`] has it, and the number of instructions that need one of
/// these; `None` without µops.
///
/// ```
/// use isa::ports::{PortSet, Uops, Use, busiest};
///
/// let uops = |ports| {
///     let uses = vec![Use { ports: PortSet(ports), amount: 1.0 }];
///     Some(Uops { uses, slots: 1.0, without: None, source: String::new() })
/// };
/// // Two µops for port 0, one for any of three.
/// assert_eq!(busiest(&[uops(0b001), uops(0b111), uops(0b001)]), Some((PortSet(0b001), 2)));
/// ```
pub fn busiest(block: &[Option<Uops>]) -> Option<(PortSet, usize)> {
    let all = || block.iter().flatten();
    let sets: Vec<_> = all().flat_map(|u| &u.uses).map(|u| (u.ports, u.amount)).collect();
    let (group, _) = densest(&sets)?;
    let needs = |uops: &&Uops| uops.uses.iter().any(|u| u.ports.is_within(group));
    Some((group, all().filter(needs).count()))
}

/// For each set of ports, the share of its µops that goes to each port.
fn shares(amounts: &BTreeMap<PortSet, f64>, ports: usize) -> BTreeMap<PortSet, Vec<f64>> {
    let mut shares = BTreeMap::new();
    let mut taken = PortSet::default();
    let mut left: Vec<(PortSet, PortSet, f64)> =
        amounts.iter().map(|(set, amount)| (*set, *set, *amount)).collect();
    while !left.is_empty() {
        let sets: Vec<_> = left.iter().map(|(_, set, amount)| (*set, *amount)).collect();
        let Some((group, load)) = densest(&sets) else { break };
        let (inside, outside): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, set, _)| set.is_within(group));
        let sets: Vec<_> = inside.iter().map(|(_, set, amount)| (*set, *amount)).collect();
        for ((key, ..), row) in inside.iter().zip(balanced(&sets, group, load, ports)) {
            shares.insert(*key, row);
        }
        taken.0 |= group.0;
        left =
            outside.into_iter().map(|(key, set, a)| (key, PortSet(set.0 & !taken.0), a)).collect();
    }
    shares
}

/// The smallest of the sets with the most µops per port, and that load.
fn densest(sets: &[(PortSet, f64)]) -> Option<(PortSet, f64)> {
    // A union of disjoint sets is no denser than its densest part: only overlapping sets are joined.
    let mut unions: BTreeSet<PortSet> = sets.iter().map(|(set, _)| *set).collect();
    let mut open: Vec<PortSet> = unions.iter().copied().collect();
    while let Some(union) = open.pop() {
        for (set, _) in sets.iter().filter(|(set, _)| set.0 & union.0 != 0) {
            let larger = PortSet(union.0 | set.0);
            if unions.insert(larger) {
                open.push(larger);
            }
        }
    }
    let load = |union: PortSet| {
        let inside = sets.iter().filter(|(set, _)| set.is_within(union));
        inside.map(|(_, amount)| amount).sum::<f64>() / f64::from(union.count().max(1))
    };
    let all = unions.into_iter().map(|union| (union, load(union)));
    all.reduce(|best, next| {
        let equal = (next.1 - best.1).abs() <= 1e-9 * best.1.max(1.0);
        let better = if equal { next.0.count() < best.0.count() } else { next.1 > best.1 };
        if better { next } else { best }
    })
}

/// Shares of each set so that every port of `group` has `load`: rows and columns are scaled in turn
/// (Sinkhorn and Knopp).
fn balanced(sets: &[(PortSet, f64)], group: PortSet, load: f64, ports: usize) -> Vec<Vec<f64>> {
    let start = |(set, amount): &(PortSet, f64)| {
        let each = amount / f64::from(set.count().max(1));
        (0..ports).map(|p| if set.has(p) { each } else { 0.0 }).collect::<Vec<f64>>()
    };
    let mut rows: Vec<Vec<f64>> = sets.iter().map(start).collect();
    for _ in 0..ROUNDS {
        let mut error = 0.0_f64;
        for port in (0..ports).filter(|p| group.has(*p)) {
            let sum: f64 = rows.iter().map(|row| row[port]).sum();
            error = error.max((sum - load).abs());
            rows.iter_mut().for_each(|row| row[port] *= if sum > 0.0 { load / sum } else { 1.0 });
        }
        for (row, (_, amount)) in rows.iter_mut().zip(sets) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|cell| *cell *= if sum > 0.0 { amount / sum } else { 1.0 });
        }
        if error < 1e-9 * load.max(1.0) {
            break;
        }
    }
    for (row, (_, amount)) in rows.iter_mut().zip(sets) {
        row.iter_mut().for_each(|cell| *cell /= amount);
    }
    rows
}
