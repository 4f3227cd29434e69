//! Measures a block that may run, within what it may cost: as a loop where it is one, and straight copies.

use super::setup::REPEAT;
use crate::checks as assumptions;
use crate::closed_loop::ClosedLoop;
use crate::harness::RequiredState;
use crate::initial::run_setup::RunSetup;
use crate::initial::{Failure, Why};
use crate::measurement::{Forms, Measurement};
use crate::repeat::other_pages;
use crate::results::{conclude, form_result};
use crate::runner::limit::Limit;
use crate::timer::Timer;
use crate::timing::copies;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Copies};
use isa::code::Block;
use std::time::Instant;
use tma::Result;

/// Minimum cycles of a long run of few or fast copies, and its most repetitions.
const SHORTEST: f64 = 3000.0;
const MOST_REPEAT: f64 = 400.0;

impl Timer {
    /// Measures a block that may run, within its limits.
    pub(super) fn measure_within_limit(
        &mut self,
        block: &Block,
        end: Option<Instant>,
        measurement: &mut Measurement,
    ) -> Result<std::result::Result<(), Failure>> {
        let own = Instant::now() + self.options.longest();
        self.runner.limit = Limit::until(end.map_or(own, |end| end.min(own)));
        self.runner.worker()?;
        self.runner.blocks += 1;
        let before = self.runner.timeouts;
        let mut outcome = self.measure_runnable(block, measurement)?;
        if outcome.is_err() && self.runner.timeouts > before && !self.runner.limit.is_over() {
            // The worker may have been descheduled rather than busy.
            self.runner.limit.forgive();
            outcome = self.measure_runnable(block, measurement)?;
        }
        Ok(outcome)
    }

    fn measure_runnable(
        &mut self,
        block: &Block,
        measurement: &mut Measurement,
    ) -> Result<std::result::Result<(), Failure>> {
        let required_state = RequiredState::of(block);
        self.runner.set_rip_offset(rip_offset(block, self.options.address));
        let whole =
            self.options.snapshot.as_ref().is_some_and(|snapshot| snapshot.is_whole_at(block));
        let (closed, not_run) = match self.closed_loop(block, &required_state)? {
            Some(Ok(closed)) => (Some(closed), None),
            Some(Err(why)) if whole || why == Why::Interrupted => {
                return Ok(Err(Failure::of_block(why)));
            }
            None if whole => {
                let why = "its first block ends in a call or jump elsewhere";
                return Ok(Err(Failure::of_block(why)));
            }
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let copies = match whole {
            true => Err(Failure::of_block("a loop of several blocks has none")),
            false => self.measure_copies(block, &required_state, closed.as_ref(), measurement)?,
        };
        let Some(closed) = closed else {
            if let (Ok(()), Some(why)) = (&copies, not_run) {
                measurement.notes.push(format!(
                    "its own loop was not run: {why}; the times are of copies of the block"
                ));
            }
            return Ok(copies);
        };
        if let Err(failure) = copies {
            // The loop is the result; its straight copies fail for other reasons.
            self.runner.discard();
            self.runner.suspicious = true;
            let why = format!("no straight copies: {}", failure.reason);
            let unrolled = form_result(&FormTiming::default(), 0, Some(why));
            let looped = form_result(&closed.timed, closed.copies, None);
            measurement.forms = Some(Forms { unrolled, looped });
        }
        self.enter_loop(block, &closed, measurement)?;
        Ok(Ok(()))
    }

    /// Measures straight copies of the block: the headline, unless it was run as a loop.
    fn measure_copies(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        closed: Option<&ClosedLoop>,
        measurement: &mut Measurement,
    ) -> Result<std::result::Result<(), Failure>> {
        let (setup, (copies, how, rough)) = match self.find_setup(block, required_state)? {
            Ok(laid_out) => laid_out,
            Err(failure) => return Ok(Err(failure)),
        };
        let wanted = self.options.min_instructions.div_ceil(copies * block.instructions.len());
        let repeat = (self.options.cycles / (rough * copies as f64)).ceil().max(wanted as f64);
        // Short copies more often: the counter of some virtual machines advances 40 cycles at once.
        let most = (SHORTEST / (rough * copies as f64)).clamp(f64::from(REPEAT), MOST_REPEAT);
        let repeat = repeat.clamp(1.0, most) as u32;
        let run = Copies { number: copies, how, repeat };
        let offsets = copies::offsets(&self.options);
        let mut form = measure::unrolled(block, required_state, &setup, run, &offsets);
        if !self.options.two_factors {
            form.forget_short(repeat as usize * copies);
        }
        let mut timed = FormTiming::default();
        let (in_a_run, passes) = (run.in_a_run(), self.options.passes);
        if let Some(failure) = self.timed_plausibly(block, &form, in_a_run, passes, &mut timed)? {
            return Ok(Err(failure));
        }
        if self.runner.pages().as_ref() != Some(&setup.pages) {
            let why = match self.runner.limit.is_over() {
                true => Why::Late,
                false => "a page was mapped during timing".into(),
            };
            return Ok(Err(Failure::of_block(why)));
        }
        if let Some(reason) = other_pages(&self.options, &setup.pages) {
            return Ok(Err(Failure::of_block(reason)));
        }
        if self.options.assumptions {
            let physical = self.options.physical_pages;
            measurement.assumptions =
                assumptions::all(block, &setup, copies, &timed, physical, &self.options.core);
        }
        conclude(measurement, &timed, self.options.passes, block, self.source.clock().name());
        self.source.enter(&mut self.runner, &form, &self.options, measurement)?;
        if self.options.assumptions {
            let steady = self.steady_state(block, required_state, &setup, run, &timed)?;
            measurement.assumptions.push(steady);
        }
        measurement.values = Some(setup.values.clone());
        measurement.pages = setup.pages.iter().map(|p| format!("{p:#x}")).collect();
        let unrolled = form_result(&timed, copies, None);
        let looped = match closed {
            Some(closed) => form_result(&closed.timed, closed.copies, None),
            None => self.looped(block, required_state, &setup, rough)?,
        };
        measurement.forms = Some(Forms { unrolled, looped });
        if closed.is_some() {
            self.forget(&setup);
            return Ok(Ok(()));
        }
        self.check_alignment(block, required_state, &setup, &mut measurement.assumptions)?;
        self.explain(block, required_state, &setup, &form, run, measurement)?;
        self.forget(&setup);
        Ok(Ok(()))
    }

    /// Gives the next block a fresh worker, if it is unknown which pages this one touched.
    fn forget(&mut self, setup: &RunSetup) {
        if !setup.complete {
            self.runner.discard();
            self.runner.suspicious = true;
        }
    }
}

/// Offset that moves `[rip+x]` operands to their places within a page in the program; if those are unknown, it
/// moves the first one to the start of a cache line.
fn rip_offset(block: &Block, address: Option<u64>) -> usize {
    let first = || {
        let inst = block.instructions.iter().find(|inst| inst.rip_displacement.is_some())?;
        Some(inst.decoded.ip_rel_memory_address().wrapping_neg() % 64)
    };
    address.map_or_else(|| first().unwrap_or(0), |address| address % 4096) as usize
}
