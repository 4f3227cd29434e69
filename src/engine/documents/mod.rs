//! What tdtool says, as data: one serde document for each question. Renderers compute nothing.
//!
//! | file | concern |
//! |---|---|
//! | [`report`] | the top-down report, `tdtool.report/1` |
//! | [`report_code`] | its part about hot functions and blocks |
//! | [`build`] | evaluations → rows and findings of the report |
//! | [`diff`] | two reports compared |
//! | [`deps`] | dependencies of a block, `tdtool.deps/1` |
//! | [`census`] | what a batch of blocks holds that is not modelled |

pub mod build;
pub mod census;
pub mod deps;
pub mod diff;
pub mod report;
pub mod report_code;

pub use build::{Part, Selection, findings, parts};
pub use report::{Exit, Finding, FindingKind, InfoRow, NodeRow, Report, SCHEMA, Source};
