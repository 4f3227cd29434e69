//! Whether straight code was in its steady state: other copies, nearer to the start, must take as
//! long as those that the headline is taken from.

use super::measure::{self, Repeat};
use super::timed::Timed;
use crate::harness::needs::Needs;
use crate::initial::found::Found;
use crate::profiler::Profiler;
use crate::report::{Holds, Invariant};
use isa::code::Block;
use tma::Result;

/// How far both may lie apart: share, and cycles an iteration.
const NEAR: (f64, f64) = (0.1, 0.02);
/// Repetitions of a loop of copies that settle whatever happens at its start.
const SETTLED: u32 = 8;

impl Profiler {
    fn has_comparison(&self, copies: usize) -> bool {
        self.options.passes > 1 && self.options.two_factors && copies >= 4
    }

    /// The assumption `steady-state`. Copies that go round often need no run of another length.
    pub(crate) fn steady_state(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
        (copies, how, repeat): (usize, Repeat, u32),
        timed: &Timed,
    ) -> Result<Invariant> {
        let invariant = |verdict, how: String| Ok(Invariant { name: "steady-state", verdict, how });
        if matches!(how, Repeat::Counted(_)) && repeat >= SETTLED {
            let how = format!("the copies go round {repeat} times without a fence");
            return invariant(Holds::Held, how);
        }
        let fewer = 3 * copies / 4;
        let Some(cycles) = timed.cycles().filter(|_| self.has_comparison(fewer)) else {
            let how = "no run of another length was made";
            return invariant(Holds::Unchecked, how.to_owned());
        };
        let form = measure::unrolled(block, needs, found, (fewer, how, repeat), &[0, 32, 16]);
        let mut other = Timed::default();
        let failed = self.timed(&form, 1, self.options.rounds, &mut other)?.is_some();
        let Some(there) = other.cycles().filter(|_| !failed && other.is_reproduced()) else {
            let how = format!("{fewer} copies gave no reproducible time");
            return invariant(Holds::Unchecked, how);
        };
        let held = (there - cycles).abs() <= (NEAR.0 * cycles).max(NEAR.1);
        let how = format!(
            "the second half of {copies} copies takes {cycles:.3} cycles each, that of {fewer} copies \
             {there:.3}"
        );
        invariant(if held { Holds::Held } else { Holds::Violated }, how)
    }
}
