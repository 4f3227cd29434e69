//! Splitting a group that never gets all its counters although it should fit.

use super::allowed::is_slots;
use super::budget::Budget;
use super::plan::{Group, sort_for_opening};
use crate::tables::{EventId, Table};

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
