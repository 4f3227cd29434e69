//! The plan run once, every access traced: how many iterations the loop really takes, and how it is
//! then run.

use super::plan::{FEWEST, MOST, Plan, plan};
use crate::Options;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::tracing::{Slot, needed};
use crate::harness::{RequiredState, forms};
use crate::initial::Why;
use crate::initial::discover::run_once;
use crate::initial::run_setup::RunSetup;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::{Ended, layout as at};
use crate::timing::measure::{Closed, EIGHTHS, Iterations};
use isa::code::Block;
use isa::flow::Iteration;
use std::collections::BTreeMap;
use tma::Result;

/// Least instructions between two passes of the counter where copies are chained.
const CHAINED_INSTRUCTIONS: usize = 64;
/// Bytes of code of one traced copy beyond its own: stores of registers and the condition.
const STORE_BYTES: usize = 8;

/// A loop ready to be timed.
pub(super) struct Ready {
    /// The traced run.
    pub setup: RunSetup,
    /// Whether its own exit or a counter ends the loop.
    pub how: Closed,
    /// Iterations of the long and the short run; where copies are chained, repetitions of all copies.
    pub iterations: Iterations,
    /// Copies in the code.
    pub copies: usize,
}

/// Traces the plans for this block; `Err` is the reason why it cannot be run as a loop.
///
/// # Errors
/// The sandbox cannot be started.
pub(super) fn ready(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    options: &Options,
) -> Result<std::result::Result<Ready, Why>> {
    let l1_bytes = options.core.l1_data.map(tma::Cache::bytes);
    let mut most = MOST.min(traceable(block));
    let mut reason = Why::from("its arrays would not fit the L1 data cache");
    while most >= FEWEST {
        let Some(plan) = plan(block, l1_bytes, most) else { break };
        match attempt(runner, block, required_state, options, &plan)? {
            Ok(ready) => return Ok(Ok(ready)),
            Err(why) => reason = why,
        }
        most = plan.iterations / 4;
    }
    runner.images(&BTreeMap::new())?;
    Ok(Err(reason))
}

/// Iterations that a traced run has room for.
fn traceable(block: &Block) -> usize {
    let (mut stored, mut code) = (0, block.bytes.len() + STORE_BYTES);
    for (before, after) in block.instructions.iter().map(needed) {
        for register in before.iter().chain(&after) {
            stored += Slot::size(*register);
            code += STORE_BYTES;
        }
    }
    let by_code = (at::CODE_SIZE - 0x4000) / code;
    by_code.min((at::TRACE_SIZE - 4096 - 8) / stored.max(1)).min(4096)
}

fn attempt(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    options: &Options,
    plan: &Plan,
) -> Result<std::result::Result<Ready, Why>> {
    runner.images(&plan.images)?;
    let run = |runner: &mut Runner, copies: usize| {
        run_once(runner, block, required_state, copies, &plan.values, options)
    };
    let setup = match run(runner, plan.iterations)? {
        Ok(setup) => setup,
        Err(failure) => return Ok(Err(failure.reason)),
    };
    let trip = setup.taken.iter().position(|taken| !taken).map_or(usize::MAX, |last| last + 1);
    if trip == setup.copies || (FEWEST..setup.copies).contains(&trip) {
        let eighth = trip / 8;
        let mut starts = [plan.values.registers; EIGHTHS];
        for (n, start) in starts.iter_mut().enumerate().skip(1) {
            // The rest of the loop after as many iterations.
            let after = match run(runner, n * eighth)? {
                Ok(part) => part.end.registers,
                Err(failure) => return Ok(Err(failure.reason)),
            };
            let Ok(after) = <[u64; 16]>::try_from(after) else {
                return Ok(Err("its registers could not be read".into()));
            };
            *start = after;
        }
        let setup = match run(runner, trip)? {
            Ok(setup) => setup,
            Err(failure) => return Ok(Err(failure.reason)),
        };
        if repeats(runner, block, required_state, &setup)? {
            let how = Closed::Exits(Box::new(starts));
            let iterations = Iterations { long: trip as u32, short: (trip - 2 * eighth) as u32 };
            return Ok(Ok(Ready { setup, how, iterations, copies: 1 }));
        }
        // A value that it writes decides when it leaves.
        return Ok(chained(block, setup, trip));
    }
    let all = setup.copies;
    Ok(chained(block, setup, all))
}

/// Copies chained by back edges that all go the same way in the first `iterations`.
fn chained(block: &Block, setup: RunSetup, iterations: usize) -> std::result::Result<Ready, Why> {
    let directions = &setup.taken[..iterations.min(setup.taken.len())];
    let taken = directions.first().copied().unwrap_or(true);
    // Its last one leaves, where it does.
    let same = directions.iter().filter(|t| **t == taken).count();
    if same + 1 < directions.len() {
        return Err("its back edge is not always taken, and depends on values".into());
    }
    let counter = LoopCounter::of(block)?;
    let copies = CHAINED_INSTRUCTIONS.div_ceil(block.instructions.len()).max(1);
    let long = (iterations / copies) as u32 & !1;
    if long < 4 {
        return Err("it runs for too few iterations".into());
    }
    let how = Closed::Counted(counter, !taken);
    let iterations = Iterations { long, short: long / 2 };
    Ok(Ready { setup, how, iterations, copies })
}

/// Whether repeated runs with only registers restored take as many iterations each time: registers that change by
/// a fixed amount end as in the traced run.
fn repeats(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    setup: &RunSetup,
) -> Result<bool> {
    let mut shape = setup.shape(block, required_state, 1, BLOCK_CODE);
    shape.lines = false;
    let program = forms::closed(&shape, &setup.values.registers, 0, false);
    runner.worker()?.write(program.start, &program.bytes);
    let segment = Segment { entry: program.start, repeat: 1 };
    let (ended, _) = runner.run(&[segment], &[(0, 1)])?;
    let decoded: Vec<_> = block.instructions.iter().map(|i| i.decoded).collect();
    let iteration = Iteration::of(&decoded);
    let steps = |r: &usize| iteration.step(*r as u8).is_some_and(|step| step != 0);
    let mut counted: Vec<usize> = (0..16).filter(steps).collect();
    if counted.is_empty() {
        counted = (0..16).collect();
    }
    let end = runner.end_registers();
    Ok(ended == Ended::Done
        && runner.pages().as_ref() == Some(&setup.pages)
        && counted.iter().all(|r| end.get(*r) == setup.end.registers.get(*r)))
}
