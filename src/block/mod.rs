//! The block profiler.
pub mod sandbox;
