//! The bound that recurrences put on a block: no iteration can begin more often than the values
//! that it needs from earlier ones are there.
//!
//! | file | concern |
//! |---|---|
//! | `graph` | values, and how long one takes to the next |
//! | `forward` | how stored values reach their loads |
//! | `between` | how much arithmetic lies between a load and its store |
//! | `components` | the parts of the graph in which values come back to themselves |
//! | `ratio` | the slowest cycle: latencies over iterations |

mod between;
mod components;
mod edge;
mod forward;
mod graph;
mod ratio;
#[cfg(test)]
mod tests;

pub use edge::Edge;

use super::code::Code;
use super::links::Link;
use super::memory::Carried;
use crate::latency::Latencies;
use graph::Graph;
use ratio::{Cycle, WeightedEdge};

/// Parts of a cycle: latencies are known to a thousandth.
const PARTS: f64 = 1000.0;
/// Longest latency, in cycles; nothing real is longer.
const LONGEST: f64 = 1e6;

/// Values that depend on themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    /// Cycles an iteration takes at least: the middle of its latencies' ranges.
    pub cycles: f64,
    /// With the least latencies.
    pub low: f64,
    /// With the greatest ones.
    pub high: f64,
    /// Iterations that a value takes to come back.
    pub iterations: u64,
    /// WeightedEdge by edge, beginning at the earliest instruction.
    pub path: Vec<Edge>,
}

/// The slowest cycle of each group of values that depend on each other, the slowest first.
pub fn recurrences(
    code: &Code,
    links: &[Link],
    carried: &[Carried],
    latencies: &Latencies,
) -> Vec<Recurrence> {
    let graph = Graph::of(code, links, carried, latencies);
    let mut targets = vec![Vec::new(); graph.nodes.len()];
    for way in &graph.ways {
        targets[way.from].push(way.to);
    }
    let component = components::components(&targets);
    let mut groups: Vec<(usize, usize)> = (graph.ways.iter().enumerate())
        .filter(|(_, way)| component[way.from] == component[way.to])
        .map(|(number, way)| (component[way.from], number))
        .collect();
    groups.sort_unstable();
    let mut found: Vec<Recurrence> = groups
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|group| {
            let ways: Vec<Edge> = group.iter().map(|(_, number)| graph.ways[*number]).collect();
            slowest(&ways)
        })
        .collect();
    found.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    found
}

/// The slowest cycle of one component.
fn slowest(ways: &[Edge]) -> Option<Recurrence> {
    let mut nodes: Vec<usize> = ways.iter().map(|w| w.from).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let of = |node: usize| nodes.binary_search(&node).ok();
    let solve = |cycles: fn(&Edge) -> f64| {
        let edge = |way: &Edge| {
            Some(WeightedEdge {
                from: of(way.from)?,
                to: of(way.to)?,
                weight: (cycles(way).clamp(0.0, LONGEST) * PARTS).round() as u32,
                distance: way.delta,
            })
        };
        let edges: Option<Vec<WeightedEdge>> = ways.iter().map(edge).collect();
        ratio::maximum(nodes.len(), &edges?)
    };
    let ratio = |c: &Cycle| c.weight as f64 / c.distance as f64 / PARTS;
    let middle = |way: &Edge| f64::midpoint(way.latency.low, way.latency.high);
    let cycle = solve(middle)?;
    let cycles = ratio(&cycle);
    let ranges = ways.iter().any(|w| w.latency.low != w.latency.high);
    let (low, high) = match ranges {
        true => (
            solve(|w| w.latency.low).as_ref().map_or(0.0, ratio),
            solve(|w| w.latency.high).as_ref().map_or(cycles, ratio),
        ),
        false => (cycles, cycles),
    };
    let mut path: Vec<Edge> = cycle.edges.iter().map(|number| ways[*number]).collect();
    let earliest = (0..path.len()).min_by_key(|i| path[*i].reader).unwrap_or(0);
    path.rotate_left(earliest);
    Some(Recurrence { cycles, low, high, iterations: cycle.distance, path })
}
