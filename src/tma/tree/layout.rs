//! Decides which group's occurrence of an event each node reads.
//!
//! A ratio's terms belong to one group: where one group holds everything a node needs, the whole node, other nodes in
//! its formula included, is computed from that group. Where none does, the node is *split*: its own events come from as
//! few groups as cover them; a node in its formula is read from one of these groups if it has everything for it (a
//! clock beside the event that is divided by it), and otherwise has its own value.

use crate::counts::{Counts, GroupCounts};
use crate::formula::Leaf;
use crate::quantity::Missing;
use crate::tables::{Const, EventId, NodeId, PmuKind, Table};
use smol_str::format_smolstr;

/// A set of events, one bit each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    pub fn insert(&mut self, e: EventId) {
        self.0[usize::from(e) / 64] |= 1 << (e % 64);
    }

    pub fn contains(&self, e: EventId) -> bool {
        self.0[usize::from(e) / 64] & (1 << (e % 64)) != 0
    }

    /// How many of `self` are in `other`.
    fn overlap(&self, other: &Bits) -> u32 {
        self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones()).sum()
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    fn remove_all(&mut self, other: &Bits) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }
}

/// Where a node's value comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// Everything from this group.
    Whole(usize),
    /// From several groups.
    Split(Split),
    /// No group has what it needs.
    Missing(Missing),
}

/// Parts of a node that no single group has.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Split {
    /// Own events and their groups.
    pub events: Vec<(EventId, usize)>,
    /// Nodes in the formula that are read from one of these groups; the others use their own values.
    pub nodes: Vec<(NodeId, usize)>,
}

/// The places of all nodes for one arrangement of groups.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// Two threads share a core.
    smt: bool,
    /// Counted (not merely listed) events of each group: what the layout was made for.
    available: Vec<Bits>,
    /// By node.
    pub places: Vec<Place>,
    /// Groups a node's value depends on, other nodes' groups included, sorted.
    pub groups_of: Vec<Vec<usize>>,
}

/// Events of each group that have a value.
fn available(table: &Table, counts: &Counts) -> Vec<Bits> {
    let of = |group: &GroupCounts| {
        let mut bits = Bits::new(table.events.len());
        for (i, e) in group.events().enumerate() {
            if group.total(i).is_ok() {
                bits.insert(e);
            }
        }
        bits
    };
    counts.groups.iter().map(of).collect()
}

/// Whether `e` needs no group: it follows from constants, or the table has a vendor's mean.
pub(super) fn ambient(table: &Table, counts: &Counts, e: EventId) -> Option<f64> {
    let spec = &table.events[usize::from(e)].spec;
    match spec.pmu {
        PmuKind::Tsc => {
            let hz = counts.constants[Const::TscHz.index()]?;
            let ms = counts.constants[Const::DurationMs.index()]?;
            Some(hz * ms / 1000.0)
        }
        PmuKind::Latency => spec.default,
        _ => None,
    }
}

impl Layout {
    pub fn new(table: &Table, counts: &Counts, smt: bool) -> Self {
        let available = available(table, counts);
        let mut free = Bits::new(table.events.len());
        for e in 0..u16::try_from(table.events.len()).unwrap_or(u16::MAX) {
            let counted = available.iter().any(|g| g.contains(e));
            if !counted && ambient(table, counts, e).is_some() {
                free.insert(e);
            }
        }
        let mut layout = Self {
            smt,
            available,
            places: vec![Place::Split(Split::default()); table.nodes.len()],
            groups_of: vec![Vec::new(); table.nodes.len()],
        };
        for &n in &table.order {
            let place = layout.place(table, counts, n, smt, &free);
            layout.groups_of[usize::from(n)] = layout.depends(table, n, smt, &place);
            layout.places[usize::from(n)] = place;
        }
        layout
    }

    /// Whether it is the layout of these counts.
    pub fn is_for(&self, table: &Table, counts: &Counts, smt: bool) -> bool {
        self.smt == smt && self.available == available(table, counts)
    }

    /// The counted events of node `n` and the group each is read from; an event without a group has an index that no
    /// group has.
    pub fn sources(&self, table: &Table, n: NodeId) -> Vec<(EventId, usize)> {
        let all = table.events_of(n, self.smt);
        match &self.places[usize::from(n)] {
            Place::Whole(g) => all.iter().map(|&e| (e, *g)).collect(),
            Place::Missing(_) => {
                let held = |e: EventId| self.available.iter().position(|g| g.contains(e));
                all.iter().map(|&e| (e, held(e).unwrap_or(usize::MAX))).collect()
            }
            Place::Split(split) => {
                let used = &table.nodes[usize::from(n)].uses[usize::from(self.smt)];
                let of = |&m: &NodeId| match split.nodes.iter().find(|(beside, _)| *beside == m) {
                    Some((_, g)) => table.events_of(m, self.smt).iter().map(|&e| (e, *g)).collect(),
                    None => self.sources(table, m),
                };
                let through = used.iter().flat_map(of);
                let mut found: Vec<(EventId, usize)> =
                    split.events.iter().copied().chain(through).collect();
                found.sort_unstable();
                found.dedup();
                found
            }
        }
    }

