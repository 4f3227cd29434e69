//! Instruction multisets → dependency-free kernels, measured in the block profiler's sandbox.
//!
//! | file | concern |
//! |---|---|
//! | `operand` | what an encoding allows at each operand, and how it is written in a form's name |
//! | `form` | one fully-qualified instruction form: an iced-x86 `Code`, and register or memory |
//! | `catalog` | all forms by name; suggestions; what the host supports |
//! | `unformed` | encodings without a form, and why |
//! | `host` | which extensions this processor has |
//! | `multiset` | `FORM*COUNT, …`, and the multiset of a block |
//! | `pools` | read and write pools of registers; the memory arena |
//! | `generate` | multiset → straight code |
//! | `independence` | checking that code for dependencies, and what they bound |
//! | `measure` | running it |
//! | `latency` | chains, from operand to result |
//! | `calibrate`, `usual` | many forms, and which |
//! | `document`, `text`, `csv` | what is said, and two ways to write it |

mod calibrate;
mod catalog;
mod document;
mod form;
mod generate;
mod host;
mod independence;
mod latency;
mod listed;
mod measure;
mod multiset;
mod operand;
mod pools;
mod unformed;
mod usual;

pub use calibrate::{Calibrated, Progress, calibrate};
pub use catalog::Catalog;
pub use document::{
    Bounded, Cycles, FormCount, Latencies, LatencyResult, List, Measurement, SCHEMA, Touching,
    list_document,
};
pub use form::{Address, Form, Memory};
pub use generate::{Kernel, Settings};
pub use independence::{Independence, check as independence};
pub use latency::{Connectors, latencies};
pub use listed::Listed;
pub use measure::{Bench, measure};
pub use multiset::Multiset;
