//! The model of an estimated top-down tree: evidence of a piece of code → the parts of its time, each
//! with an interval and a source. Pure; the measurements are the engine's.
//!
//! | module | concern |
//! |---|---|
//! | [`parts`] | the parts, their sources, and sums of them |
//! | [`tree`] | the tree that they make |
//! | [`evidence`] | evidence of a piece of code |
//! | [`divide`](mod@divide) | evidence → parts |
//! | `rest` | the remainder, by what can account for it |
//!
//! Time is counterfactual: a part is what would be gone without its cause, in the order in which causes are
//! measured. What is left over is *unexplained*; it is shown, never distributed.

pub mod divide;
pub mod evidence;
pub mod parts;
mod rest;
pub mod tree;

pub use divide::{divide, together};
pub use evidence::{Bound, Evidence, Interval, Isolated, Loads, Mispredicted, Reason};
pub use parts::{Part, Parts, Share, Source};
pub use tree::{Node, bottleneck};
