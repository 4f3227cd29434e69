//! Call stacks, with what their time goes to.
//!
//! | file | concern |
//! |---|---|
//! | `breakdown` | [`Breakdown`]: shares of nodes in the time of each function |
//! | `differential` | stacks of two sides merged to one flame graph |
//! | `folded` | stacks as lines of text |
//! | `graph` | stacks merged to a flame graph |
//! | `calls` | stacks as costs of functions and calls |
//! | `timed` | samples over time, each with a node |
//! | `pprof` | stacks as a profile of pprof |
//! | `write` | all of them, written to files |

mod breakdown;
mod calls;
mod differential;
mod folded;
mod graph;
mod pprof;
mod timed;
mod write;

pub use breakdown::Breakdown;
pub use calls::calls;
pub use differential::{StackSide, differential};
pub use folded::folded;
pub use graph::{About, graph};
pub use pprof::pprof;
pub use timed::timed;
pub use write::{write_callgrind, write_flame_graph, write_folded, write_pprof};
