//! Dependencies of a block: through registers, flags and memory, and the bound that its
//! recurrences put on it.
//!
//! | file | concern |
//! |---|---|
//! | `code` | the instructions of a block or a path of several |
//! | `kind` | what carries a dependency, how a load overlaps a store |
//! | `links` | dependencies through registers and flags |
//! | [`memory`] | dependencies through memory, by the method of random values |
//! | [`recurrence`] | the slowest cycle of values |
//! | `window` | how far a processor looks ahead |
//! | `analysis` | all of it for one region |
//!
//! Memory and time are bounded by the length of the block and of the reorder buffer.

mod analysis;
mod code;
mod kind;
mod links;
pub mod memory;
pub mod recurrence;
mod window;

pub use analysis::{Analyser, Analysis, Dependency};
pub use code::Code;
pub use kind::{Kind, Overlap};
pub use links::{False, Link, Order};
pub use window::Window;
