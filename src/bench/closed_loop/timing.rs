//! Times a loop body as a loop, by long against short runs. The plan is run once before, with every access traced:
//! this shows how many iterations the loop takes, and how it is to be run.

use super::ClosedLoop;
use super::captured::Captured;
use super::executions::{execution, words};
use super::plan::{FEWEST, MOST, Plan, plan};
use crate::checks::Footprint;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::{RequiredState, Slot, forms, needed};
use crate::initial::Why;
use crate::initial::discover::run_once;
use crate::initial::run_setup::RunSetup;
use crate::runner::{BLOCK_CODE, Runner};
use crate::sandbox::{Ended, layout as at};
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Closed, EIGHTHS, Iterations};
use crate::values::REGISTERS;
use crate::{Options, Snapshot};
use isa::code::Block;
use isa::flow::Iteration;
use std::collections::BTreeMap;
use tma::Result;

/// Offsets of the loop within a cache line, where its own is not known: compilers align loops to 16 or 32.
const ALIGNS: [usize; 2] = [0, 32];
/// Most repetitions of a whole loop.
const REPEAT: f64 = 64.0;
/// Fewest executions back to back.
const LEAST: u32 = 8;
/// Cycles of an execution in which start and end are negligible: fifty times as long.
const LONG: f64 = 500.0;
/// Cycles of executions to run back to back: in shorter ones, the set-up of 16 registers would be a notable part;
/// in longer ones, the overlap is not.
const OVERLAPPING: std::ops::Range<f64> = 150.0..4000.0;

/// Least instructions between two passes of the counter where copies are chained.
const CHAINED_INSTRUCTIONS: usize = 64;
/// Bytes of code of one traced copy beyond its own: stores of registers and the condition.
const STORE_BYTES: usize = 8;

impl Timer {
    /// Times the block as a loop, with the program's values where they were captured; `None` if it is no
    /// loop, `Err` says why it cannot be run as one.
    pub(crate) fn closed_loop(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
    ) -> Result<Option<std::result::Result<ClosedLoop, Why>>> {
        let own = self.options.snapshot.clone();
        let snapshot = own.filter(|snapshot| snapshot.is_of(block));
        let outcome = match snapshot {
            Some(snapshot) => self.time_captured(block, &snapshot)?,
            None if block.is_loop_body() && !self.options.straight => {
                self.time_planned(block, required_state)?
            }
            None => return Ok(None),
        };
        self.runner.images(&BTreeMap::new())?;
        Ok(Some(outcome))
    }

    fn time_captured(
        &mut self,
        block: &Block,
        snapshot: &Snapshot,
    ) -> Result<std::result::Result<ClosedLoop, Why>> {
        let mut executions = Vec::new();
        let (mut first, mut reason, mut dropped) = (None, Why::from(""), Vec::new());
        let mut footprint: Option<Footprint> = None;
        let mut overlapping = 0;
        for one in snapshot.others.iter().rev().chain([snapshot]) {
            match self.time_execution(block, one)? {
                Ok((captured, timed, overlaps)) => {
                    overlapping += usize::from(overlaps);
                    let reproduced = execution(captured.trips, &timed);
                    let own = captured.footprint();
                    footprint = Some(footprint.map_or(own, |other| other.larger(own)));
                    if reproduced.is_none() {
                        dropped.push("its samples disagree".to_owned());
                    }
                    // The first that is reproduced stands for the others where the document has one.
                    if reproduced.is_some() || executions.is_empty() {
                        first = Some((one, captured, timed));
                    }
                    executions.extend(reproduced);
                }
                Err(why) => {
                    dropped.push(why.to_string());
                    reason = why;
                }
            }
        }
        let Some((shown, captured, timed)) = first else { return Ok(Err(reason)) };
        executions.reverse();
        let (until, is_whole) = match &captured.bounded {
            None => ("to leaving it".to_owned(), true),
            Some(bounded) => {
                let lengths = match captured.eighth() {
                    None => "",
                    Some(_) => ", long against short runs, so that start and end do not count",
                };
                let by = match (bounded.counter, bounded.register) {
                    (None, Some(register)) => {
                        format!("{} is set to leave after them", REGISTERS[usize::from(register)])
                    }
                    _ => "its end was not reached, and a counter at its start ends it after them"
                        .to_owned(),
                };
                (format!("on; {by}{lengths}"), lengths.is_empty())
            }
        };
        let from = if snapshot.is_inside { "some iteration of" } else { "entering" };
        let mut how = format!(
            "{} iterations with the program's registers, memory and branches, from {from} the loop \
             {until}; {} cache lines restored before each{}{}",
            captured.trips,
            captured.lines.len(),
            if captured.is_relaxed() {
                "; its parts or jumps are at other distances than there"
            } else {
                ""
            },
            words(&executions, &dropped, is_whole, overlapping > 0)
        );
        if !std::ptr::eq(shown, snapshot) {
            how += &format!("; registers and pages are those of entry {}", shown.entry);
        }
        if overlapping > 0 {
            how += &format!(
                "; {} back to back, on memory as the last one left it, so that they overlap as in a \
                 program that calls the loop again at once",
                if overlapping < executions.len() { "some executions" } else { "executions" }
            );
        }
        Ok(Ok(ClosedLoop {
            iterations: captured.trips.min(1 << 20) as usize,
            timed,
            setup: None,
            footprint,
            values: captured.values,
            pages: captured.pages,
            copies: 1,
            aligns: Vec::new(),
            is_one_block: block.is_loop_body(),
            how,
            executions,
        }))
    }

