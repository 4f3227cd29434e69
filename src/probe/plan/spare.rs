//! Hot blocks that need no probe, since their counts follow from others.
//!
//! Blocks without a probe may form no cycle between the components of the function: a maximum
//! spanning tree by executions (Knuth and Stevenson, 1973; Ball and Larus, TOPLAS 16, 1994). Blocks
//! that hardly run have a probe: it costs nothing, and sums from which no count is derived check
//! all counts.

use super::components::{Joined, components};
use crate::facts::Function;

/// Most blocks without samples between two with samples that count as run.
const PASSED: usize = 8;

/// The blocks that need no probe. `samples` and `costs` (of its probe per execution) are by block;
/// blocks that cannot have a probe have no cost.
pub(super) fn spare(function: &Function, costs: &[Option<f64>], samples: &[u64]) -> Vec<usize> {
    let components = components(function);
    let mut joined = Joined::new(components.number);
    let mut join = |block: usize| joined.join(components.into[block], components.out[block]);
    for (block, cost) in costs.iter().enumerate() {
        if cost.is_none() {
            join(block);
        }
    }
    let runs = runs(function, samples);
    let cost = |block: usize| costs[block].unwrap_or(0.0) * runs[block];
    let mut hot: Vec<usize> = (0..costs.len()).filter(|block| cost(*block) > 0.0).collect();
    hot.sort_by(|a, b| cost(*b).total_cmp(&cost(*a)));
    hot.retain(|block| join(*block));
    hot
}

/// Rough frequency of each block: samples per instruction. A block without samples between two with
/// samples runs, too.
fn runs(function: &Function, samples: &[u64]) -> Vec<f64> {
    let blocks = &function.blocks;
    let each = |(samples, block): (&u64, &crate::facts::Block)| {
        *samples as f64 / block.instructions.len().max(1) as f64
    };
    let mut runs: Vec<f64> = samples.iter().zip(blocks).map(each).collect();
    let mut before = vec![Vec::new(); blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        block.successors.iter().for_each(|to| before[*to].push(number));
    }
    for _ in 0..PASSED {
        let most = |all: &[usize]| all.iter().map(|b| runs[*b]).fold(0.0, f64::max);
        let passed = |number: usize| {
            let block = &blocks[number];
            let from = if block.is_entered { f64::INFINITY } else { most(&before[number]) };
            runs[number].max(from.min(most(&block.successors)))
        };
        runs = (0..blocks.len()).map(passed).collect();
    }
    runs
}
