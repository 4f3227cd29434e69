//! How much arithmetic lies between a load and the store that its value goes to: forwarding takes
//! longer on Golden Cove where it is short (docs/dependencies.md).

use super::graph::Way;

/// What of two cycles and more is no longer short.
const LONG: f64 = 2.0;

/// The ways through registers and flags, by where they begin.
pub struct Between {
    ways: Vec<Vec<(usize, f64)>>,
    stored: Vec<bool>,
}

impl Between {
    /// Of a graph with so many `nodes`; `stored` are those that others load.
    pub fn of(nodes: usize, ways: &[Way], stored: impl Iterator<Item = usize>) -> Self {
        let mut between = Self { ways: vec![Vec::new(); nodes], stored: vec![false; nodes] };
        for way in ways {
            between.ways[way.from].push((way.to, way.latency.low));
        }
        for node in stored {
            between.stored[node] = true;
        }
        between
    }

    /// Whether from one of these values, each computed so many cycles behind its load, the next
    /// store is one cycle of arithmetic away from the load: neither none nor two.
    pub fn is_short(&self, mut ahead: Vec<(usize, f64)>) -> bool {
        let mut least = f64::INFINITY;
        let mut seen: Vec<(usize, f64)> = Vec::new();
        while let Some((node, cycles)) = ahead.pop() {
            let known = seen.iter().position(|(other, _)| *other == node);
            if cycles >= LONG || known.is_some_and(|at| seen[at].1 <= cycles) {
                continue;
            }
            match known {
                Some(at) => seen[at].1 = cycles,
                None => seen.push((node, cycles)),
            }
            if self.stored[node] {
                least = least.min(cycles);
            }
            ahead.extend(self.ways[node].iter().map(|(to, latency)| (*to, cycles + latency)));
        }
        (1.0..LONG).contains(&least)
    }
}
