//! Timing: a form of a block is a long and a short run in several placements of the code, timed in passes.
//!
//! | file | concern |
//! |---|---|
//! | `form` | the code of a form, and its segments |
//! | `copies` | forms of copies of a block |
//! | `whole_loops` | forms of loops with their own exit, and of other whole code |
//! | `first_look` | approximate time of a form |
//! | `passes` | rounds of sentinel, long run, short run and calibration chains |

mod copies;
mod first_look;
mod form;
mod passes;
mod whole_loops;

pub use copies::{Copies, Repeat, looped, unrolled};
pub use form::Form;
pub use passes::Pass;
pub use whole_loops::{Closed, EIGHTHS, Iterations, closed, lengths, repeated, whole};
