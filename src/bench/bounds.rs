//! Bounds on the throughput that need no PMU: the front end in isolation (for copies and for a loop), and the
//! pipeline's width.

use crate::Options;
use crate::closed_loop::ClosedLoop;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::skeleton::{self, Filler, fuses, skeleton};
use crate::harness::{RequiredState, Shape};
use crate::initial::Failure;
use crate::initial::discover::discover;
use crate::initial::run_setup::RunSetup;
use crate::measurement::bound_names::FRONT_END;
use crate::measurement::{Bound, Measurement, Status, Throughput};
use crate::plausibility::{check, is_above, width};
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Closed, Copies, Form, Iterations, Repeat, copies};
use crate::values::Values;
use isa::code::Block;
use tma::Result;

/// Cycles that a long run should take.
const CYCLES: f64 = 3000.0;
/// Measurements of a skeleton slower than its block.
const TRIES: usize = 4;
/// Passes below this share of the rest were in another state of the front end.
const UNSTEADY: f64 = 0.80;

/// Iterations of the long run of a loop's front end.
const ITERATIONS: u32 = 2000;
/// Greatest deviation from the headline at which an offset counts with it, as a share.
const ALIKE: f64 = 0.05;

impl Timer {
    /// Measures subnormals and bounds and compares the throughput with them. A throughput above the
    /// pipeline's width is unstable.
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
        bounds.extend(width(block, &self.options.core));
        let core = &self.options.core;
        let (checked, impossible) = check(&mut bounds, &throughput, copies.in_a_run(), core);
        if let (Status::Ok, Some(why)) = (measurement.status, impossible) {
            measurement.distrust(Status::Unstable, why, false);
        }
        measurement.assumptions.push(checked);
        measurement.bounds.append(&mut bounds);
        Ok(())
    }

    /// Times a form with `copies` from end to end, and again if the result exceeds the pipeline's width,
    /// because the short run was in a slower state than the long one.
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
        let Ok(filler) = Filler::instead_of(block, &self.options.core) else { return Ok(None) };
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

    /// Measures the front-end bound of a loop; none for a loop of nothing but its back edge. By its offset
    /// within a cache line the front end may take one time or another: the bound is that of the offsets at
    /// which the loop takes its headline, the least of several.
    pub(crate) fn loop_front_end(
        &mut self,
        block: &Block,
        closed: &ClosedLoop,
    ) -> Result<Option<Bound>> {
        let Ok(filler) = Filler::instead_of(block, &self.options.core) else { return Ok(None) };
        let Some(bare) = skeleton(block, filler).and_then(|s| without_back_edge(block, &s)) else {
            return Ok(None);
        };
        let Ok(counter) = LoopCounter::of(&bare) else { return Ok(None) };
        let required_state = RequiredState::of(&bare);
        self.runner.prepare(&Values::default(), 1, 1)?;
        let shape = Shape {
            block: &bare,
            required_state: &required_state,
            copies: 1,
            lines: false,
            reseeded: &[],
            taken: &[],
            start: 0,
            rip_area: self.runner.worker()?.rip_area(),
        };
        let how = Closed::Counted(counter, false);
        let iterations = Iterations { long: ITERATIONS, short: ITERATIONS / 2 };
        let form = measure::closed(&shape, &how, iterations, 1, &closed.aligns);
        let mut timed = FormTiming { usual: true, ..FormTiming::default() };
        let (passes, rounds) = (self.options.passes, self.options.rounds);
        if self.timed(&form, passes, rounds, &mut timed)?.is_some() {
            return Ok(None);
        }
        let Some((cycles, (low, high))) = beside(&closed.timed, &timed, closed.aligns.len()) else {
            return Ok(None);
        };
        let mut how = format!(
            "measured: a loop of {}s of the same lengths, and a counter with its jump at the end",
            filler.name()
        );
        if closed.aligns.len() > 1 {
            how += ", at the offset within a cache line of the headline";
        }
        Ok(Some(Bound { name: FRONT_END, cycles, low, high, how, ..Bound::default() }))
    }
}

/// The front end at the offsets at which the loop takes its headline: the minimum, and its range. Loop and front
/// end have equally many placements at each of the `offsets`.
fn beside(
    looped: &FormTiming,
    front_end: &FormTiming,
    offsets: usize,
) -> Option<(f64, (f64, f64))> {
    let headline = looped.cycles()?;
    let at = |timed: &FormTiming, offset: usize| {
        let placements = timed.batches.iter().map(|b| b.placement + 1).max().unwrap_or_default();
        let each = placements.div_ceil(offsets).max(1);
        timed.of_placements(|placement| placement / each == offset)
    };
    let is_alike = |offset: &usize| {
        let cycles = at(looped, *offset).cycles();
        cycles.is_some_and(|cycles| (cycles - headline).abs() <= ALIKE * headline)
    };
    let own: Vec<usize> = (0..offsets).filter(is_alike).collect();
    let all = if own.is_empty() { (0..offsets).collect() } else { own };
    let found = all.into_iter().filter_map(|offset| {
        let timed = at(front_end, offset);
        Some((timed.cycles()?, timed.range()?))
    });
    found.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// The skeleton without the final jump and what fuses with it, which the counter replaces.
fn without_back_edge(block: &Block, skeleton: &Block) -> Option<Block> {
    let last = skeleton.instructions.len() - 1 - usize::from(fuses(block));
    let end = skeleton.instructions.get(last)?.offset;
    Block::decode(skeleton.bytes.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::form_timing::Batch;

    /// Four batches of each placement, at these cycles an iteration.
    fn timed(placements: &[f64]) -> FormTiming {
        let of = |(placement, cycles): (usize, &f64)| Batch {
            placement,
            long: vec![2000.0 * cycles; 8],
            short: vec![1000.0 * cycles; 8],
        };
        let batches = (0..4).flat_map(|_| placements.iter().enumerate().map(of)).collect();
        let (tolerance, between) = (0.008, 1000.0);
        FormTiming { usual: true, tolerance, between, batches, ..FormTiming::default() }
    }

    /// Natively on Zen 5 (tests/figures/verdicts_errata.csv, `loop_loads_11`): 1.50 and 1.99 by offset; and
    /// (tests/figures/verdicts_aside2.csv, `loop_p_loads_12`): 2.99 at all offsets, with eight of the loads
    /// 2.99 and 1.67.
    #[test]
    fn the_front_end_is_that_of_the_offset_of_the_headline() {
        let of = |looped: &[f64], front_end: &[f64]| {
            beside(&timed(looped), &timed(front_end), 2).map(|found| (100.0 * found.0).round())
        };
        // Three pairs of runs at each offset of the loop, one of its skeleton.
        assert_eq!(of(&[1.5, 1.5, 1.5, 2.0, 2.0, 2.0], &[1.5, 2.0]), Some(200.0));
        assert_eq!(of(&[2.0, 2.0, 2.0, 1.5, 1.5, 1.5], &[1.5, 2.0]), Some(150.0));
        assert_eq!(of(&[1.5; 6], &[1.5, 2.0]), Some(150.0));
        assert_eq!(of(&[3.0; 6], &[3.0, 1.67]), Some(167.0));
    }
}
