//! Data dependencies of a block through registers, flags and memory, and the latency bound of its
//! recurrences. A *recurrence* is a loop-carried dependency: a cycle of dependencies by which a value
//! depends on itself in an earlier iteration.
//!
//! | file | concern |
//! |---|---|
//! | `code` | the instructions of a block or of a path of blocks |
//! | `kind` | carriers of dependencies; overlaps of loads and stores |
//! | `register_deps` | dependencies through registers and flags |
//! | [`memory`] | dependencies through memory, found by simulation with random values |
//! | [`recurrence`] | loop-carried dependencies and their latency bounds |
//! | `critical_path` | the backward slice of an instruction, and its longest path |
//! | `window` | size of the reorder buffer |
//! | `analysis` | the whole analysis of a region |
//!
//! Time and memory are bounded by the lengths of the block and of the reorder buffer.

mod analysis;
mod calls;
mod code;
mod critical_path;
mod kind;
pub mod memory;
pub mod recurrence;
mod register_deps;
mod window;

pub use analysis::{Analyser, Analysis, Dependency};
pub use code::Code;
pub use critical_path::{CriticalPath, critical_path};
pub use kind::{Kind, Overlap};
pub use register_deps::{FalseDependency, Order, RegisterDependency};
pub use window::Window;
