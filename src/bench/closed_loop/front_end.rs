//! The front end of a loop in isolation: fillers of the same lengths, and a counter as its last two
//! instructions.

use super::outcome::ClosedLoop;
use crate::filler::Filler;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::program::Shape;
use crate::harness::required_state::RequiredState;
use crate::harness::skeleton::{fuses, skeleton};
use crate::initial::values::Values;
use crate::measurement::Bound;
use crate::plausibility::FRONT_END;
use crate::profiler::Profiler;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Closed};
use isa::code::Block;
use tma::Result;

/// Iterations of the long run.
const ITERATIONS: u32 = 2000;

impl Profiler {
    /// Measures the front-end bound of a loop; none for a loop of nothing but its back edge.
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
        let iterations = (ITERATIONS, ITERATIONS / 2);
        let form = measure::closed(&shape, &how, iterations, 1, &closed.aligns);
        let mut timed = FormTiming::default();
        let (passes, rounds) = (self.options.passes, self.options.rounds);
        if self.timed(&form, passes, rounds, &mut timed)?.is_some() {
            return Ok(None);
        }
        let (Some(cycles), Some((low, high))) = (timed.cycles(), timed.range()) else {
            return Ok(None);
        };
        let how = format!(
            "measured: a loop of {}s of the same lengths, and a counter with its jump at the end",
            filler.name()
        );
        Ok(Some(Bound { name: FRONT_END, cycles, low, high, how, ..Bound::default() }))
    }
}

/// The skeleton without what the counter stands for: the final jump and what fuses with it.
fn without_back_edge(block: &Block, skeleton: &Block) -> Option<Block> {
    let last = skeleton.instructions.len() - 1 - usize::from(fuses(block));
    let end = skeleton.instructions.get(last)?.offset;
    Block::decode(skeleton.bytes.get(..end)?).ok()
}
