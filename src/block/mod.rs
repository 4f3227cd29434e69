//! The block profiler: any basic block, measured by itself.
//!
//! | file | concern |
//! |---|---|
//! | `sandbox` | the worker process and what protects the host from it |
//! | `engine` | the worker as the profiler uses it: its life and its runs; `engine/clocked`, `engine/memory` |
//! | `emit`, `counter`, `needs`, `builder`, `exchange`, `program` | the code around the block |
//! | `options`, `init`, `settings`, `repeat` | what can be chosen, and giving a document back |
//! | `values`, `discover`, `seek`, `attempt`, `climb`, `calm`, `search`, `trace` | initial values, pages, the address trace |
//! | `clock`, `stats`, `measure`, `timed` | timing |
//! | `counters`, `pmu` | what a PMU adds: cycles, misses, the top-down tree |
//! | `invariants`, `aligned`, `subnormal`, `steady` | what held, and how that is known |
//! | `processor`, `bounds`, `skeleton` | what the processor is, and what bounds the throughput |
//! | `profile` | from a block to its report |
//! | `document`, `text`, `csv` | what is said, and two ways to write it |
//! | `batch`, `visits`, `rows`, `processors` | thousands of blocks |
//! | `watch` | looking on while a block is measured, and calling it off |
//! | `x86_absent` | what stands in for all this on other architectures |

#[cfg(target_arch = "x86_64")]
mod aligned;
#[cfg(target_arch = "x86_64")]
mod attempt;
pub mod batch;
#[cfg(target_arch = "x86_64")]
mod bounds;
#[cfg(target_arch = "x86_64")]
mod builder;
#[cfg(target_arch = "x86_64")]
mod calm;
#[cfg(target_arch = "x86_64")]
mod climb;
#[cfg(target_arch = "x86_64")]
mod clock;
#[cfg(target_arch = "x86_64")]
mod conclude;
#[cfg(target_arch = "x86_64")]
mod counter;
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is counted there"))]
mod counters;
mod csv;
#[cfg(target_arch = "x86_64")]
mod discover;
mod document;
#[cfg(target_arch = "x86_64")]
mod emit;
#[cfg(target_arch = "x86_64")]
mod engine;
#[cfg(target_arch = "x86_64")]
mod exchange;
#[cfg(target_arch = "x86_64")]
mod failure;
#[cfg(all(test, target_arch = "x86_64"))]
mod hostile;
mod init;
#[cfg(target_arch = "x86_64")]
mod invariants;
#[cfg(target_arch = "x86_64")]
mod kept;
#[cfg(target_arch = "x86_64")]
mod measure;
#[cfg(target_arch = "x86_64")]
mod needs;
mod options;
#[cfg(target_arch = "x86_64")]
mod pmu;
#[cfg(target_arch = "x86_64")]
mod processor;
pub mod processors;
#[cfg_attr(not(target_arch = "x86_64"), path = "x86_absent.rs")]
mod profile;
#[cfg(target_arch = "x86_64")]
mod program;
mod repeat;
pub mod rows;
#[cfg(target_arch = "x86_64")]
mod sandbox;
#[cfg(target_arch = "x86_64")]
mod search;
#[cfg(target_arch = "x86_64")]
mod seek;
mod settings;
#[cfg(target_arch = "x86_64")]
mod shape;
#[cfg(target_arch = "x86_64")]
mod skeleton;
mod state;
mod stats;
#[cfg(target_arch = "x86_64")]
mod steady;
#[cfg(target_arch = "x86_64")]
mod subnormal;
mod text;
#[cfg(target_arch = "x86_64")]
mod timed;
#[cfg(target_arch = "x86_64")]
mod trace;
mod values;
mod visits;
mod watch;
#[cfg(all(test, target_arch = "x86_64"))]
mod x86_absent;

pub use counters::Pmu;
pub(crate) use csv::field as csv_field;
pub use csv::{HEADER, row};
pub use document::{
    Bound, Code, FormResult, Forms, Hierarchy, Holds, Invariant, Line, Miss, Mode, Node, Report,
    SCHEMA, Samples, Status, Throughput, WhatIf, Where,
};
pub use init::Init;
pub use options::{ClockSource, Options};
#[cfg(target_arch = "x86_64")]
pub(crate) use processor::Processor;
pub use profile::{Profiler, rejected};
pub use repeat::Repeat;
pub use settings::{Measured, Settings};
pub use text::{render, render_in_full};
pub use values::Values;
pub use watch::Watch;
