//! Counter constraints; events → groups.
//!
//! A group is a set of events that the kernel counts at the same time. The planner serves the
//! chosen nodes with as few groups as it can: a node's events in one group wherever they fit,
//! all of level 1 in one group, and a node that fits nowhere split along its formula
//! (`needs`). What fits is decided by an exact matching of events to counters
//! (`counters`), among the counters that each may use (`allowed`); what shares a group by a
//! bounded, deterministic search (`pack`).
//!
//! ```
//! use tma::schedule::{Budget, plan, to_level};
//! use tma::tables::Table;
//!
//! let text = std::fs::read_to_string("../../events/amd/zen4.toml")?;
//! let table = Table::parse(&text, "zen4.toml")?;
//! let budget = Budget::of(&table, false, false);
//!
//! // Cycles, front-end bubbles, dispatched and retired ops, back-end stalls and slots lost to the
//! // other thread: level 1 fits into the six counters of a Zen 4 (AMD PPR for family 19h).
//! let level_1 = plan(&table, &to_level(&table, 1), false, &budget);
//! assert_eq!(level_1.groups.len(), 1);
//!
//! // With three counters it is multiplexed, and every group still fits.
//! let few = plan(&table, &to_level(&table, 1), false, &budget.with_general(3));
//! assert!(few.groups.len() > 1);
//! assert!(few.groups.iter().all(|group| group.events.len() <= 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allowed;
mod counters;
mod needs;
mod pack;

use crate::tables::{EventId, NodeId, PmuKind, Table};
use allowed::{Bits, is_slots};
use counters::Universe;
use std::cmp::Reverse;

pub use allowed::{Budget, NoCounter};
pub use counters::Counter;

/// Trials of a set against a group that [`plan`] spends; about 3 ms in a release build.
pub const USUAL_EFFORT: usize = 30_000;

/// Events that are counted at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The events, leader first: slots, then its metrics, where there are any.
    pub events: Vec<EventId>,
}

/// Where the events of a node are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The node.
    pub node: NodeId,
    /// Indices into [`Plan::groups`]. None: it needs no counter. One: all its events are
    /// counted together. More: it is split, and its error must say so.
    pub groups: Vec<usize>,
}

impl Placement {
    /// Whether the node's events are spread over several groups.
    pub fn is_split(&self) -> bool {
        self.groups.len() > 1
    }
}

/// Groups and what they serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The groups, in the order they should run; level 1 first.
    pub groups: Vec<Group>,
    /// The chosen nodes that are served, in the order they were asked for.
    pub placements: Vec<Placement>,
    /// Chosen nodes that cannot be counted live, and why.
    pub unserved: Vec<(NodeId, String)>,
    /// Core events that no counter of the budget can count, and why.
    pub unschedulable: Vec<(EventId, NoCounter)>,
}

impl Plan {
    /// Events of all groups, repeats included.
    pub fn event_count(&self) -> usize {
        self.groups.iter().map(|g| g.events.len()).sum()
    }

    /// Where `node` is counted, if it is.
    pub fn placement(&self, node: NodeId) -> Option<&Placement> {
        self.placements.iter().find(|p| p.node == node)
    }
}

/// Plans the groups for `nodes` (ids of `table`) with SMT on or off within `budget`.
///
/// Events of other PMUs (time stamp counter, energy) are not planned: they need no group.
pub fn plan(table: &Table, nodes: &[NodeId], smt: bool, budget: &Budget) -> Plan {
    plan_with(table, nodes, smt, budget, USUAL_EFFORT)
}

/// [`plan`] with a search of `effort` trials instead of [`USUAL_EFFORT`].
pub fn plan_with(
    table: &Table,
    nodes: &[NodeId],
    smt: bool,
    budget: &Budget,
    effort: usize,
) -> Plan {
    let (universe, refused) = Universe::new(table, budget, core_events(table, nodes, smt));
    let needs = needs::needs(table, nodes, smt, &universe, &refused);
    let mut groups = pack::pack(&universe, &needs.items, effort);
    let first_use = |group: &Bits| {
        let whole = |n: &NodeId| {
            needs.parts.get(n).is_some_and(|parts| parts.iter().any(|p| p.is_subset(group)))
        };
        nodes.iter().position(whole).unwrap_or(usize::MAX)
    };
    groups.sort_by_key(|g| (!needs.level_1.is_subset(g), first_use(g)));
    let placements = nodes
        .iter()
        .filter_map(|n| {
            let parts = needs.parts.get(n)?;
            Some(Placement { node: *n, groups: homes(&groups, parts) })
        })
        .collect();
    Plan {
        placements,
        unserved: needs.unserved,
        unschedulable: refused,
        groups: groups.iter().map(|g| group(table, budget, &universe, g)).collect(),
    }
}

/// The counter each event of `group` would use in `budget`; `None` if the group does not fit.
pub fn assign(table: &Table, group: &Group, budget: &Budget) -> Option<Vec<Counter>> {
    let (universe, refused) = Universe::new(table, budget, group.events.iter().copied());
    if !refused.is_empty() {
        return None;
    }
    let all: Bits = group.events.iter().filter_map(|e| universe.number(*e)).collect();
    let places = universe.assign(&all)?;
    group
        .events
        .iter()
        .map(|e| places.iter().find(|(event, _)| event == e).map(|(_, counter)| *counter))
        .collect()
}

