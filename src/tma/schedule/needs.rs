//! Nodes → sets of events that must be counted together.
//!
//! A node whose events fit into one group asks for just that (*whole*). Any other node is
//! *split* along its formula: the events it reads directly together with as many of the nodes it
//! reads as fit beside them, and every other node it reads separately, whole where that fits.

use super::allowed::{Bits, NoCounter};
use super::counters::Universe;
use crate::formula::Leaf;
use crate::tables::{Const, EventId, NodeId, NodeKind, PmuKind, Table};
use std::collections::BTreeMap;

/// Requirements of the chosen nodes on the groups.
pub(super) struct Needs {
    /// Sets that must each be inside one group, none inside another.
    pub(super) items: Vec<Bits>,
    pub(super) level_1: Bits,
    /// For every node that is served, chosen or read by a split one: the parts it is counted in.
    pub(super) parts: BTreeMap<NodeId, Vec<Bits>>,
    /// Nodes that cannot be served, and why.
    pub(super) unserved: Vec<(NodeId, String)>,
}

/// Collects what `nodes` need; `refused` are the events no counter can count.
pub(super) fn needs(
    table: &Table,
    nodes: &[NodeId],
    smt: bool,
    universe: &Universe,
    refused: &[(EventId, NoCounter)],
) -> Needs {
    let mut unserved = Vec::new();
    let mut served = Vec::new();
    for &n in nodes {
        match why_not(table, n, smt, refused) {
            Some(why) => unserved.push((n, why)),
            None => served.push(n),
        }
    }
    let mut collector =
        Collector { table, smt, universe, whole: Vec::new(), parts: BTreeMap::new() };
    let level_1 = collector.level_1(&served);
    let (whole, split): (Vec<_>, Vec<_>) =
        served.iter().partition(|n| universe.fits(&collector.closure(**n)));
    for n in whole {
        let set = collector.closure(n);
        collector.keep(set);
        collector.parts.insert(n, non_empty(set));
    }
    for n in split {
        collector.split(n);
    }
    Needs { items: maximal(collector.whole), level_1, parts: collector.parts, unserved }
}

/// Why node `n` cannot be counted live at all.
fn why_not(
    table: &Table,
    n: NodeId,
    smt: bool,
    refused: &[(EventId, NoCounter)],
) -> Option<String> {
    table.events_of(n, smt).iter().find_map(|e| {
        let event = &table.events[usize::from(*e)];
        match event.spec.pmu {
            PmuKind::Uncore => Some(format!("it needs {}, counted outside the core", event.name)),
            PmuKind::Abstract => Some(format!("it needs {}, which no PMU counts", event.name)),
            PmuKind::Tsc | PmuKind::Power | PmuKind::Latency => None,
            PmuKind::Core => {
                let (_, why) = refused.iter().find(|(r, _)| r == e)?;
                Some(format!("it needs {}: {why}", event.name))
            }
        }
    })
}

struct Collector<'a> {
    table: &'a Table,
    smt: bool,
    universe: &'a Universe,
    whole: Vec<Bits>,
    parts: BTreeMap<NodeId, Vec<Bits>>,
}

