//! `tdtool tables list|show|check|plan|events|eval`

mod arguments;
mod check;
mod eval;
mod events;
mod list;
mod plan;
mod show;

pub use arguments::{TablesArgs, run};
