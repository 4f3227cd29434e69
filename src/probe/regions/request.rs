//! Begins and ends of regions, and the result of a run.

use super::tree::Tree;
use crate::patch::{Unprobed, Wanted};
use std::time::Duration;

/// Effect of a site on its region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It begins.
    Begin,
    /// It ends.
    End,
}

/// Name of the region of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// The address of the name is in the register with this number (in encodings).
    Register(u8),
    /// This name.
    Fixed(String),
    /// This function: open functions further down the stack at its entry were left otherwise.
    Function(String),
}

/// An instruction before which a region begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its function, or only the instruction itself.
    pub code: Wanted,
    /// Its address (p_vaddr).
    pub at: u64,
    /// Effect on the region.
    pub edge: Edge,
    /// Name of the region.
    pub label: Label,
}

/// Result of a run.
#[derive(Debug, Clone, Default)]
pub struct Marked {
    /// The regions of all threads.
    pub tree: Tree,
    /// By site: why it was not probed.
    pub refused: Vec<Option<Unprobed>>,
    /// Events without room in the log.
    pub lost: u64,
    /// From the start of the command to its end.
    pub wall: Duration,
    /// Exit of the command.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted the run.
    pub interrupted: Option<i32>,
    /// Notes on the window of a process; empty for a command.
    pub notes: Vec<String>,
    /// Probes are still in the code of the process.
    pub remains: bool,
}
