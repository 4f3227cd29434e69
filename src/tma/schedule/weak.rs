//! Splitting a group that the kernel refuses although it should fit.

use super::budget::Budget;
use super::counters::is_slots;
use super::plan::{Group, sort_for_opening};
use crate::tables::{EventId, Table};

/// `group` in two halves, for when the kernel rejects it as too large (`EINVAL`): something we
/// do not know of has taken a counter. Events on fixed counters, which most ratios refer to,
/// go into both halves; slots stay with their metrics. When only fixed events are left they
/// are halved, too. A group that cannot be split is returned as it is.
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
    let mut general = of(&|e| other(e) && spec(e).fixed.is_none());
    let mut both = always.clone();
    if general.len() + usize::from(!leaders.is_empty()) > 1 {
        both.extend(&fixed);
    } else {
        general.extend(&fixed);
    }
    // With metrics the first half is only slots, metrics and clocks: they stay readable
    // whatever happens to the rest.
    let middle = if leaders.is_empty() { general.len().div_ceil(2) } else { 0 };
    let (first, second) = general.split_at(middle);
    if second.is_empty() || (first.is_empty() && leaders.is_empty()) {
        return vec![group.clone()];
    }
    [[&leaders[..], first].concat(), second.to_vec()]
        .into_iter()
        .map(|mut events| {
            events.extend(&both);
            sort_for_opening(table, budget, &mut events);
            Group { events }
        })
        .collect()
}
