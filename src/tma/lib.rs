//! The top-down method as data and arithmetic: tables, formulas, schedule, counts, tree.
//!
//! | module | concern |
//! |---|---|
//! | [`error`] | what failed, why, and what to do |
//! | [`quantity`] | a value with its error, or the reason it is missing |
//! | [`formula`] | the formula language of the tables |
//! | [`tables`] | typed event tables, selection, validation, texts |
//! | [`schedule`] | counter constraints; events → groups |
//! | [`cpuid`] | what a processor says of itself: registers, features, caches, fingerprint |
//! | [`identity`] | which table describes a processor, by all that it shows |
//! | `core` | one description of a processor core ([`Core`]) |
//! | [`self_test`] | what a processor answered about itself |
//! | [`measured`] | facts of a core that were measured on it |
//! | [`counts`] | counted events: group × interval × scope |
//! | [`tree`] | evaluated nodes, errors, thresholds, bottleneck |
//! | [`files`] | files that users and recordings name, opened |
//! | [`temporary`] | a folder for files of other programs |
//! | [`shell`] | words as a shell takes them |
//! | [`text`] | names shown without control characters; now, in the calendar; addresses |
//!
//! Nothing here measures, asks a machine or prints.

mod core;
pub mod counts;
pub mod cpuid;
pub mod error;
pub mod files;
pub mod formula;
pub mod identity;
pub mod measured;
pub mod quantity;
pub mod schedule;
pub mod self_test;
pub mod shell;
pub mod tables;
pub mod temporary;
pub mod text;
pub mod tree;

pub use core::Core;
pub use cpuid::{Cache, Cpu};
pub use error::{Cause, Error, ErrorKind, Result};
pub use text::{Address, NoAddress};
