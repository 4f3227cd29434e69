//! Conclusion of a report.

use serde::{Deserialize, Serialize};

/// The verdict of a report, and what to do next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conclusion {
    /// One or two sentences, with the number; empty where nothing was measured.
    pub verdict: String,
    /// Commands that show more, the most useful first.
    pub next: Vec<Step>,
}

/// A command that shows more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Purpose of the command.
    pub why: String,
    /// The command, as a shell takes it.
    pub command: String,
}