    fn place(&self, table: &Table, counts: &Counts, n: NodeId, smt: bool, free: &Bits) -> Place {
        let mut wanted = Bits::new(table.events.len());
        for &e in table.events_of(n, smt) {
            if !free.contains(e) {
                wanted.insert(e);
            }
        }
        if let Some(e) = self.absent(table, n, smt, free) {
            return Place::Missing(why_absent(table, counts, e));
        }
        if wanted.count() == 0 {
            return Place::Split(Split::default());
        }
        let whole = (0..self.available.len())
            .filter(|&g| wanted.overlap(&self.available[g]) == wanted.count())
            .max_by(|&a, &b| share(counts, a).total_cmp(&share(counts, b)).then(b.cmp(&a)));
        match whole {
            Some(g) => Place::Whole(g),
            None => {
                let events = self.cover(table, counts, n, smt, free);
                let nodes = self.beside(table, n, smt, free, &events);
                Place::Split(Split { events, nodes })
            }
        }
    }

    fn absent(&self, table: &Table, n: NodeId, smt: bool, free: &Bits) -> Option<EventId> {
        let counted = |e: EventId| free.contains(e) || self.available.iter().any(|g| g.contains(e));
        table.events_of(n, smt).iter().copied().find(|&e| !counted(e))
    }

    /// Greedy cover of the node's own events: the group with most of what is still wanted.
    fn cover(
        &self,
        table: &Table,
        counts: &Counts,
        n: NodeId,
        smt: bool,
        free: &Bits,
    ) -> Vec<(EventId, usize)> {
        let smt_on = Leaf::Const(Const::SmtOn as u8);
        let mut wanted = Bits::new(table.events.len());
        let given = f64::from(u8::from(smt));
        let mut own = Vec::new();
        for leaf in table.nodes[usize::from(n)].formula.leaves_given(smt_on, given) {
            if let Leaf::Event(e) = leaf
                && !free.contains(e)
                && !wanted.contains(e)
            {
                wanted.insert(e);
                own.push(e);
            }
        }
        let mut chosen = Vec::new();
        while wanted.count() > 0 {
            let best = (0..self.available.len()).max_by(|&a, &b| {
                let (oa, ob) =
                    (wanted.overlap(&self.available[a]), wanted.overlap(&self.available[b]));
                oa.cmp(&ob).then(share(counts, a).total_cmp(&share(counts, b))).then(b.cmp(&a))
            });
            let Some(best) = best else { break };
            chosen.extend(
                own.iter()
                    .filter(|&&e| wanted.contains(e) && self.available[best].contains(e))
                    .map(|&e| (e, best)),
            );
            let before = wanted.count();
            wanted.remove_all(&self.available[best]);
            if wanted.count() == before {
                break;
            }
        }
        chosen
    }

    /// Nodes in the formula of `n` that one of the groups of its own events can give whole.
    fn beside(
        &self,
        table: &Table,
        n: NodeId,
        smt: bool,
        free: &Bits,
        own: &[(EventId, usize)],
    ) -> Vec<(NodeId, usize)> {
        let used = &table.nodes[usize::from(n)].uses[usize::from(smt)];
        let has = |g: usize, e: EventId| free.contains(e) || self.available[g].contains(e);
        let holds = |m: NodeId, g: usize| table.events_of(m, smt).iter().all(|&e| has(g, e));
        let group_of =
            |m: NodeId| own.iter().map(|(_, g)| *g).find(|&g| holds(m, g)).map(|g| (m, g));
        used.iter().filter_map(|&m| group_of(m)).collect()
    }

    fn depends(&self, table: &Table, n: NodeId, smt: bool, place: &Place) -> Vec<usize> {
        let mut groups = match place {
            Place::Whole(g) => vec![*g],
            Place::Missing(_) => Vec::new(),
            Place::Split(split) => {
                let used = &table.nodes[usize::from(n)].uses[usize::from(smt)];
                let elsewhere = |m: &&NodeId| !split.nodes.iter().any(|(beside, _)| beside == *m);
                let through = used
                    .iter()
                    .filter(elsewhere)
                    .flat_map(|&m| self.groups_of[usize::from(m)].clone());
                split.events.iter().map(|(_, g)| *g).chain(through).collect()
            }
        };
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

fn share(counts: &Counts, g: usize) -> f64 {
    counts.groups[g].running_share().unwrap_or(1.0)
}

/// The reason the counts themselves give for an event, else that they do not hold it.
fn why_absent(table: &Table, counts: &Counts, e: EventId) -> Missing {
    let name = &table.events[usize::from(e)].name;
    for group in &counts.groups {
        if let Some(i) = group.events().position(|g| g == e)
            && let Err(why) = group.total(i)
        {
            return match why {
                Missing::NotCounted(_) => Missing::NotCounted(name.into()),
                other => other,
            };
        }
    }
    let spec = &table.events[usize::from(e)].spec;
    Missing::NotMeasured(match spec.pmu {
        PmuKind::Uncore => format_smolstr!("{name} is outside the core; tdtool counts core events"),
        PmuKind::Power => format_smolstr!("{name} (energy) was not counted"),
        PmuKind::Latency => format_smolstr!("{name} needs sampled latencies at retirement"),
        PmuKind::Tsc => "the duration or the time stamp frequency is not known".into(),
        PmuKind::Core | PmuKind::Abstract => format_smolstr!("{name} was not counted"),
    })
}
