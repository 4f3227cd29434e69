//! Times a loop body as a loop: long against short runs.

use super::captured::Captured;
use super::executions::{execution, words};
use super::outcome::ClosedLoop;
use super::traced::{Ready, ready};
use crate::Snapshot;
use crate::harness::required_state::RequiredState;
use crate::initial::init::REGISTERS;
use crate::profiler::Profiler;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure;
use isa::code::Block;
use std::collections::BTreeMap;
use tma::Result;

/// Offsets of the loop within a cache line, where its own is not known: compilers align loops to 16 or 32.
const ALIGNS: [usize; 2] = [0, 32];
/// Most repetitions of a whole loop.
const REPEAT: f64 = 64.0;

impl Profiler {
    /// Times the block as a loop, with the program's values where they were captured; `None` if it is no
    /// loop, `Err` says why it cannot be run as one.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(crate) fn closed_loop(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
    ) -> Result<Option<std::result::Result<ClosedLoop, String>>> {
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
    ) -> Result<std::result::Result<ClosedLoop, String>> {
        let mut executions = Vec::new();
        let (mut first, mut reason, mut dropped) = (None, String::new(), Vec::new());
        for one in snapshot.others.iter().rev().chain([snapshot]) {
            match self.time_execution(block, one)? {
                Ok((captured, timed)) => {
                    let reproduced = execution(captured.trips, &timed);
                    if reproduced.is_none() {
                        dropped.push("its samples disagree".to_owned());
                    }
                    // The first that is reproduced stands for the others where the document has one.
                    if reproduced.is_some() || executions.is_empty() {
                        first = Some((captured, timed));
                    }
                    executions.extend(reproduced);
                }
                Err(why) => {
                    dropped.push(why.clone());
                    reason = why;
                }
            }
        }
        let Some((captured, timed)) = first else { return Ok(Err(reason)) };
        executions.reverse();
        let (until, is_whole) = match &captured.bounded {
            None => ("to leaving it".to_owned(), true),
            Some(bounded) => {
                let name = REGISTERS[usize::from(bounded.register)];
                let lengths = match bounded.eighth() {
                    0 => "",
                    _ => ", long against short runs, so that start and end do not count",
                };
                (format!("on; {name} is set to leave after them{lengths}"), lengths.is_empty())
            }
        };
        let how = format!(
            "{} iterations with the program's registers, memory and branches, from entering the loop \
             {until}; {} cache lines restored before each{}{}",
            captured.trips,
            captured.lines.len(),
            if captured.is_relaxed() { "; its short jumps are longer than there" } else { "" },
            words(&executions, &dropped, is_whole)
        );
        Ok(Ok(ClosedLoop {
            iterations: captured.trips.min(1 << 20) as usize,
            timed,
            setup: None,
            values: captured.values,
            pages: captured.pages,
            copies: 1,
            aligns: Vec::new(),
            is_one_block: block.is_loop_body(),
            how,
            executions,
        }))
    }

    /// Times one execution of a captured loop.
    fn time_execution(
        &mut self,
        block: &Block,
        snapshot: &Snapshot,
    ) -> Result<std::result::Result<(Captured, FormTiming), String>> {
        let captured = match Captured::new(&mut self.runner, snapshot)? {
            Ok(captured) => captured,
            Err(why) => return Ok(Err(format!("not with the program's values: {why}"))),
        };
        let look = captured.form(1, 1);
        let rough = match look.rough(&mut self.runner, &self.options, None)? {
            Ok(cycles) => cycles * captured.trips as f64,
            Err(failure) => return Ok(Err(failure.reason)),
        };
        let repeat = (self.options.cycles / rough).ceil().clamp(1.0, REPEAT) as u32;
        let form = captured.form(self.options.placements.clamp(1, 4), repeat);
        let mut timed = FormTiming { usual: true, ..FormTiming::default() };
        let ends = (captured.trips.min(1 << 20) as usize, self.options.passes);
        if let Some(failure) = self.timed_plausibly(block, &form, ends, &mut timed)? {
            return Ok(Err(failure.reason));
        }
        if self.runner.pages().as_ref() != Some(&captured.pages) {
            return Ok(Err("a page was mapped during timing".to_owned()));
        }
        Ok(Ok((captured, timed)))
    }

    fn time_planned(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
    ) -> Result<std::result::Result<ClosedLoop, String>> {
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
        let rough = match look.rough(&mut self.runner, &self.options, None)? {
            Ok(cycles) => cycles,
            Err(failure) => return Ok(Err(failure.reason)),
        };
        let (long, words) = match &how {
            measure::Closed::Exits(..) => (iterations.0 as usize, "ended by its own exit"),
            measure::Closed::Counted(_, false) => {
                (iterations.0 as usize * copies, "its copies chained by their back edges")
            }
            measure::Closed::Counted(_, true) => (
                iterations.0 as usize * copies,
                "its copies chained by their back edges, whose condition is inverted",
            ),
        };
        let repeat = (self.options.cycles / (rough * long as f64)).ceil().clamp(1.0, REPEAT) as u32;
        let form = measure::closed(&shape, &how, iterations, repeat, &aligns);
        let mut timed = FormTiming { usual: true, ..FormTiming::default() };
        let ends = (long, self.options.passes);
        if let Some(failure) = self.timed_plausibly(block, &form, ends, &mut timed)? {
            return Ok(Err(failure.reason));
        }
        if self.runner.pages().as_ref() != Some(&setup.pages) {
            return Ok(Err("a page was mapped during timing".to_owned()));
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
            how,
            executions: Vec::new(),
        }))
    }
}
