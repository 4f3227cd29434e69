//! Measures basic blocks and instructions in isolation.
//!
//! | module | concern |
//! |---|---|
//! | `values` | initial registers and memory |
//! | `layers` | layers of protection of the host that could be set up |
//! | `counters`, `processors` | the PMU of this machine; processors to use |
//! | `options` | options of a measurement, its progress and cancellation |
//! | `measurement` | the document of a block, `tdtool.block/2` |
//! | `repeat` | repeating a measurement from its document |
//! | `sandbox` | the worker process, and protecting the host from it |
//! | `harness` | the code around the block |
//! | `stats`, `clock` | statistics; the time-stamp counter in core cycles, contention |
//! | `runner` | the worker's life cycle and runs |
//! | `selftest` | properties of the processor that the harness would otherwise assume |
//! | `initial` | initial values, pages, the address trace |
//! | `timing` | core cycles: rounds, reproducible states |
//! | `counting` | counts by a PMU: cycles, misses, the top-down tree |
//! | `timer` | times passes of a form, waiting under contention; the document's results from them |
//! | `checks` | the assumptions of a measurement, each with its evidence |
//! | `plausibility` | results that bounds rule out |
//! | `closed_loop` | a loop body run as a loop: its own back edge, its own arrays |
//! | `bounds` | bounds on the throughput that need no PMU |
//! | `measurer` | measures a block and fills its document |
//! | `stub` | replaces measurer and self-test on other architectures |
//! | [`microbench`] | instruction microbenchmarks: latency and throughput |
//! | [`explain`] | the bound that explains a block's time |
//! | [`batch`] | many blocks in parallel |
//! | `hostile` | tests with blocks that attack the harness |
//!
//! A module imports only from those above it.

pub mod batch;
#[cfg(target_arch = "x86_64")]
mod bounds;
#[cfg(target_arch = "x86_64")]
mod checks;
#[cfg(target_arch = "x86_64")]
mod clock;
#[cfg(target_arch = "x86_64")]
mod closed_loop;
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is counted there"))]
mod counters;
#[cfg(target_arch = "x86_64")]
mod counting;
pub mod explain;
#[cfg(target_arch = "x86_64")]
mod harness;
#[cfg(all(test, target_arch = "x86_64"))]
mod hostile;
#[cfg(target_arch = "x86_64")]
mod initial;
mod layers;
mod measurement;
#[cfg(target_arch = "x86_64")]
mod measurer;
pub mod microbench;
mod options;
#[cfg(target_arch = "x86_64")]
mod plausibility;
pub mod processors;
mod repeat;
#[cfg(target_arch = "x86_64")]
mod runner;
#[cfg(target_arch = "x86_64")]
mod sandbox;
#[cfg(target_arch = "x86_64")]
mod selftest;
mod stats;
#[cfg(any(test, not(target_arch = "x86_64")))]
mod stub;
#[cfg(target_arch = "x86_64")]
mod timer;
mod timing;
mod values;

pub use closed_loop::can_be_moved;
pub use counters::Pmu;
pub use harness::region::Immovable;
pub use layers::{Layer, Layers};
pub use measurement::{
    Assumed, Assumption, Baseline, Bound, Cause, Class, Code, Explanation, FaultLocation,
    FormResult, Forms, Found, Hierarchy, LOOP, Line, MeasuredOn, Measurement, Miss, Mode, Node,
    Outcome, SCHEMA, Samples, Settings, Status, Throughput, UNROLLED, Verdict, WhatIf, bound_names,
};
#[cfg(target_arch = "x86_64")]
pub use measurer::{BlockMeasurer, rejected};
pub use options::{ClockSource, Method, Options, Preset, Progress};
pub use repeat::Repeat;
#[cfg(target_arch = "x86_64")]
pub use selftest::check as check_self_test;
#[cfg(not(target_arch = "x86_64"))]
pub use stub::{BlockMeasurer, check_self_test, rejected};
pub use timing::measure::copies::MAX_COPIES;
pub use values::{Init, LoopPath, NoPath, Snapshot, Values};
