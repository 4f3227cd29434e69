//! `tdtool report` and `tdtool diff` as a user runs them, with or without a PMU on this machine.

mod annotated;
mod attributed;
mod brief;
mod calls;
mod command;
pub mod compared;
mod counts;
mod estimate;
mod estimate_contention;
mod estimate_values;
mod estimate_windows;
mod exports;
mod field;
mod flat;
mod gate;
mod hot_code;
mod hot_rows;
mod live_counts;
mod once;
mod page;
pub mod per_function;
mod recorded;
mod rotated;
mod stacks;
mod unknown_core;
mod unwound;
mod wall_time;
mod with_values;

use crate::support::files::{Folder, text};
use crate::support::run::{Ran, tdtool};
use crate::support::tools::gcc;
use serde_json::Value;

/// `tdtool report` with these arguments.
fn report(arguments: &[&str]) -> Ran {
    tdtool([&["report"], arguments].concat())
}

/// Its document.
fn json(arguments: &[&str]) -> Value {
    report(&[&["--format", "json"], arguments].concat()).succeeded().json()
}

/// A program with lines, called `work`; `None`, with a message, without a compiler.
fn compiled(folder: &Folder, source: &str, flags: &[&str]) -> Option<String> {
    let arguments = [&["-O2", "-g"], flags].concat();
    Some(text(&gcc(folder.path(), source, &arguments, "work")?).to_owned())
}
