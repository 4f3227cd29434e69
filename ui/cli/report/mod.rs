//! `tdtool report`: measure, or read recorded counts, and show the tree.

mod arguments;
mod code_options;
mod destination;
mod page;
mod regions;
mod run;

pub use arguments::ReportArgs;
pub use run::run;
