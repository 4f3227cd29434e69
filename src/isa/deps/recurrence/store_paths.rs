//! Length of the arithmetic between a load and the store of its value: on Golden Cove, forwarding is
//! slower if it is a single cycle (docs/results/accuracy.md).

use super::edge::Edge;

/// Paths of this many cycles or more are not short.
const LONG: f64 = 2.0;
/// Iterations that a path to the store may touch: it may cross one loop boundary.
const ITERATIONS: usize = 2;

/// The edges through registers and flags, by source node.
pub struct StorePaths {
    edges: Vec<Vec<(usize, f64, u32)>>,
    stored: Vec<bool>,
}

impl StorePaths {
    /// The paths of a graph with this many `nodes`; `stored` are the nodes that loads depend on.
    pub fn of(nodes: usize, edges: &[Edge], stored: impl Iterator<Item = usize>) -> Self {
        let mut paths = Self { edges: vec![Vec::new(); nodes], stored: vec![false; nodes] };
        for edge in edges {
            paths.edges[edge.from].push((edge.to, edge.latency.low, edge.delta));
        }
        for node in stored {
            paths.stored[node] = true;
        }
        paths
    }

    /// Whether the longest path to a store, from these nodes with their cycles after the load, is at
    /// least one and less than [`LONG`] cycles.
    pub fn is_short(&self, loaded: Vec<(usize, f64)>) -> bool {
        let mut most = vec![[None; ITERATIONS]; self.stored.len()];
        let mut ahead: Vec<(usize, f64, usize)> =
            loaded.into_iter().map(|(node, cycles)| (node, cycles, 0)).collect();
        let mut longest = 0.0;
        while let Some((node, cycles, iteration)) = ahead.pop() {
            // Clamping to `LONG` bounds the visits of a node.
            let cycles = f64::min(cycles, LONG);
            if iteration >= ITERATIONS || most[node][iteration].is_some_and(|m| m >= cycles) {
                continue;
            }
            most[node][iteration] = Some(cycles);
            if self.stored[node] {
                longest = f64::max(longest, cycles);
            }
            let next = self.edges[node].iter();
            ahead.extend(next.map(|(to, latency, delta)| {
                (*to, cycles + latency, iteration + usize::try_from(*delta).unwrap_or(ITERATIONS))
            }));
        }
        (1.0..LONG).contains(&longest)
    }
}