impl Collector<'_> {
    /// The core events of node `n`, those of the nodes it reads included.
    fn closure(&self, n: NodeId) -> Bits {
        self.set(self.table.events_of(n, self.smt).iter().copied())
    }

    fn set(&self, events: impl Iterator<Item = EventId>) -> Bits {
        let set = events.filter_map(|e| self.universe.number(e)).collect();
        self.universe.complete(&set)
    }

    fn keep(&mut self, set: Bits) {
        if !set.is_empty() {
            self.whole.push(set);
        }
    }

    /// The nodes of level 1 are compared with one another: one group for as many as fit.
    fn level_1(&mut self, nodes: &[NodeId]) -> Bits {
        let mut together = Bits::default();
        for &n in nodes {
            let node = &self.table.nodes[usize::from(n)];
            let wider = together.or(&self.closure(n));
            if node.kind == NodeKind::Tree && node.level == 1 && self.universe.fits(&wider) {
                together = wider;
            }
        }
        self.keep(together);
        together
    }

    /// Splits node `n` over several sets and notes them; nodes it reads are served, too.
    fn split(&mut self, n: NodeId) {
        if self.parts.contains_key(&n) {
            return;
        }
        let set = self.closure(n);
        if self.universe.fits(&set) {
            self.keep(set);
            self.parts.insert(n, non_empty(set));
            return;
        }
        let table = self.table;
        let mut parts = self.own_parts(n);
        for &m in &table.nodes[usize::from(n)].uses[usize::from(self.smt)] {
            if parts.iter().any(|p| self.closure(m).is_subset(p)) {
                continue;
            }
            self.split(m);
            parts.extend(self.parts.get(&m).into_iter().flatten().copied());
        }
        self.parts.insert(n, maximal(parts));
    }

    /// The events that the formula of `n` reads itself, with what fits beside them.
    fn own_parts(&mut self, n: NodeId) -> Vec<Bits> {
        let node = &self.table.nodes[usize::from(n)];
        let smt_on = Leaf::Const(Const::SmtOn as u8);
        let leaves = node.formula.leaves_given(smt_on, if self.smt { 1.0 } else { 0.0 });
        let direct =
            leaves.iter().filter_map(|l| if let Leaf::Event(e) = l { Some(*e) } else { None });
        let mut own = self.set(direct);
        if own.is_empty() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        while !self.universe.fits(&own) {
            let piece = self.piece(&own);
            own = self.universe.complete(&own.minus(&piece));
            self.keep(piece);
            parts.push(piece);
        }
        let own = self.widen(n, own);
        self.keep(own);
        parts.push(own);
        parts
    }

    /// A part of `own` to count apart: what a whole set counts anyway, else what fits.
    fn piece(&self, own: &Bits) -> Bits {
        let gain = |s: &Bits| self.universe.weight(&s.minus(&self.universe.companions()));
        let shared = self.whole.iter().map(|w| w.and(own));
        let best = shared.max_by_key(|s| (gain(s), s.len()));
        if let Some(best) = best
            && gain(&best) > 0
        {
            return self.universe.complete(&best);
        }
        let mut piece = Bits::default();
        for e in own.iter() {
            let mut wider = piece;
            wider.insert(e);
            let wider = self.universe.complete(&wider);
            if self.universe.fits(&wider) {
                piece = wider;
            }
        }
        piece
    }

    /// `own` with those of the nodes `n` reads that fit beside it: first what takes no general
    /// counter (clocks), then what nothing else counts.
    fn widen(&self, n: NodeId, own: Bits) -> Bits {
        let uses = &self.table.nodes[usize::from(n)].uses[usize::from(self.smt)];
        let mut sets: Vec<Bits> = uses.iter().map(|m| self.closure(*m)).collect();
        sets.sort_by_key(|s| self.universe.weight(&s.minus(&own)));
        let mut wide = own;
        for set in sets {
            let wider = wide.or(&set);
            let costs = self.universe.weight(&set.minus(&wide)) > 0;
            let counted = costs && self.whole.iter().any(|w| set.is_subset(w));
            if !counted && self.universe.fits(&wider) {
                wide = wider;
            }
        }
        wide
    }
}

fn non_empty(set: Bits) -> Vec<Bits> {
    if set.is_empty() { Vec::new() } else { vec![set] }
}

/// The members of `sets` that are not inside another, in their order, once each.
pub(super) fn maximal(sets: Vec<Bits>) -> Vec<Bits> {
    let inside =
        |i: usize, j: usize| i != j && sets[i].is_subset(&sets[j]) && (sets[i] != sets[j] || j < i);
    let stays = |i: usize| !(0..sets.len()).any(|j| inside(i, j));
    (0..sets.len()).filter(|i| stays(*i)).map(|i| sets[i]).collect()
}
