//! tdtool's engine: event tables → schedule → collect → counts → top-down → report.
//!
//! | room | concern |
//! |---|---|
//! | [`code`] | machine code: bytes → instructions, and what must not be run |
//! | [`deps`] | register, flag and memory dependencies; latencies; recurrence bound |
//! | [`block`] | the block profiler: sandbox, timing, verdict |
//! | [`kernel`] | instruction multisets → dependency-free kernels |
//! | [`explain`] | a block's bounds, measured by variants of it, and which explains its time |
//! | [`machine`] | which processor, which PMUs, what the kernel lets us do, and why not |
//! | [`tables`] | typed event tables, the formula language, validation |
//! | [`schedule`] | counter constraints; events → groups |
//! | [`collect`] | counting: live (perf), recorded (imports), scripted (tests) |
//! | [`counts`] | counted events: group × interval × scope |
//! | [`topdown`] | tree, evaluation, thresholds, bottleneck, advice |
//! | [`profile`] | samples, perf.data, address maps, symbols, hot functions and blocks |
//! | [`workload`] | built-in programs with a known bottleneck |
//! | [`session`] | the recorded session file |
//! | [`report`] | one document; text, JSON and CSV renderers |
//! | [`analysis`] | from a question to a report, through the rooms above |
//!
//! Data flows one way, in that order. The engine never prints, never touches a terminal and
//! never exits; docs/architecture.md has the whole map and its invariants.

pub mod analysis;
pub mod block;
pub mod code;
pub mod collect;
pub mod counts;
pub mod deps;
pub mod error;
pub mod explain;
pub mod kernel;
pub mod machine;
pub mod profile;
pub mod quantity;
pub mod report;
pub mod schedule;
pub mod session;
pub mod tables;
pub mod topdown;
pub mod workload;

pub use error::{Error, ErrorKind, Result};
