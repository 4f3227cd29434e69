//! A question for recorded counts.

use crate::topdown::choose::Ask;
use std::path::PathBuf;
use tma::Cpu;

/// Counts to import and what to show of them.
#[derive(Debug, Clone, Default)]
pub struct ImportAsk {
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// Which nodes.
    pub ask: Ask,
    /// The table; `None`: the one that fits the events best.
    pub uarch: Option<String>,
    /// Reads which processor this is; it decides between tables that fit equally well.
    pub here: Option<fn() -> Cpu>,
    /// One report per interval instead of one for all of them.
    pub intervals: bool,
}
