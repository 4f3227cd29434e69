//! Analyses of the branches that a program took.
//!
//! | module | concern |
//! |---|---|
//! | [`stacks`] | recorded branch stacks: edges, straight code, loops |
//! | [`predictor`] | how many of a stream of branches a predictor of the TAGE family mispredicts |

pub mod predictor;
pub mod stacks;
