//! The block profiler: any basic block, measured by itself.
//!
//! | file | concern |
//! |---|---|
//! | `sandbox` | the worker process and what protects the host from it |
//! | `engine` | the worker as the profiler uses it |
//! | `emit`, `program` | the code around the block |
//! | `options`, `init` | what can be chosen |
//! | `values`, `discover` | initial values, pages, the address trace |
//! | `clock`, `stats`, `measure` | timing |
//! | `pmu` | what a PMU adds: misses, the top-down tree |
//! | `invariants`, `profile` | what held, and the verdict |
//! | `document`, `text`, `csv` | what is said, and two ways to write it |
//! | `batch` | thousands of blocks |

pub mod batch;
mod clock;
mod csv;
mod discover;
mod document;
mod emit;
mod engine;
mod init;
mod invariants;
mod measure;
mod options;
mod pmu;
mod profile;
mod program;
mod sandbox;
mod stats;
mod text;
mod values;

pub use csv::{HEADER, row};
pub use document::{
    Bound, Code, FormResult, Forms, Hierarchy, Holds, Invariant, Line, Miss, Mode, Node, Report,
    SCHEMA, Samples, Status, Throughput, Where,
};
pub use init::Init;
pub use options::{ClockSource, Options};
pub use pmu::Pmu;
pub use profile::{Profiler, rejected};
pub use text::render;
pub use values::Values;
