//! Basic blocks and instructions, measured in isolation.
//!
//! | module | concern |
//! |---|---|
//! | `sandbox` | the worker process and what protects the host from it |
//! | `runner` | the worker as the profiler uses it: its life and its runs |
//! | `harness` | the code around the block |
//! | `initial` | initial values, pages, the address trace |
//! | `timing` | core cycles: clocks, rounds, what they agree on |
//! | `checks` | the assumptions of a measurement, each with its evidence |
//! | `counting` | what a PMU adds: cycles, misses, the top-down tree |
//! | `bounds` | bounds on the throughput that need no PMU |
//! | `profiler`, `conclude` | from a block to its report |
//! | `report` | what is known about a block |
//! | `options`, `settings`, `repeat`, `watch` | what can be chosen, and calling a measurement off |
//! | [`batch`] | thousands of blocks |
//! | [`explain`] | which bound explains a block's time |
//! | [`microbench`] | instruction microbenchmarks: latency and throughput |
//! | `absent` | what stands in for the profiler on other architectures |

pub mod batch;
#[cfg(target_arch = "x86_64")]
mod bounds;
#[cfg(target_arch = "x86_64")]
mod checks;
#[cfg(target_arch = "x86_64")]
mod conclude;
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is counted there"))]
mod counters;
#[cfg(target_arch = "x86_64")]
mod counting;
pub mod explain;
#[cfg(target_arch = "x86_64")]
mod harness;
#[cfg(all(test, target_arch = "x86_64"))]
mod hostile;
mod initial;
pub mod microbench;
mod options;
pub mod processors;
#[cfg_attr(not(target_arch = "x86_64"), path = "absent.rs")]
mod profiler;
mod repeat;
mod report;
#[cfg(target_arch = "x86_64")]
mod runner;
#[cfg(target_arch = "x86_64")]
mod sandbox;
mod settings;
mod timing;
mod watch;
#[cfg(target_arch = "x86_64")]
mod width;
#[cfg(all(test, target_arch = "x86_64"))]
#[path = "absent.rs"]
mod x86_absent;

pub use counters::Pmu;
pub use initial::{Init, Values};
pub use options::{ClockSource, Options};
pub use profiler::{Profiler, rejected};
pub use repeat::Repeat;
pub use report::{
    Bound, Code, FormResult, Forms, Hierarchy, Holds, Invariant, Line, Miss, Mode, Node, Report,
    SCHEMA, Samples, Status, Throughput, WhatIf, Where,
};
pub use settings::{Measured, Settings};
pub use watch::Watch;
