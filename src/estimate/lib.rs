//! The model of an estimated top-down tree: evidence of a piece of code → the parts of its time, each
//! with an interval and a source. Pure; the measurements are the engine's.
//!
//! | module | concern |
//! |---|---|
//! | [`part`] | the parts, and which is part of which |
//! | [`share`] | the share of a part, with its source |
//! | [`parts`] | the shares of all, and sums of them |
//! | [`tree`] | the tree that they make, and its bottleneck |
//! | [`evidence`] | evidence of a piece of code |
//! | [`divide`](mod@divide) | evidence → parts |
//! | `rest` | the remainder, by what can account for it |
//! | [`sampled`] | parts of pieces with samples, together |
//! | `within` | what the parts consist of |
//!
//! Time is counterfactual: a part is what would be gone without its cause, in the order in which causes are
//! measured. What is left over is *unexplained*; it is shown, never distributed.

pub mod divide;
pub mod evidence;
pub mod part;
pub mod parts;
mod rest;
pub mod sampled;
pub mod share;
pub mod tree;
mod within;

pub use divide::{IDLE, divide, divide_all};
pub use evidence::{
    BoundBy, Contending, Contention, Divisions, Evidence, Interval, Isolated, Loads, Mispredicted,
    Reason,
};
pub use part::Part;
pub use parts::Parts;
pub use sampled::Sampled;
pub use share::{Share, Source};
pub use tree::{Dominant, Node, bottleneck, rivals};
