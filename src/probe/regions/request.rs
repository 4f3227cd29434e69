//! Where regions begin and end, and what a run gave.

use super::tree::Tree;
use crate::patch::{Unprobed, Wanted};
use std::time::Duration;

/// What a site does to its region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It begins.
    Begin,
    /// It ends.
    End,
}

/// The name of the region of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// Its address is in the register with this number (in encodings).
    Register(u8),
    /// It is this.
    Fixed(String),
    /// It is this function: what is further down the stack at its entry, and not ended, was left otherwise.
    Function(String),
}

/// An instruction before which a region begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The code around it: its function, or only the instruction itself.
    pub code: Wanted,
    /// Its address (p_vaddr).
    pub at: u64,
    /// What it does.
    pub edge: Edge,
    /// To which region.
    pub label: Label,
}

/// What one run gave.
#[derive(Debug, Clone, Default)]
pub struct Marked {
    /// The regions of all threads.
    pub tree: Tree,
    /// By site: why it was not probed, if so.
    pub refused: Vec<Option<Unprobed>>,
    /// Events for which there was no room in the log.
    pub lost: u64,
    /// From the start of the command to its end.
    pub wall: Duration,
    /// How it ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// What a reader must know of a window in the life of a process; empty for a command.
    pub notes: Vec<String>,
    /// Probes are still in the code of the process.
    pub remains: bool,
}
