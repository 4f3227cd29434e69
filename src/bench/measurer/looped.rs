//! The loop form of a block that is no loop body.

use crate::harness::RequiredState;
use crate::harness::loop_counter::LoopCounter;
use crate::initial::run_setup::RunSetup;
use crate::initial::{Failure, Why};
use crate::measurement::FormResult;
use crate::plausibility::implausible;
use crate::results::form_result;
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure;
use isa::code::Block;
use tma::Result;

/// Passes over the loop form.
const LOOP_PASSES: usize = 2;

impl Timer {
    /// The loop form, or why there is none.
    pub(super) fn looped(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        rough: f64,
    ) -> Result<FormResult> {
        let not = |reason: &str| form_result(&FormTiming::default(), 0, Some(reason.to_owned()));
        if !self.options.loop_form {
            return Ok(not("not requested"));
        }
        let counter = match LoopCounter::of(block) {
            Ok(counter) => counter,
            Err(why) => return Ok(not(&why.to_string())),
        };
        // Few copies where memory is written: store forwarding depends on how many there are.
        let copies = if block.instructions.iter().any(isa::code::Inst::writes_memory) {
            1
        } else {
            48usize.div_ceil(block.instructions.len())
        };
        let long =
            (self.options.cycles / (rough.max(0.05) * copies as f64)).clamp(8.0, 400.0) as u32;
        // Where addresses move, no further than the trace: beyond it they may leave the L1 cache.
        let traced = (setup.copies / copies).max(2) as u32;
        let long = if setup.is_stationary() { long } else { long.min(traced) };
        let form = measure::looped(block, required_state, setup, copies, counter, long & !1);
        let iterations = copies * long as usize;
        let mut timed = FormTiming::default();
        // The loop runs further than the copies did; its pages are found and its lines recorded
        // by a separate run.
        form.install(&mut self.runner)?;
        let failure = form.rehearse(&mut self.runner, &self.options)?;
        if failure.is_none() && !setup.lines.is_empty() {
            let pages = self.runner.pages().unwrap_or_default();
            let physical = self.options.physical_pages;
            let lines = self.runner.changed_lines(&pages, setup.values.memory, physical);
            self.runner.lines(if lines.is_empty() { &setup.lines } else { &lines })?;
        }
        let failure = match failure {
            None => self.timed_plausibly(block, &form, iterations, LOOP_PASSES, &mut timed)?,
            failure => failure,
        };
        Ok(match failure {
            Some(Failure { reason: why @ Why::Interrupted, .. }) => not(&why.to_string()),
            Some(failure) => not(&format!("the loop form fails: {}", failure.reason)),
            None => form_result(
                &timed,
                copies,
                implausible(block, &self.options.core, &timed, iterations),
            ),
        })
    }
}
