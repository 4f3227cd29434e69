//! `--drilldown`: level 1 first, then only below what is flagged, until a leaf.

use super::choose::Ask;
use super::live::{Core, LiveAsk, Nobody, Outcome, Update, cores, measure};
use crate::error::Result;
use crate::machine::Machine;
use crate::report::{NodeRow, Report};
use crate::tables::Table;

/// Measures level after level. The command runs once for each level reached, at most as often as
/// the tree is deep; each step counts the children of flagged nodes and all their ancestors.
pub(super) fn run(
    machine: &Machine,
    tables: Vec<(Table, Option<String>)>,
    ask: &LiveAsk,
    update: &mut dyn FnMut(Update),
) -> Result<Outcome> {
    let depth = tables.iter().map(|(t, _)| t.depth()).max().unwrap_or(1);
    if ask.command.is_some() {
        update(Update::Runs(depth.saturating_mul(ask.repeats.max(1))));
    }
    let mut found: Option<Outcome> = None;
    for level in 1..=depth {
        let mut step: Vec<Core> = Vec::new();
        for (table, pmu) in &tables {
            let Some(nodes) = nodes_below(table, found.as_ref().map(|o| &o.report), level) else {
                continue;
            };
            let narrowed = Ask { level: Some(level), nodes: Some(nodes), ..ask.ask.clone() };
            step.extend(cores(machine, vec![(table.clone(), pmu.clone())], &narrowed, true)?);
        }
        if step.is_empty() {
            break;
        }
        // Runs were announced for all levels together.
        let mut quiet = |u: Update| {
            if !matches!(u, Update::Runs(_)) {
                update(u);
            }
        };
        let next = measure(machine, &step, ask, None, &mut quiet, &mut Nobody)?;
        let ended = next.interrupted.is_some();
        found = Some(match found {
            None => next,
            Some(before) => merge(before, next),
        });
        if ended {
            break;
        }
    }
    let mut outcome = match found {
        Some(outcome) => outcome,
        None => measure(machine, &[], ask, None, update, &mut Nobody)?,
    };
    outcome.report.notes.push(
        "drill-down: each level was measured in a run of its own; rows of different levels come \
         from different runs"
            .into(),
    );
    Ok(outcome)
}

/// The node list of the next step: children of flagged nodes of `level - 1` with all their
/// ancestors; `None` where nothing is flagged there, or it has no children.
fn nodes_below(table: &Table, so_far: Option<&Report>, level: u32) -> Option<String> {
    let Some(report) = so_far else {
        let level_1: Vec<&str> =
            table.tree().filter(|(_, n)| n.level == 1).map(|(_, n)| n.id.as_str()).collect();
        return Some(level_1.join(","));
    };
    let flagged = |id: &str| {
        report.nodes.iter().any(|r| {
            r.id == id && r.flagged && r.place.core.as_deref().is_none_or(|c| c == table.name)
        })
    };
    let below: Vec<String> = table
        .tree()
        .filter(|(_, n)| n.level == level)
        .filter(|(_, n)| n.parent.is_some_and(|p| flagged(&table.nodes[usize::from(p)].id)))
        .map(|(_, n)| format!("{}^", n.id))
        .collect();
    (!below.is_empty()).then(|| below.join(","))
}

/// The newer run's rows, and in table order what only the older one has.
fn merge(before: Outcome, mut next: Outcome) -> Outcome {
    let older = before.report.nodes;
    let newer = std::mem::take(&mut next.report.nodes);
    let same = |a: &NodeRow, b: &NodeRow| a.id == b.id && a.place == b.place;
    let mut rows: Vec<NodeRow> = Vec::new();
    for row in &older {
        rows.push(newer.iter().find(|n| same(n, row)).unwrap_or(row).clone());
    }
    // New rows follow their parent and its descendants already there.
    for row in newer.iter().filter(|n| !older.iter().any(|o| same(n, o))) {
        let parent =
            rows.iter().position(|r| Some(&r.id) == row.parent.as_ref() && r.place == row.place);
        let at = parent.map_or(rows.len(), |p| {
            let deeper = rows[p + 1..].iter().take_while(|r| r.level > rows[p].level).count();
            p + 1 + deeper
        });
        rows.insert(at, row.clone());
    }
    let deepest = rows.iter().rev().find(|r| r.bottleneck).map(|r| r.id.clone());
    for row in &mut rows {
        row.bottleneck = deepest.as_ref() == Some(&row.id);
    }
    next.report.nodes = rows;
    next.report.level = next.report.level.max(before.report.level);
    next.report.notes.splice(0..0, before.report.notes);
    next.report.notes.dedup();
    next
}
