//! Checks that unrolled code was in its steady state: copies nearer to the start must take as long as
//! those of the headline.

use crate::harness::required_state::RequiredState;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption, Outcome};
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Copies, Repeat};
use isa::code::Block;
use tma::Result;

/// Greatest difference of both: share, and cycles per iteration.
const NEAR: (f64, f64) = (0.1, 0.02);
/// Repetitions of the copies after which a loop is in its steady state.
const SETTLED: u32 = 8;

impl Timer {
    fn has_comparison(&self, copies: usize) -> bool {
        self.options.passes > 1 && self.options.two_factors && copies >= 4
    }

    /// Checks the assumption `steady-state`. Copies repeated often enough need no run of another length.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(crate) fn steady_state(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        copies: Copies,
        timed: &FormTiming,
    ) -> Result<Assumption> {
        let assumption =
            |outcome, how: String| Ok(Assumption { name: Assumed::SteadyState, outcome, how });
        let Copies { number, how, repeat } = copies;
        if matches!(how, Repeat::Counted(_)) && repeat >= SETTLED {
            let how = format!("the copies repeat {repeat} times without a fence");
            return assumption(Outcome::Held, how);
        }
        let fewer = 3 * number / 4;
        let Some(cycles) = timed.cycles().filter(|_| self.has_comparison(fewer)) else {
            let how = "not measured with another number of copies";
            return assumption(Outcome::Unchecked, how.to_owned());
        };
        let copies = Copies { number: fewer, ..copies };
        let form = measure::unrolled(block, required_state, setup, copies, &[0, 32, 16]);
        let mut other = FormTiming::default();
        let failed = self.timed(&form, 1, self.options.rounds, &mut other)?.is_some();
        let Some(there) = other.cycles().filter(|_| !failed && other.is_reproduced()) else {
            let how = format!("{fewer} copies gave no reproducible time");
            return assumption(Outcome::Unchecked, how);
        };
        let held = (there - cycles).abs() <= (NEAR.0 * cycles).max(NEAR.1);
        let how = format!(
            "the second half of {number} copies takes {cycles:.3} cycles each, that of {fewer} copies \
             {there:.3}"
        );
        assumption(if held { Outcome::Held } else { Outcome::Violated }, how)
    }
}
