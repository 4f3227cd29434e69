//! `tdtool tables list|show|check|identify|plan|events|eval`

mod arguments;
mod check;
mod eval;
mod events;
mod identify;
mod list;
mod plan;
mod show;

pub use arguments::{TablesArgs, run};
