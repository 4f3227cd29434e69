//! The block profiler: any basic block, measured by itself.
//!
//! | file | concern |
//! |---|---|
//! | `sandbox` | the worker process and what protects the host from it |
//! | `engine` | the worker as the profiler uses it |
//! | `emit`, `counter`, `program` | the code around the block |
//! | `values`, `discover`, `search`, `trace` | initial values, pages, the address trace |
//! | `clock`, `stats`, `measure` | timing |
//! | `invariants`, `profile` | what held, and the verdict |
//! | `document`, `text`, `csv` | what is said, and two ways to write it |
//! | `batch` | thousands of blocks |

pub mod batch;
mod clock;
mod counter;
mod csv;
mod discover;
mod document;
mod emit;
mod engine;
#[cfg(test)]
mod hostile;
mod invariants;
mod measure;
mod options;
mod profile;
mod program;
mod sandbox;
mod search;
mod stats;
mod text;
mod trace;
mod values;

pub use csv::{HEADER, row};
pub use document::{Forms, Holds, Invariant, Report, Status, Throughput};
pub use options::Options;
pub use profile::{Profiler, rejected};
pub use text::render;
pub use values::Values;
