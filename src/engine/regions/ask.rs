//! Which regions, of which command or process.

use pmu::Command;
use std::path::PathBuf;
use std::time::Duration;

/// The program to follow.
#[derive(Debug, Clone)]
pub enum Followed {
    /// A command, from its start to its end.
    Command(Command),
    /// A process that runs already, for so long.
    Process(i32, Duration),
}

/// Which regions.
#[derive(Debug, Clone)]
pub struct RegionsAsk {
    /// The program.
    pub of: Followed,
    /// Files with markers; the program and its libraries if none.
    pub modules: Vec<PathBuf>,
    /// Functions, or pairs of static probes or source lines, that are regions, too.
    pub named: Vec<String>,
}
