//! Bounds on the throughput that need no PMU: the front end by itself, and the width of the
//! pipeline.

use super::Options;
use crate::harness::needs::Needs;
use crate::harness::skeleton::{self, skeleton};
use crate::initial::discover::discover;
use crate::initial::failure::Failure;
use crate::initial::found::Found;
use crate::profiler::Profiler;
use crate::report::{Bound, Report, Status, Throughput};
use crate::timing::measure::{self, Form, Repeat};
use crate::timing::timed::Timed;
use crate::width::Copies;
use crate::width::FRONT_END;
use crate::width::ends;
use crate::width::is_above;
use crate::width::plausible;
use crate::width::ruled_out;
use crate::width::too_few;
use crate::width::verdict;
use crate::width::width;
use isa::code::Block;
use tma::Result;

/// Cycles that a long run should take.
const CYCLES: f64 = 3000.0;
/// How often a skeleton is measured that is slower than its block.
const TRIES: usize = 4;
/// Passes that lie this far below the rest were in another state of the front end.
const WIDE: f64 = 0.80;
impl Profiler {
    /// Everything that explains a block beyond its number: subnormals, bounds, and what they say.
    /// A number that the pipeline's width does not allow is none to be trusted.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(super) fn explain(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
        (form, shape): (&Form, Copies),
        report: &mut Report,
    ) -> Result<()> {
        let measured = self.options.explain && report.throughput.is_some();
        let subnormals = self.subnormals(block, found, form, measured)?;
        report.invariants.push(subnormals);
        let Some(throughput) = report.throughput.clone() else { return Ok(()) };
        let mut bounds = Vec::new();
        if measured {
            bounds.extend(self.lowest_front_end(block, needs, found, shape, &throughput)?);
        }
        let missing = measured && bounds.is_empty();
        bounds.extend(width(block, &self.options.core));
        if let (Status::Ok, Some(bound)) =
            (report.status, ruled_out(&bounds, &throughput, ends(shape)))
        {
            report.status = Status::Unstable;
            report.reason = Some(too_few(throughput.cycles, bound));
        }
        report.invariants.push(plausible(&bounds, &throughput, ends(shape)));
        for bound in &mut bounds {
            bound.refuted = is_above(bound, throughput.high, ends(shape));
        }
        if measured && !report.hierarchy.is_measured() {
            report.hierarchy.verdict += &verdict(&bounds, &throughput, ends(shape), missing);
        }
        report.bounds.append(&mut bounds);
        Ok(())
    }

    /// Times a form of so many copies from end to end, again where the result is less than the
    /// pipeline's width allows: the short run was in a slower state than the long one.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(super) fn timed_plausibly(
        &mut self,
        block: &Block,
        form: &Form,
        (copies, passes): (usize, usize),
        timed: &mut Timed,
    ) -> Result<Option<Failure>> {
        let width = width(block, &self.options.core);
        let rounds = self.options.rounds;
        for _ in 0..TRIES {
            let mut next = Timed::default();
            if let Some(failure) = self.timed(form, passes, rounds, &mut next)? {
                return Ok(Some(failure));
            }
            let first = timed.batches.is_empty();
            if !first && next.passes < passes {
                // No time was left for another.
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

    /// The front end has slow states that last for a while. A skeleton slower than its block, or much
    /// slower at one time than at another, was in one of them and is measured again; the lowest counts.
    fn lowest_front_end(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
        shape: Copies,
        throughput: &Throughput,
    ) -> Result<Option<Bound>> {
        let mut lowest: Option<Bound> = None;
        for _ in 0..TRIES {
            let Some(bound) = self.front_end(block, needs, found, shape)? else { break };
            if lowest.as_ref().is_none_or(|l| bound.cycles < l.cycles) {
                lowest = Some(bound);
            }
            let settled =
                |l: &Bound| !is_above(l, throughput.high, ends(shape)) && l.low >= WIDE * l.cycles;
            if lowest.as_ref().is_some_and(settled) {
                break;
            }
        }
        Ok(lowest)
    }

    /// What the front end needs: the block's skeleton, run as the block was, with the same set-up
    /// before it, so that every instruction lies where the block's did.
    fn front_end(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
        (copies, how, _): Copies,
    ) -> Result<Option<Bound>> {
        let Some(skeleton) = skeleton(block) else { return Ok(None) };
        if matches!(how, Repeat::Counted(counter) if counter.disturbs(&skeleton)) {
            return Ok(None);
        }
        let options = Options { values: Some(found.values.clone()), ..self.options.clone() };
        let bare = Needs::of(&skeleton);
        let traced = discover(&mut self.runner, &skeleton, &bare, found.copies, &options)?;
        let Ok(traced) = traced else { return Ok(None) };
        let alike = Found { taken: traced.taken, ..found.clone() };
        let (physical, pages) = (options.physical_pages, options.page_limit);
        self.runner.again(&found.values, &found.lines, physical, pages)?;
        let wide = f64::from(self.options.core.width().unwrap_or(4));
        let run = (copies * skeleton.instructions.len()) as f64 / wide;
        let repeat = (CYCLES / run).ceil().clamp(1.0, 64.0) as u32;
        let run = (copies, how, repeat);
        let offsets = crate::harness::shape::offsets(&options);
        let form = measure::unrolled(&skeleton, needs, &alike, run, &offsets);
        let mut timed = Timed::default();
        let (passes, rounds) = (options.passes, options.rounds);
        if self.timed(&form, passes, rounds, &mut timed)?.is_some() {
            return Ok(None);
        }
        let (Some(cycles), Some((low, high))) = (timed.cycles(), timed.range()) else {
            return Ok(None);
        };
        let how = skeleton::how(block);
        Ok(Some(Bound { name: FRONT_END, cycles, low, high, how, refuted: false }))
    }
}
