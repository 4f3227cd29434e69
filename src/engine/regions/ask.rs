//! Which regions of which command.

use pmu::Command;
use std::path::PathBuf;

/// Which regions.
#[derive(Debug, Clone)]
pub struct RegionsAsk {
    /// The command.
    pub command: Command,
    /// Files with markers; the command's own program and its libraries if none.
    pub modules: Vec<PathBuf>,
    /// Functions, or pairs of static probes, that are regions, too.
    pub named: Vec<String>,
}
