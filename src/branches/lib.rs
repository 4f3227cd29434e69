//! Analyses of the branches that a program took.
//!
//! | module | concern |
//! |---|---|
//! | [`stacks`] | recorded branch stacks: edges, straight code, loops |
//! | [`predictor`] | how many of a stream of branches a predictor of the TAGE family mispredicts |
//! | [`trips`] | outcomes of all branches of a function → trips of its loops |
//! | [`sampled`] | bursts of branches from a run → mispredictions of each branch |

pub mod predictor;
pub mod sampled;
pub mod stacks;
pub mod trips;
