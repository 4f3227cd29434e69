//! How much arithmetic lies between a load and the store that its value goes to: forwarding takes
//! longer on Golden Cove where it is short (docs/dependencies.md).

use super::edge::Edge;

/// What of two cycles and more is no longer short.
const LONG: f64 = 2.0;
/// A path to the store may go round the loop once: iterations that it may touch.
const ITERATIONS: usize = 2;

/// The ways through registers and flags, by where they begin.
pub struct Between {
    ways: Vec<Vec<(usize, f64, u32)>>,
    stored: Vec<bool>,
}

impl Between {
    /// Of a graph with so many `nodes`; `stored` are those that others load.
    pub fn of(nodes: usize, ways: &[Edge], stored: impl Iterator<Item = usize>) -> Self {
        let mut between = Self { ways: vec![Vec::new(); nodes], stored: vec![false; nodes] };
        for way in ways {
            between.ways[way.from].push((way.to, way.latency.low, way.delta));
        }
        for node in stored {
            between.stored[node] = true;
        }
        between
    }

    /// Whether from these values, each computed so many cycles behind its load, the longest path
    /// to a store is one cycle: neither none nor two.
    pub fn is_short(&self, loaded: Vec<(usize, f64)>) -> bool {
        let mut most = vec![[None; ITERATIONS]; self.stored.len()];
        let mut ahead: Vec<(usize, f64, usize)> =
            loaded.into_iter().map(|(node, cycles)| (node, cycles, 0)).collect();
        let mut longest = 0.0;
        while let Some((node, cycles, iteration)) = ahead.pop() {
            // Beyond `LONG` nothing is told apart, so each value is met a few times at most.
            let cycles = f64::min(cycles, LONG);
            if iteration >= ITERATIONS || most[node][iteration].is_some_and(|m| m >= cycles) {
                continue;
            }
            most[node][iteration] = Some(cycles);
            if self.stored[node] {
                longest = f64::max(longest, cycles);
            }
            let next = self.ways[node].iter();
            ahead.extend(next.map(|(to, latency, delta)| {
                (*to, cycles + latency, iteration + usize::try_from(*delta).unwrap_or(ITERATIONS))
            }));
        }
        (1.0..LONG).contains(&longest)
    }
}
