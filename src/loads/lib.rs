//! Analyses of the loads of a program: pure, from its code and what a run of it recorded.
//!
//! | module | concern |
//! |---|---|
//! | [`class`] | how addresses of a load are made: stride, pointer chase, indirect |
//! | [`pattern`] | addresses and values → access pattern |
//! | [`access`] | code → access pattern and slice |
//! | [`prefetch`] | iterations and samples → prefetch distance and loop |
//! | [`latency`] | latencies of single executions → shares of the cache levels |
//! | [`contention`] | recorded addresses → cache lines that threads contend for |
//! | [`recorded`] | recorded samples of loads and stores → sums, shared cache lines, critical loads |

pub mod access;
pub mod class;
pub mod contention;
pub mod latency;
pub mod pattern;
pub mod prefetch;
pub mod recorded;
