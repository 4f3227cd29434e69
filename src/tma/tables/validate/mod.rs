//! Everything that is wrong with a table file, not only the first thing.
//!
//! [`super::Table::parse`] stops at the first error because it must; this is for the person who
//! writes a table: every finding with its node and line. `tdtool tables check` prints them.

mod check_file;
mod events;
mod finding;
mod head;
mod lines;
mod nodes;
mod threshold;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use check_file::{Report, findings, report};
pub use finding::{Finding, Severity};
pub use vocabulary::{DOMAINS, UNITS};
