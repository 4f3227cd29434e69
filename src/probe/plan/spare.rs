//! Hot blocks that need no probe, since their counts follow from those of others.
//!
//! The blocks without a probe may form no circle between the components of the function: as many as a
//! spanning tree has. Those that run most often are taken (Knuth and Stevenson, 1973; Ball and Larus,
//! TOPLAS 16, 1994). Blocks that hardly run keep their probes: they cost nothing, and the sums that no
//! count is derived from are the check of all.

use super::components::{Joined, components};
use crate::facts::Function;

/// Blocks without samples that are passed through between two that have some.
const PASSED: usize = 8;

/// The blocks that need no probe. `samples` are those of each block, `costs` what its probe costs each time
/// it runs; blocks that cannot have one have no cost.
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

/// How often each block runs, roughly: samples for each instruction. One without samples between two that
/// have some runs, too.
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
        let most = |of: &[usize]| of.iter().map(|b| runs[*b]).fold(0.0, f64::max);
        let passed = |number: usize| {
            let block = &blocks[number];
            let from = if block.is_entered { f64::INFINITY } else { most(&before[number]) };
            runs[number].max(from.min(most(&block.successors)))
        };
        runs = (0..blocks.len()).map(passed).collect();
    }
    runs
}