    /// Times one execution of a captured loop; returns whether back to back with others.
    fn time_execution(
        &mut self,
        block: &Block,
        snapshot: &Snapshot,
    ) -> Result<std::result::Result<(Captured, FormTiming, bool), Why>> {
        let mut captured = match Captured::new(&mut self.runner, snapshot)? {
            Ok(captured) => captured,
            Err(why) => return Ok(Err(why.into())),
        };
        let look = captured.form(1, 1);
        let rough = match look.rough(&mut self.runner, &self.options, None, None)? {
            Ok(cycles) => cycles * captured.trips as f64,
            Err(failure) => return Ok(Err(failure.reason)),
        };
        let repeat = (self.options.cycles / rough).ceil().clamp(1.0, REPEAT) as u32;
        let is_counted = captured.bounded.as_ref().is_some_and(|one| one.counter.is_some());
        // Its iterations may differ, and the differences of lengths would be those of the last ones.
        captured.by_lengths = !is_counted || rough < LONG;
        let overlapping = match OVERLAPPING.contains(&rough) {
            true => captured.overlapping(&mut self.runner, snapshot)?,
            false => None,
        };
        if OVERLAPPING.contains(&rough) && overlapping.is_none() {
            // The attempt may have left another state.
            captured = match Captured::new(&mut self.runner, snapshot)? {
                Ok(again) => again.by_lengths(captured.by_lengths),
                Err(why) => return Ok(Err(why.into())),
            };
        }
        let placements = self.options.placements.clamp(1, 4);
        let form = match &overlapping {
            Some(found) => {
                captured.back_to_back(found, placements, (2 * repeat).clamp(LEAST, REPEAT as u32))
            }
            None => captured.form(placements, repeat),
        };
        let mut timed = FormTiming { usual: true, ..FormTiming::default() };
        let (trips, passes) = (captured.trips.min(1 << 20) as usize, self.options.passes);
        if let Some(failure) = self.timed_plausibly(block, &form, trips, passes, &mut timed)? {
            return Ok(Err(failure.reason));
        }
        if self.runner.pages().as_ref() != Some(&captured.pages) {
            return Ok(Err("a page was mapped during timing".into()));
        }
        Ok(Ok((captured, timed, overlapping.is_some())))
    }

    fn time_planned(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
    ) -> Result<std::result::Result<ClosedLoop, Why>> {
        let ready = match ready(&mut self.runner, block, required_state, &self.options)? {
            Ok(ready) => ready,
            Err(reason) => return Ok(Err(reason)),
        };
        let Ready { setup, how, iterations, copies } = ready;
        let mut shape = setup.shape(block, required_state, copies, 0);
        shape.lines = false;
        let own = self.options.address.map(|address| address as usize);
        let aligns: Vec<usize> = match self.options.align.or(own) {
            Some(align) => vec![align % 64],
            None => ALIGNS.into_iter().take(self.options.placements.clamp(1, 2)).collect(),
        };
        let look = measure::closed(&shape, &how, iterations, 1, &aligns[..1]);
        let rough = match look.rough(&mut self.runner, &self.options, None, None)? {
            Ok(cycles) => cycles,
            Err(failure) => return Ok(Err(failure.reason)),
        };
        let (long, words) = match &how {
            measure::Closed::Exits(..) => (iterations.long as usize, "ended by its own exit"),
            measure::Closed::Counted(_, false) => {
                (iterations.long as usize * copies, "its copies chained by their back edges")
            }
            measure::Closed::Counted(_, true) => (
                iterations.long as usize * copies,
                "its copies chained by their back edges, whose condition is inverted",
            ),
        };
        let repeat = (self.options.cycles / (rough * long as f64)).ceil().clamp(1.0, REPEAT) as u32;
        let form = measure::closed(&shape, &how, iterations, repeat, &aligns);
        let mut timed = FormTiming { usual: true, ..FormTiming::default() };
        let passes = self.options.passes;
        if let Some(failure) = self.timed_plausibly(block, &form, long, passes, &mut timed)? {
            return Ok(Err(failure.reason));
        }
        if self.runner.pages().as_ref() != Some(&setup.pages) {
            return Ok(Err("a page was mapped during timing".into()));
        }
        let how = format!("{long} iterations, {words}");
        let (values, pages) = (setup.values.clone(), setup.pages.clone());
        let (setup, iterations, is_one_block) = (Some(setup), long, true);
        Ok(Ok(ClosedLoop {
            timed,
            setup,
            values,
            pages,
            copies,
            iterations,
            aligns,
            is_one_block,
            footprint: None,
            how,
            executions: Vec::new(),
        }))
    }
}

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
    let ended = runner.run_once(&program)?;
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
