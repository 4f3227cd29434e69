//! Times a loop body as a loop: long against short runs.

use super::ClosedLoop;
use super::captured::Captured;
use super::executions::{execution, words};
use super::traced::{Ready, ready};
use crate::Snapshot;
use crate::checks::Footprint;
use crate::harness::RequiredState;
use crate::initial::Why;
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure;
use crate::values::REGISTERS;
use isa::code::Block;
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

impl Timer {
    /// Times the block as a loop, with the program's values where they were captured; `None` if it is no
    /// loop, `Err` says why it cannot be run as one.
    ///
    /// # Errors
    /// The sandbox cannot be started.
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
