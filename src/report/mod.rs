//! One serde document; text, JSON and CSV renderers. Renderers compute nothing.
//!
//! [`document`] is what a report says, [`build`] makes it from evaluations, [`text`], [`csv`] and
//! serde render it, [`code`] is its part about hot functions and blocks, [`diff`] compares two.

pub mod build;
pub mod code;
pub mod csv;
pub mod diff;
pub mod document;
pub mod format;
pub mod text;

pub use build::{Part, Selection, findings, parts};
pub use document::{Exit, Finding, FindingKind, InfoRow, NodeRow, Report, SCHEMA, Source};
