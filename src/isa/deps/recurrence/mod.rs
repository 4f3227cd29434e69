//! The latency bound of loop-carried dependencies: the cycles per iteration of a dependency cycle are
//! the sum of its latencies divided by the iterations that it spans (the RecMII of modulo scheduling).

mod forward;
mod graph;
mod ratio;
#[cfg(test)]
mod tests;

use super::code::Code;
use super::memory::MemoryDependency;
use super::register_deps::RegisterDependency;
use crate::latency::Latencies;
use graph::Graph;
use ratio::{Cycle, WeightedEdge};

pub use graph::Edge;

/// Units per cycle of the integer weights.
const UNITS_PER_CYCLE: f64 = 1000.0;
/// Limit on latencies, in cycles.
const MAX_CYCLES: f64 = 1e6;

/// A loop-carried dependency cycle.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    /// Lower bound on the cycles per iteration, from the minima of its latency ranges.
    pub low: f64,
    /// Cycles per iteration from the midpoints: likely, but no bound.
    pub middle: f64,
    /// Cycles per iteration from the maxima.
    pub high: f64,
    /// Iterations that the cycle spans.
    pub iterations: u64,
    /// Its edges in order, beginning at the earliest instruction: the slowest cycle by the midpoints.
    pub path: Vec<Edge>,
}

/// The slowest cycle of each strongly connected component, the one with the greatest lower bound first.
///
/// Also returns the edges of the graph, in no particular order.
pub fn recurrences(
    code: &Code,
    register_deps: &[RegisterDependency],
    memory_deps: &[MemoryDependency],
    latencies: &Latencies,
) -> (Vec<Recurrence>, Vec<Edge>) {
    let graph = Graph::of(code, register_deps, memory_deps, latencies);
    let mut targets = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        targets[edge.from].push(edge.to);
    }
    let component = ratio::components(&targets);
    let mut groups: Vec<(usize, usize)> = (graph.edges.iter().enumerate())
        .filter(|(_, edge)| component[edge.from] == component[edge.to])
        .map(|(number, edge)| (component[edge.from], number))
        .collect();
    groups.sort_unstable();
    let mut found: Vec<Recurrence> = groups
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|group| {
            let edges: Vec<Edge> = group.iter().map(|(_, number)| graph.edges[*number]).collect();
            slowest(&edges)
        })
        .collect();
    found.sort_by(|a, b| b.low.total_cmp(&a.low).then(b.middle.total_cmp(&a.middle)));
    (found, graph.edges)
}

/// The slowest cycle of one component.
fn slowest(edges: &[Edge]) -> Option<Recurrence> {
    let mut nodes: Vec<usize> = edges.iter().map(|e| e.from).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let of = |node: usize| nodes.binary_search(&node).ok();
    let solve = |cycles: fn(&Edge) -> f64| {
        let weighted = |edge: &Edge| {
            Some(WeightedEdge {
                from: of(edge.from)?,
                to: of(edge.to)?,
                weight: (cycles(edge).clamp(0.0, MAX_CYCLES) * UNITS_PER_CYCLE).round() as u32,
                distance: edge.delta,
            })
        };
        let all: Option<Vec<WeightedEdge>> = edges.iter().map(weighted).collect();
        ratio::maximum(nodes.len(), &all?)
    };
    let ratio = |c: &Cycle| c.weight as f64 / c.distance as f64 / UNITS_PER_CYCLE;
    let middle = |edge: &Edge| f64::midpoint(edge.latency.low, edge.latency.high);
    let cycle = solve(middle)?;
    let likely = ratio(&cycle);
    let ranges = edges.iter().any(|e| e.latency.low != e.latency.high);
    let (low, high) = match ranges {
        true => (
            solve(|e| e.latency.low).as_ref().map_or(0.0, ratio),
            solve(|e| e.latency.high).as_ref().map_or(likely, ratio),
        ),
        false => (likely, likely),
    };
    let mut path: Vec<Edge> = cycle.edges.iter().map(|number| edges[*number]).collect();
    let earliest = (0..path.len()).min_by_key(|i| path[*i].reader).unwrap_or(0);
    path.rotate_left(earliest);
    Some(Recurrence { low, middle: likely, high, iterations: cycle.distance, path })
}
