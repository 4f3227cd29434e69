//! Analyses of the branches that a program took.
//!
//! | module | concern |
//! |---|---|
//! | [`predictor`] | how many of a stream of branches a predictor of the TAGE family mispredicts |

pub mod predictor;
