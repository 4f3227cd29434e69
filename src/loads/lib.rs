//! Analyses of the loads of a program: pure, from what a run of it recorded.
//!
//! | module | concern |
//! |---|---|
//! | [`pattern`] | addresses and values → access pattern: stride, pointer chase, indirect |
//! | [`latency`] | latencies of single executions → shares of the cache levels |

pub mod latency;
pub mod pattern;
