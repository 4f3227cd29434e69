//! The front end of a loop in isolation: fillers of the same lengths, and a counter as its last two
//! instructions.

use super::outcome::ClosedLoop;
use crate::filler::Filler;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::program::Shape;
use crate::harness::required_state::RequiredState;
use crate::harness::skeleton::{fuses, skeleton};
use crate::measurement::Bound;
use crate::plausibility::FRONT_END;
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Closed, Iterations};
use crate::values::Values;
use isa::code::Block;
use tma::Result;

/// Iterations of the long run.
const ITERATIONS: u32 = 2000;
/// Greatest deviation from the headline at which an offset counts with it, as a share.
const ALIKE: f64 = 0.05;

impl Timer {
    /// Measures the front-end bound of a loop; none for a loop of nothing but its back edge. By its offset
    /// within a cache line the front end may take one time or another: the bound is that of the offsets at
    /// which the loop takes its headline, the least of several.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(crate) fn loop_front_end(
        &mut self,
        block: &Block,
        closed: &ClosedLoop,
    ) -> Result<Option<Bound>> {
        let filler = Filler::instead_of(block, &self.options.core);
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
