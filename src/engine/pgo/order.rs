//! Functions in an order in which callers are near what they call: call-chain clustering (Ottoni and Maher, "Optimizing
//! Function Placement for Large-Scale Data-Center Applications", CGO 2017).

use report::documents::pgo::{EdgeKind, Pgo};
use std::collections::BTreeMap;

/// Longest cluster in bytes: a page, as in that paper.
const LONGEST: u64 = 4096;

/// A cluster of functions.
struct Cluster {
    functions: Vec<usize>,
    bytes: u64,
    executed: u64,
}

/// The symbols of the functions of a profile that were executed, if they have one.
pub(super) fn order(document: &Pgo) -> Vec<String> {
    let all = &document.functions;
    let executed = |number: usize| all[number].executed.unwrap_or(0);
    let at = |address| {
        let after = all.partition_point(|one| one.start <= address);
        after.checked_sub(1).filter(|number| address < all[*number].end)
    };
    // By callee and caller.
    let mut calls: BTreeMap<usize, BTreeMap<usize, u64>> = BTreeMap::new();
    for edge in document.edges.iter().filter(|e| matches!(e.kind, EdgeKind::Call | EdgeKind::Tail))
    {
        let (Some(from), Some(to), Some(count)) = (at(edge.from), at(edge.to), edge.count) else {
            continue;
        };
        if from != to && all[to].start == edge.to {
            let sum = calls.entry(to).or_default().entry(from).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let mut hot: Vec<usize> = (0..all.len()).filter(|number| executed(*number) > 0).collect();
    hot.sort_by_key(|number| std::cmp::Reverse(executed(*number)));
    let mut cluster_of: Vec<usize> = (0..all.len()).collect();
    let mut clusters: Vec<Option<Cluster>> = (0..all.len())
        .map(|number| {
            let bytes = all[number].end.0.saturating_sub(all[number].start.0);
            Some(Cluster { functions: vec![number], bytes, executed: executed(number) })
        })
        .collect();
    for number in hot.iter().copied() {
        let callers = calls.get(&number).into_iter().flatten();
        let Some((caller, _)) = callers.max_by_key(|(_, count)| **count) else { continue };
        let (to, own) = (cluster_of[*caller], cluster_of[number]);
        let bytes = |cluster: usize| clusters[cluster].as_ref().map_or(0, |one| one.bytes);
        if to == own || executed(*caller) == 0 || bytes(to) + bytes(own) > LONGEST {
            continue;
        }
        let (Some(moved), Some(into)) = (clusters[own].take(), clusters[to].as_mut()) else {
            continue;
        };
        moved.functions.iter().for_each(|function| cluster_of[*function] = to);
        into.bytes += moved.bytes;
        into.executed = into.executed.saturating_add(moved.executed);
        into.functions.extend(moved.functions);
    }
    let mut clusters: Vec<Cluster> =
        clusters.into_iter().flatten().filter(|one| one.executed > 0).collect();
    let density = |one: &Cluster| one.executed as f64 / one.bytes.max(1) as f64;
    clusters.sort_by(|a, b| density(b).total_cmp(&density(a)));
    let functions = clusters.into_iter().flat_map(|one| one.functions);
    let named = functions.filter(|number| all[*number].name != all[*number].start.to_string());
    named.map(|number| all[number].name.clone()).collect()
}
