//! `tdtool report`: measure, or read recorded counts, and show the tree.

mod arguments;
mod code_options;
mod collected;
mod destination;
mod estimate_ask;
mod regions;
mod run;

pub use arguments::ReportArgs;
pub use run::{check, run};
