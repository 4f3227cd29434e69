//! The model of an estimated top-down tree: evidence of a piece of code → the parts of its time, each
//! with an interval and a source. Pure; the measurements are the engine's.
//!
//! | module | concern |
//! |---|---|
//! | [`parts`] | the parts, their sources, sums and tree, and the largest of them |
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

pub use divide::{divide, divide_all};
pub use evidence::{BoundBy, Evidence, Interval, Isolated, Loads, Mispredicted, Reason};
pub use parts::{Node, Part, Parts, Share, Source, bottleneck};
