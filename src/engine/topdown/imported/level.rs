//! How deep a tree is shown: the level that the recording has all of.

use tma::counts::Counts;
use tma::quantity::Missing;
use tma::tables::{EventId, Table};
use tma::tree::Evaluator;

/// Events that a note lists.
const LISTED: usize = 3;

/// The deepest level all of whose nodes have their counts; 1 if there is none. A shallower level
/// may miss a node: on Zen, `smt_contention` has no children and is often left uncounted.
pub(super) fn deepest_complete(table: &Table, evaluator: &mut Evaluator, parts: &[&Counts]) -> u32 {
    let mut complete = vec![true; table.depth() as usize + 1];
    for counts in parts {
        let evaluation = evaluator.values(counts);
        for (n, node) in table.tree() {
            let value = &evaluation.nodes[usize::from(n)].quantity.value;
            complete[node.level as usize] &= matches!(value, Ok(_) | Err(Missing::Undefined(_)));
        }
    }
    (1..=table.depth()).rev().find(|&l| complete[l as usize]).unwrap_or(1)
}

/// Why the level after the deepest complete one is not shown, where the recording has part of it.
pub(super) fn next_level(
    table: &Table,
    evaluator: &mut Evaluator,
    parts: &[&Counts],
    level: u32,
) -> Option<String> {
    let next = level + 1;
    let nodes = || table.tree().filter(|(_, node)| node.level == next);
    let mut some = false;
    let mut lacking: Vec<EventId> = Vec::new();
    for counts in parts {
        let evaluation = evaluator.values(counts);
        let has_value = |n| evaluation.nodes[usize::from(n)].quantity.value.is_ok();
        some |= nodes().any(|(n, _)| has_value(n));
        let counted = |event: &EventId| {
            counts.groups.iter().any(|group| {
                let at = group.events().position(|own| own == *event);
                at.is_some_and(|at| group.total(at).is_ok())
            })
        };
        for (n, _) in nodes().filter(|(n, _)| !has_value(*n)) {
            let needs = table.events_of(n, false).iter().filter(|event| !counted(event));
            lacking.extend(needs);
        }
    }
    lacking.sort_unstable();
    lacking.dedup();
    if !some || lacking.is_empty() {
        return None;
    }
    let name = |event: &EventId| table.events[usize::from(*event)].name.as_str();
    let mut names: Vec<&str> = lacking.iter().take(LISTED).map(name).collect();
    let more = format!("{} more", lacking.len().saturating_sub(LISTED));
    if lacking.len() > LISTED {
        names.push(&more);
    }
    Some(format!(
        "level {next} is left out: the recording has no count of {}; --level {next} shows the rest of it",
        names.join(", ")
    ))
}
