//! Whether mispredictions can matter, before they are recorded.

use super::counted::Counted;
use super::pieces::Function;
use iced_x86::FlowControl;

/// The most cycles of a misprediction, where they are not known. Published are 11 to 18 (AMD, Software Optimization Guide
/// for family 19h) and about 15 to 20 (A. Fog, The microarchitecture of Intel, AMD and VIA CPUs); a branch waits for what
/// it depends on before that, as the self-test's does for a forwarded load and a multiplication: 25 to 35 in all.
pub(super) const LONGEST: f64 = 40.0;
/// The least cycles of a misprediction, by the guide of AMD.
pub(super) const SHORTEST: f64 = 11.0;
/// Mispredictions of a branch at most, as a multiple of its rarer way: 1.6 at 1/8 on Redwood Cove, as executions after
/// a rare one are mispredicted, too.
const AFTER_RARE: f64 = 2.0;

/// The most that mispredictions can cost, in cycles: those of a conditional branch are few where it goes the rarer way
/// in few of its executions; an indirect one is mispredicted each time.
pub(super) fn mispredictions(
    functions: &[Function],
    counted: &Counted,
    penalty: Option<f64>,
) -> f64 {
    let most: f64 = functions.iter().map(|function| of_function(function, counted)).sum();
    most * penalty.unwrap_or(LONGEST)
}

fn of_function(function: &Function, counted: &Counted) -> f64 {
    (0..function.flow.blocks.len()).map(|block| most(counted, function, block)).sum()
}

/// The most mispredictions of a block's branch.
pub(super) fn most(counted: &Counted, function: &Function, block: usize) -> f64 {
    let Some((_, last)) = function.instructions(block).last() else { return 0.0 };
    match last.decoded.flow_control() {
        FlowControl::IndirectBranch | FlowControl::IndirectCall => function.executed(block),
        FlowControl::ConditionalBranch => {
            rarer(counted, function, block).unwrap_or_else(|| function.executed(block))
        }
        _ => 0.0,
    }
}

/// Executions of the block's branch that can be mispredicted, by how often it goes the rarer way.
fn rarer(counted: &Counted, function: &Function, block: usize) -> Option<f64> {
    let row = counted.branches(&function.module, function.range(block)).last()?;
    let (taken, not) = (row.taken?, row.not_taken?);
    Some((AFTER_RARE * taken.min(not) as f64).min((taken + not) as f64))
}
