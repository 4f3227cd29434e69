//! The block profiler: any basic block, measured by itself.
//!
//! | file | concern |
//! |---|---|
//! | `sandbox` | the worker process and what protects the host from it |
//! | `engine` | the worker as the profiler uses it |
//! | `emit`, `program` | the code around the block |
//! | `values`, `discover` | initial values, pages, the address trace |
//! | `clock`, `stats`, `measure`, `timed` | timing |
//! | `invariants`, `subnormal` | what held, and how that is known |
//! | `processor`, `bounds`, `skeleton` | what the processor is, and what bounds the throughput |
//! | `profile` | from a block to its report |
//! | `document`, `text`, `csv` | what is said, and two ways to write it |
//! | `batch` | thousands of blocks |

pub mod batch;
mod bounds;
mod clock;
mod csv;
mod discover;
mod document;
mod emit;
mod engine;
mod invariants;
mod measure;
mod options;
mod processor;
mod profile;
mod program;
mod sandbox;
mod skeleton;
mod stats;
mod subnormal;
mod text;
mod timed;
mod values;

pub use csv::{HEADER, row};
pub use document::{
    Bound, Code, FormResult, Forms, Hierarchy, Holds, Invariant, Line, Miss, Mode, Node, Report,
    SCHEMA, Samples, Status, Throughput, Where,
};
pub use options::Options;
pub use profile::{Profiler, rejected};
pub use text::render;
pub use values::Values;
