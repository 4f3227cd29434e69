//! Whether mispredictions can matter, before they are recorded.

use super::counted::Counted;
use super::pieces::Function;
use iced_x86::FlowControl;

/// Cycles of a misprediction, if they are not known yet.
const USUAL: f64 = 30.0;

/// The most that mispredictions can cost, in cycles: a conditional branch is mispredicted no more often than it
/// goes the rarer way, an indirect one each time.
pub(super) fn mispredictions(
    functions: &[Function],
    counted: &Counted,
    penalty: Option<f64>,
) -> f64 {
    let most: f64 = functions.iter().map(|function| of_function(function, counted)).sum();
    most * penalty.unwrap_or(USUAL)
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

/// Executions of the block's branch that go the rarer way.
fn rarer(counted: &Counted, function: &Function, block: usize) -> Option<f64> {
    let row = counted.branches(&function.module, function.range(block)).last()?;
    let (taken, not) = (row.taken?, row.not_taken?);
    Some(taken.min(not) as f64)
}
