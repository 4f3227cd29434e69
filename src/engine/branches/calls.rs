//! Edges of an event → calls between functions, targets of indirect branches, hard branches.

use crate::documents::branches::{CallRow, EdgeRow, IndirectRow, TargetRow};
use std::collections::{BTreeMap, HashMap};

/// A branch is hard if more of its executions are mispredicted (Litz et al., "CRISP", ASPLOS 2022).
const HARD: f64 = 0.15;
/// Fewer recorded executions tell nothing.
const LEAST: u64 = 10;
/// 95 % of a normal distribution, two-sided.
const NORMAL: f64 = 1.96;

/// Marks the branches of which more than 15 % of the taken ones were mispredicted, and not by chance.
pub fn mark_hard(edges: &mut [EdgeRow]) {
    let key = |edge: &EdgeRow| Some((edge.module.clone(), edge.from.clone()?));
    let mut sums: HashMap<_, (u64, u64)> = HashMap::new();
    for edge in edges.iter() {
        if let (Some(key), Some(wrong)) = (key(edge), edge.mispredicted) {
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + wrong, sum.1 + edge.count);
        }
    }
    for edge in edges {
        let sum = key(edge).and_then(|key| sums.get(&key));
        edge.hard = sum.is_some_and(|(wrong, all)| *all >= LEAST && least(*wrong, *all) > HARD);
    }
}

/// The lower end of the 95 % interval of a share (E. B. Wilson, JASA 22, 1927).
fn least(part: u64, all: u64) -> f64 {
    let (share, n) = (part as f64 / all.max(1) as f64, all.max(1) as f64);
    let z2 = NORMAL * NORMAL;
    let middle = share + z2 / (2.0 * n);
    let half = NORMAL * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    (middle - half) / (1.0 + z2 / n)
}

/// Calls and jumps from one function into another; returns are the same edges backwards.
pub fn calls(edges: &[EdgeRow]) -> Vec<CallRow> {
    let mut sums: BTreeMap<(String, String, String, String), CallRow> = BTreeMap::new();
    for edge in edges {
        let (Some(from), Some(to)) = (&edge.from_function, &edge.to_function) else { continue };
        let kind = edge.kind.as_deref().unwrap_or_default();
        let is_call = kind.ends_with("call");
        if !is_call && (from == to || matches!(kind, "return" | "other")) {
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
    let mut sums: BTreeMap<(&str, &str), IndirectRow> = BTreeMap::new();
    for edge in edges {
        let (Some(from), Some(kind)) = (&edge.from, &edge.kind) else { continue };
        if !kind.starts_with("indirect") {
            continue;
        }
        let row = sums.entry((&edge.module, from)).or_insert_with(|| IndirectRow {
            event: edge.event,
            module: edge.module.clone(),
            from: from.clone(),
            function: edge.from_function.clone(),
            kind: kind.clone(),
            ..IndirectRow::default()
        });
        row.count = row.count.saturating_add(edge.count);
        if let Some(wrong) = edge.mispredicted {
            row.mispredicted = Some(row.mispredicted.unwrap_or(0) + wrong);
        }
        row.targets.push(TargetRow {
            module: edge.to_module.clone(),
            to: edge.to.clone(),
            function: edge.to_function.clone(),
            count: edge.count,
            share: 0.0,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Wilson's interval of 10 of 20 and of 1 of 1, by hand.
    #[test]
    fn few_executions_are_not_called_hard() {
        assert!((least(10, 20) - 0.299).abs() < 0.001);
        assert!((least(1, 2) - 0.0945).abs() < 0.001);
        let edge = |count, wrong| EdgeRow {
            from: Some("0x1".into()),
            count,
            mispredicted: Some(wrong),
            ..EdgeRow::default()
        };
        let mut edges = [edge(1, 1)];
        mark_hard(&mut edges);
        assert!(!edges[0].hard);
        let mut edges = [edge(2, 0), edge(100, 40)];
        mark_hard(&mut edges);
        assert!(edges.iter().all(|edge| edge.hard), "a branch is hard with all its targets");
    }
}