/// The deepest level at which something can be counted and down to which the tree needs but one
/// group; at least 1.
pub fn deepest_without_multiplexing(table: &Table, smt: bool, budget: &Budget) -> u32 {
    let one_group = |level: &u32| {
        let plan = plan_with(table, &to_level(table, *level), smt, budget, 0);
        let here = |p: &&Placement| table.nodes[usize::from(p.node)].level == *level;
        plan.groups.len() == 1 && plan.placements.iter().any(|p| here(&p))
    };
    (1..=table.depth()).take_while(one_group).last().unwrap_or(1)
}

/// The tree's nodes down to `level`, parents first.
pub fn to_level(table: &Table, level: u32) -> Vec<NodeId> {
    table.tree().filter(|(_, n)| n.level <= level).map(|(i, _)| i).collect()
}

fn core_events<'a>(
    table: &'a Table,
    nodes: &'a [NodeId],
    smt: bool,
) -> impl Iterator<Item = EventId> + 'a {
    let events = nodes.iter().flat_map(move |n| table.events_of(*n, smt)).copied();
    events.filter(|e| table.events[usize::from(*e)].spec.pmu == PmuKind::Core)
}

/// For each part the group that holds it, those already in use preferred; sorted.
fn homes(groups: &[Bits], parts: &[Bits]) -> Vec<usize> {
    let mut homes: Vec<usize> = Vec::new();
    let mut rest: Vec<&Bits> = parts.iter().collect();
    while !rest.is_empty() {
        let serves = |g: usize| rest.iter().filter(|p| p.is_subset(&groups[g])).count();
        let Some(best) = (0..groups.len()).max_by_key(|g| (serves(*g), Reverse(*g))) else { break };
        if serves(best) == 0 {
            break;
        }
        rest.retain(|p| !p.is_subset(&groups[best]));
        homes.push(best);
    }
    homes.sort_unstable();
    homes
}

/// The events of a group in the order they are opened.
fn group(table: &Table, budget: &Budget, universe: &Universe, set: &Bits) -> Group {
    let mut events: Vec<EventId> = set.iter().map(|i| universe.id(i)).collect();
    sort_for_opening(table, budget, &mut events);
    Group { events }
}

/// Slots lead, their metrics follow; then the clock of every group, the fixed counters in their
/// order, and the rest by name.
fn sort_for_opening(table: &Table, budget: &Budget, events: &mut [EventId]) {
    events.sort_by_key(|e| {
        let spec = &table.events[usize::from(*e)].spec;
        let rank = match spec {
            _ if is_slots(table, *e) => 0,
            s if s.metric.is_some() => 1,
            _ if budget.always == Some(*e) => 2,
            s if s.fixed.is_some() => 3,
            _ => 4,
        };
        (rank, spec.metric.or(spec.fixed), *e)
    });
}

/// `group` in two halves, for when it never gets all its counters: something we do not know of has
/// taken some. Events on fixed counters, which most ratios refer to, are never separated from each
/// other and go into both halves; slots stay with their metrics. The last event on a general counter
/// leaves them and takes the core clock along. A group that cannot be split is returned as it is.
pub fn split(group: &Group, table: &Table, budget: &Budget) -> Vec<Group> {
    let spec = |e: &EventId| &table.events[usize::from(*e)].spec;
    let topdown = |e: &EventId| spec(e).metric.is_some() || is_slots(table, *e);
    let has_metrics = group.events.iter().any(|e| spec(e).metric.is_some());
    let of = |test: &dyn Fn(&EventId) -> bool| -> Vec<EventId> {
        group.events.iter().copied().filter(|e| test(e)).collect()
    };
    let leaders = of(&|e| has_metrics && topdown(e));
    let always = of(&|e| budget.always == Some(*e));
    let other = |e: &EventId| !leaders.contains(e) && !always.contains(e);
    let fixed = of(&|e| other(e) && spec(e).fixed.is_some());
    let general = of(&|e| other(e) && spec(e).fixed.is_none());
    // With metrics the first half is only slots, metrics and clocks: they stay readable whatever
    // happens to the rest.
    let (first, second) = match (leaders.is_empty(), general.len()) {
        (false, 0) => (leaders, fixed),
        (false, _) => ([&leaders[..], &fixed].concat(), [&general[..], &fixed].concat()),
        (true, 0) => (fixed, Vec::new()),
        (true, 1) => {
            let clock = fixed.iter().filter(|e| **e == table.clocks && fixed.len() > 1);
            let alone = general.iter().chain(clock).copied().collect();
            (fixed, alone)
        }
        (true, n) => {
            let (first, second) = general.split_at(n.div_ceil(2));
            ([first, &fixed].concat(), [second, &fixed].concat())
        }
    };
    if first.is_empty() || second.is_empty() {
        return vec![group.clone()];
    }
    [first, second]
        .into_iter()
        .map(|mut events| {
            events.extend(&always);
            sort_for_opening(table, budget, &mut events);
            Group { events }
        })
        .collect()
}
