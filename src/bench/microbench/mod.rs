//! Microbenchmarks of instructions: throughput of multisets with independent operands, and latencies
//! by dependency chains, both measured in the block measurer's sandbox.
//!
//! | file | concern |
//! |---|---|
//! | `operand` | operands of encodings, and how names of forms write them |
//! | `form` | one instruction form: an iced-x86 `Code`, register or memory, mask |
//! | `form_name`, `form_usage` | names of a form; registers it uses, and why it may not be measured |
//! | `catalog` | all forms by name; suggestions; what this processor supports |
//! | `unsupported`, `host` | why an encoding has no form; extensions of this processor |
//! | `multiset` | `FORM*COUNT, …`, and the multiset of a block |
//! | `pools`, `generator` | registers and memory, and the code of a microbenchmark |
//! | `independence` | dependencies left in a microbenchmark, and their latency bound |
//! | `measure` | measuring throughput |
//! | `latency` | dependency chains from operand to result |
//! | `calibrate`, `calibration_set` | measuring the latencies of common forms |
//! | `document` | `tdtool.microbench/1` |

mod calibrate;
mod calibration_set;
mod catalog;
mod document;
mod form;
mod form_name;
mod form_usage;
mod generator;
mod host;
mod independence;
mod latency;
mod measure;
mod multiset;
mod operand;
mod pools;
mod unsupported;

pub use calibrate::{CalibrationProgress, CalibrationSummary, calibrate};
pub use catalog::Catalog;
pub use document::{
    AfterMoves, Cycles, Dependency, FormCount, Latencies, LatencyBound, LatencyResult, List,
    Measurement, SCHEMA, list_document,
};
pub use form::{Address, Form, Memory};
pub use generator::{Microbenchmark, Settings};
pub use independence::{Independence, check as independence};
pub use latency::{Connectors, latencies};
pub use measure::{Bench, measure};
pub use multiset::Multiset;
pub use unsupported::Listed;
