//! Finds initial values, pages and a way to repeat with which a block's copies run, and times the loop form of a
//! block that is no loop body.

use crate::harness::loop_counter::LoopCounter;
use crate::harness::{RequiredState, forms};
use crate::initial::discover::{
    Stage, compare_end_state, discover_staged, replay, run_again, run_once,
};
use crate::initial::run_setup::RunSetup;
use crate::initial::{Failure, Why};
use crate::measurement::FormResult;
use crate::plausibility::implausible;
use crate::timer::{Timer, form_result};
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Copies, Repeat, copies};
use isa::code::Block;
use tma::Result;

/// Passes over the loop form.
const LOOP_PASSES: usize = 2;

/// Fewest instructions of straight copies whose number is reduced: of fewer, start-up and end are much of the time.
const LEAST_INSTRUCTIONS: usize = 120;

/// Number of copies, how they repeat, and approximate cycles of an iteration.
type Look = (usize, Repeat, f64);

/// Most repetitions of the copies: longer runs are disturbed more often and agree less.
pub(super) const REPEAT: u32 = 64;

impl Timer {
    /// Finds a setup with which the block runs, and its approximate cycles per iteration. Few copies are
    /// traced first, which suffice for most blocks: their addresses do not change.
    pub(super) fn find_setup(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
    ) -> Result<std::result::Result<(RunSetup, Look), Failure>> {
        let all = copies::copies(block, &self.options);
        let few = copies::few(block, &self.options).filter(|_| !copies::moves(block));
        let mut with_few = None;
        for copies in few.into_iter().chain([all]) {
            let last = copies == all;
            let stage = Stage { copies, is_last: last, before: with_few.as_ref() };
            let runner = &mut self.runner;
            let setup = match discover_staged(runner, block, required_state, stage, &self.options)?
            {
                Ok(setup) if last || (setup.is_stationary() && setup.copies == copies) => setup,
                Err(failure) if last => return Ok(Err(failure)),
                Ok(setup) => {
                    with_few = Some(setup);
                    continue;
                }
                Err(_) => continue,
            };
            let setup = match self.with_own_pages(block, required_state, setup)? {
                Ok(setup) => setup,
                Err(failure) => return Ok(Err(failure)),
            };
            let look = match self.look_and_replay(block, required_state, &setup)? {
                Ok(Some(look)) => Ok(look),
                Err(failure) => Err(failure),
                Ok(None) => match self.rerun_setup(block, required_state, &setup)? {
                    Ok(()) => self.first_look(block, required_state, &setup, last)?,
                    Err(failure) => Err(failure),
                },
            };
            match look {
                Ok(look) => return Ok(Ok((setup, look))),
                Err(failure) if last => return Ok(Err(failure)),
                Err(_) => {}
            }
        }
        Ok(Err(Failure::not_attempted()))
    }

    /// The setup with only so many copies that each of their pages has a physical page of its own: through two
    /// addresses Zen takes several times as long for a line, which in a program has one. As it is where too few
    /// would remain.
    fn with_own_pages(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: RunSetup,
    ) -> Result<std::result::Result<RunSetup, Failure>> {
        let options = &self.options;
        let chosen = options.copies.is_some() || options.physical_pages < 2;
        if chosen || !setup.reseeded.is_empty() || !setup.complete || setup.is_stationary() {
            return Ok(Ok(setup));
        }
        let fewer = setup.copies_on_own_pages(options.physical_pages);
        let enough = fewer >= 2 && fewer * block.instructions.len() >= LEAST_INSTRUCTIONS;
        if fewer == setup.copies || !enough {
            return Ok(Ok(setup));
        }
        match run_once(&mut self.runner, block, required_state, fewer, &setup.values, options)? {
            Ok(own) => Ok(Ok(own)),
            Err(_) => Ok(self.restore_pages(block, required_state, &setup)?.map(|()| setup)),
        }
    }

    /// The first look at copies in a loop and the replay in one command, which suffices for most blocks; `None` if
    /// either fails: separate commands then show why. The replay comes last, so that it also shows that the loop
    /// left the same state.
    fn look_and_replay(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
    ) -> Result<std::result::Result<Option<Look>, Failure>> {
        let Some((copies, how @ Repeat::Counted(_))) =
            copies::ways(block, setup, &self.options).first().copied()
        else {
            return Ok(Ok(None));
        };
        let few = Copies { number: copies, how, repeat: how.look() };
        let look = measure::unrolled(block, required_state, setup, few, &[0]);
        let replay = forms::replay(&setup.shape(block, required_state, setup.copies, look.end()));
        self.runner.lines(&setup.lines)?;
        let rough = look.rough(&mut self.runner, &self.options, Some(REPEAT), Some(&replay))?;
        if let Ok(cycles) = rough
            && compare_end_state(&self.runner, block, setup).is_ok()
        {
            let copies = copies::timed(block, copies, how, cycles, &self.options);
            return Ok(Ok(Some((copies, how, cycles))));
        }
        Ok(self.restore_pages(block, required_state, setup)?.map(|()| None))
    }

    /// Runs the copies as they are measured, on the pages and lines of the trace.
    fn rerun_setup(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
    ) -> Result<std::result::Result<(), Failure>> {
        self.runner.lines(&setup.lines)?;
        replay(&mut self.runner, block, required_state, setup, &self.options)
    }

    /// The first way to run the unrolled form that works; straight code only if `straight`.
    fn first_look(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        straight: bool,
    ) -> Result<std::result::Result<Look, Failure>> {
        let mut last = None;
        for (copies, how) in copies::ways(block, setup, &self.options) {
            if matches!(how, Repeat::Restored) && !straight {
                break;
            }
            let few = Copies { number: copies, how, repeat: how.look() };
            let look = measure::unrolled(block, required_state, setup, few, &[0]);
            // As many repetitions without a pause as may be timed later.
            let longest = matches!(how, Repeat::Counted(_)).then_some(REPEAT);
            let rough = look.rough(&mut self.runner, &self.options, longest, None)?;
            if self.runner.pages().as_ref() == Some(&setup.pages) {
                match rough {
                    Ok(cycles) => {
                        let copies = copies::timed(block, copies, how, cycles, &self.options);
                        return Ok(Ok((copies, how, cycles)));
                    }
                    Err(failure) => last = Some(failure),
                }
                continue;
            }
            // It went beyond the trace.
            if let Err(failure) = self.restore_pages(block, required_state, setup)? {
                return Ok(Err(failure));
            }
            if let Err(failure) = self.rerun_setup(block, required_state, setup)? {
                return Ok(Err(failure));
            }
            let other = || Failure::of_block("it touches other pages in a loop");
            last = Some(rough.err().unwrap_or_else(other));
        }
        Ok(Err(last.unwrap_or_else(Failure::not_attempted)))
    }

    /// Restores the pages of the trace, in its order: a run that restores lines first maps their pages first.
    fn restore_pages(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
    ) -> Result<std::result::Result<(), Failure>> {
        let (physical, pages) = (self.options.physical_pages, self.options.pages_allowed());
        self.runner.prepare(&setup.values, physical, pages)?;
        if !setup.reseeded.is_empty() {
            return Ok(Ok(()));
        }
        run_again(&mut self.runner, block, required_state, setup, &self.options)
    }

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
