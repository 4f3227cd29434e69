//! How toplev forms groups, in short: nodes by level and size, each into the latest group with
//! room for it; a node that fits nowhere falls apart by the level its events come from, and each
//! level's events are cut where the counters end. The yardstick for plans of other counters and
//! tables than those toplev's own figures are known for.

use super::checker::Judge;
use std::collections::BTreeSet;
use tma::formula::Leaf;
use tma::tables::{Const, EventId, NodeId, NodeKind, PmuKind};

/// Number of groups.
pub fn groups(judge: &Judge, nodes: &[NodeId]) -> usize {
    let table = judge.table;
    let level_of = |n: NodeId| table.nodes[usize::from(n)].level;
    let of = |n: NodeId| {
        let mut events = Vec::new();
        events_with_levels(judge, n, level_of(n), &mut events);
        events
    };
    let mut order = nodes.to_vec();
    order.sort_by_key(|n| (level_of(*n), of(*n).len()));
    let mut groups = Vec::new();
    for events in order.into_iter().map(of) {
        let all: BTreeSet<EventId> = events.iter().map(|(e, _)| *e).collect();
        if judge.possible(&all) {
            place(judge, &mut groups, &all);
            continue;
        }
        let levels: BTreeSet<u32> = events.iter().map(|(_, l)| *l).collect();
        for level in levels {
            let mut piece = BTreeSet::new();
            for (event, _) in events.iter().filter(|(_, l)| *l == level) {
                let mut wider = piece.clone();
                wider.insert(*event);
                if !judge.possible(&wider) {
                    place(judge, &mut groups, &piece);
                    wider = BTreeSet::from([*event]);
                }
                piece = wider;
            }
            place(judge, &mut groups, &piece);
        }
    }
    groups.len()
}

/// Core events of `n` in the order of its formula, each with the level of the tree's node it
/// comes from.
fn events_with_levels(judge: &Judge, n: NodeId, level: u32, found: &mut Vec<(EventId, u32)>) {
    let table = judge.table;
    let node = &table.nodes[usize::from(n)];
    let level = if node.kind == NodeKind::Tree { node.level } else { level };
    let smt = f64::from(u8::from(judge.machine.smt));
    for leaf in node.formula.leaves_given(Leaf::Const(Const::SmtOn as u8), smt) {
        match leaf {
            Leaf::Event(e) => {
                let core = table.events[usize::from(e)].spec.pmu == PmuKind::Core;
                if core && !found.contains(&(e, level)) {
                    found.push((e, level));
                }
            }
            Leaf::Node(m) => events_with_levels(judge, m, level, found),
            Leaf::Const(_) => {}
        }
    }
}

fn place(judge: &Judge, groups: &mut Vec<BTreeSet<EventId>>, events: &BTreeSet<EventId>) {
    if events.is_empty() {
        return;
    }
    for group in groups.iter_mut().rev() {
        let wider: BTreeSet<EventId> = group.union(events).copied().collect();
        if judge.possible(&wider) {
            *group = wider;
            return;
        }
    }
    groups.push(events.clone());
}
