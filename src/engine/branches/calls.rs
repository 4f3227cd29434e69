//! Edges of an event → calls between functions, targets of indirect branches.

use report::documents::branches::{BranchKind, CallRow, EdgeRow, IndirectRow, TargetRow};
use std::collections::BTreeMap;
use tma::Address;

/// Calls and jumps from one function into another; returns are the same edges backwards.
pub fn calls(edges: &[EdgeRow]) -> Vec<CallRow> {
    let mut sums: BTreeMap<(String, String, String, String), CallRow> = BTreeMap::new();
    for edge in edges {
        let (Some(from), Some(to)) = (&edge.from_function, &edge.to_function) else { continue };
        let is_call = edge.kind.is_some_and(BranchKind::is_call);
        let is_no_jump = matches!(edge.kind, Some(BranchKind::Return | BranchKind::Other));
        if !is_call && (from == to || is_no_jump) {
            continue;
        }
        let to_module = edge.to_module.clone().unwrap_or_else(|| edge.module.clone());
        let key = (edge.module.clone(), from.clone(), to_module.clone(), to.clone());
        let row = sums.entry(key).or_insert_with(|| CallRow {
            event: edge.event,
            module: edge.module.clone(),
            from: from.clone(),
            to: to.clone(),
            to_module: edge.to_module.clone(),
            count: 0,
        });
        row.count = row.count.saturating_add(edge.count);
    }
    let mut rows: Vec<CallRow> = sums.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

/// Indirect jumps and calls with their targets.
pub fn indirect(edges: &[EdgeRow]) -> Vec<IndirectRow> {
    let mut sums: BTreeMap<(&str, Address), IndirectRow> = BTreeMap::new();
    for edge in edges {
        let (Some(from), Some(kind)) = (edge.from, edge.kind) else { continue };
        if !kind.is_indirect() {
            continue;
        }
        let row = sums.entry((&edge.module, from)).or_insert_with(|| IndirectRow {
            event: edge.event,
            module: edge.module.clone(),
            from,
            function: edge.from_function.clone(),
            kind,
            hard: edge.hard,
            ..IndirectRow::default()
        });
        row.count = row.count.saturating_add(edge.count);
        row.marked = row.marked.saturating_add(edge.marked);
        if let Some(wrong) = edge.mispredicted {
            row.mispredicted = Some(row.mispredicted.unwrap_or(0) + wrong);
        }
        row.targets.push(TargetRow {
            module: edge.to_module.clone(),
            to: edge.to,
            function: edge.to_function.clone(),
            count: edge.count,
            share: 0.0,
            mispredicted: edge.mispredicted,
            marked: edge.marked,
        });
    }
    let mut rows: Vec<IndirectRow> = sums.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    for row in &mut rows {
        let all = row.count as f64;
        row.targets.iter_mut().for_each(|target| target.share = target.count as f64 / all);
    }
    rows
}
