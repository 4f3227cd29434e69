//! `tdtool tables list|show|check|plan|eval`

mod arguments;
mod check;
mod eval;
mod list;
mod plan;
mod show;

pub use arguments::{TablesArgs, run};
