//! The model of an estimated top-down tree: evidence of a piece of code → the parts of its time, each
//! with an interval and a source. Pure; the measurements are the engine's.
//!
//! | module | concern |
//! |---|---|
//! | [`interval`] | values with intervals, and their arithmetic |
//! | [`parts`] | the parts, their sources, and sums of them |
//! | [`tree`] | the tree that they make |
//! | [`evidence`] | evidence of a piece of code |
//! | [`divide`](mod@divide) | evidence → parts |
//! | [`reason`] | why a share is not known |
//! | `rest` | the remainder, by what can account for it |
//! | [`bottleneck`](mod@bottleneck) | which part is the largest, if the intervals allow to say |
//!
//! Time is counterfactual: a part is what would be gone without its cause, in the order in which causes are
//! measured. What is left over is *unexplained*; it is shown, never distributed.

pub mod bottleneck;
pub mod divide;
pub mod evidence;
pub mod interval;
pub mod parts;
pub mod reason;
mod rest;
pub mod tree;

pub use bottleneck::bottleneck;
pub use divide::{divide, together};
pub use evidence::{Bound, Evidence, Isolated, Loads, Mispredicted};
pub use interval::Interval;
pub use parts::{Part, Parts, Share, Source};
pub use reason::Reason;
pub use tree::Node;
