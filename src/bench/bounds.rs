//! Bounds on the throughput that need no PMU: the front end in isolation, and the pipeline's width.

use super::Options;
use crate::filler::Filler;
use crate::harness::required_state::RequiredState;
use crate::harness::skeleton::{self, skeleton};
use crate::initial::discover::discover;
use crate::initial::failure::Failure;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Bound, Measurement, Status, Throughput};
use crate::plausibility::{FRONT_END, is_above, plausible, ruled_out, too_few, verdict, width};
use crate::timer::Timer;
use crate::timing::copies;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Copies, Form, Repeat};
use isa::code::Block;
use tma::Result;

/// Cycles that a long run should take.
const CYCLES: f64 = 3000.0;
/// Measurements of a skeleton slower than its block.
const TRIES: usize = 4;
/// Passes below this share of the rest were in another state of the front end.
const UNSTEADY: f64 = 0.80;
impl Timer {
    /// Measures subnormals and bounds and compares the throughput with them. A throughput above the
    /// pipeline's width is unstable.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(super) fn explain(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        form: &Form,
        copies: Copies,
        measurement: &mut Measurement,
    ) -> Result<()> {
        let measured = self.options.explain && measurement.throughput.is_some();
        let subnormals = self.subnormals(block, setup, form, measured)?;
        measurement.assumptions.push(subnormals);
        let Some(throughput) = measurement.throughput.clone() else { return Ok(()) };
        let mut bounds = Vec::new();
        if measured {
            bounds.extend(self.lowest_front_end(
                block,
                required_state,
                setup,
                copies,
                &throughput,
            )?);
        }
        let missing = measured && bounds.is_empty();
        bounds.extend(width(block, &self.options.core));
        // A table alone may be wrong, and a width that was only measured is a lower limit.
        if let (Status::Ok, true, Some(bound)) = (
            measurement.status,
            self.options.core.is_width_confirmed(),
            ruled_out(&bounds, &throughput, copies.in_a_run()),
        ) {
            measurement.distrust(Status::Unstable, too_few(throughput.cycles, bound), false);
        }
        measurement.assumptions.push(plausible(&bounds, &throughput, copies.in_a_run()));
        for bound in &mut bounds {
            bound.refuted = is_above(bound, throughput.high, copies.in_a_run());
        }
        if measured && !measurement.hierarchy.is_measured() {
            measurement.hierarchy.verdict +=
                &verdict(&bounds, &throughput, copies.in_a_run(), missing);
        }
        measurement.bounds.append(&mut bounds);
        Ok(())
    }

    /// Times a form with `copies` from end to end, and again if the result exceeds the pipeline's width,
    /// because the short run was in a slower state than the long one.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(super) fn timed_plausibly(
        &mut self,
        block: &Block,
        form: &Form,
        copies: usize,
        passes: usize,
        timed: &mut FormTiming,
    ) -> Result<Option<Failure>> {
        let width = width(block, &self.options.core);
        let rounds = self.options.rounds;
        for _ in 0..TRIES {
            let mut next = FormTiming { usual: timed.usual, ..FormTiming::default() };
            if let Some(failure) = self.timed(form, passes, rounds, &mut next)? {
                return Ok(Some(failure));
            }
            let first = timed.batches.is_empty();
            if !first && next.passes < passes {
                // No time was left for a repetition.
                break;
            }
            let high = next.range().map_or(f64::INFINITY, |r| r.1);
            *timed = next;
            if !width.as_ref().is_some_and(|w| is_above(w, high, copies)) {
                break;
            }
        }
        Ok(None)
    }

    /// The lowest of several measurements of the skeleton: one slower than its block, or with very
    /// different passes, was in a slow state of the front end and is repeated.
    fn lowest_front_end(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        copies: Copies,
        throughput: &Throughput,
    ) -> Result<Option<Bound>> {
        let mut lowest: Option<Bound> = None;
        for _ in 0..TRIES {
            let Some(bound) = self.front_end(block, required_state, setup, copies)? else { break };
            if lowest.as_ref().is_none_or(|l| bound.cycles < l.cycles) {
                lowest = Some(bound);
            }
            let settled = |l: &Bound| {
                !is_above(l, throughput.high, copies.in_a_run()) && l.low >= UNSTEADY * l.cycles
            };
            if lowest.as_ref().is_some_and(settled) {
                break;
            }
        }
        Ok(lowest)
    }

    /// Measures the skeleton like the block, after the same set-up, so that every instruction has the same
    /// address.
    fn front_end(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        copies: Copies,
    ) -> Result<Option<Bound>> {
        let filler = Filler::instead_of(block, &self.options.core);
        let Some(skeleton) = skeleton(block, filler) else { return Ok(None) };
        if matches!(copies.how, Repeat::Counted(counter) if counter.disturbs(&skeleton)) {
            return Ok(None);
        }
        let options = Options { values: Some(setup.values.clone()), ..self.options.clone() };
        let bare = RequiredState::of(&skeleton);
        let traced = discover(&mut self.runner, &skeleton, &bare, setup.copies, &options)?;
        let Ok(traced) = traced else { return Ok(None) };
        let alike = RunSetup { taken: traced.taken, ..setup.clone() };
        let (physical, pages) = (options.physical_pages, options.page_limit);
        self.runner.again(&setup.values, &setup.lines, &setup.pages, physical, pages)?;
        let wide = f64::from(self.options.core.width().unwrap_or(4));
        let run = (copies.number * skeleton.instructions.len()) as f64 / wide;
        let repeat = (CYCLES / run).ceil().clamp(1.0, 400.0) as u32;
        let run = Copies { repeat, ..copies };
        let offsets = copies::offsets(&options);
        let form = measure::unrolled(&skeleton, required_state, &alike, run, &offsets);
        let mut timed = FormTiming::default();
        let (passes, rounds) = (options.passes, options.rounds);
        if self.timed(&form, passes, rounds, &mut timed)?.is_some() {
            return Ok(None);
        }
        let (Some(cycles), Some((low, high))) = (timed.cycles(), timed.range()) else {
            return Ok(None);
        };
        let how = skeleton::how(block, filler);
        Ok(Some(Bound { name: FRONT_END, cycles, low, high, how, ..Bound::default() }))
    }
}
