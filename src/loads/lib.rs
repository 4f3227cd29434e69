//! Analyses of the loads of a program: pure, from what a run of it recorded.
//!
//! | module | concern |
//! |---|---|
//! | [`pattern`] | addresses and values → access pattern: stride, pointer chase, indirect |
//! | [`latency`] | latencies of single executions → shares of the cache levels |
//! | [`recorded`] | recorded samples of loads and stores → sums, shared cache lines, critical loads |

pub mod latency;
pub mod pattern;
pub mod recorded;
