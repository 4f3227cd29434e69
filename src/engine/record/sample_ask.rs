//! A question for samples.

use pmu::sampling::{CallChains, FREQUENCY, RING};
use std::path::PathBuf;

/// Events to sample, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleAsk {
    /// Samples a second, for each event and CPU.
    pub frequency: u64,
    /// Events by perf's or the table's name, with perf's modifiers u, k, p and P.
    pub events: Vec<String>,
    /// Nodes whose events are to be sampled.
    pub nodes: Vec<String>,
    /// Nodes or events to sample beside cycles (or the CPU clock).
    pub beside: Vec<String>,
    /// Sample beside cycles what locates the nodes of the tree.
    pub locate: bool,
    /// Read the counts of level 1 at samples of cycles.
    pub per_function: bool,
    /// Record call chains.
    pub call_chains: CallChains,
    /// Record user registers.
    pub registers: bool,
    /// Record the last branches taken before each sample.
    pub branches: bool,
    /// Sample loads with their address, origin and latency: those that took at least so many cycles;
    /// 0: all.
    pub loads: Option<u64>,
    /// Events between samples, instead of `frequency`.
    pub period: Option<u64>,
    /// Bytes of the ring of each CPU.
    pub ring: usize,
    /// Folder for copies of programs that no path leads to afterwards; none are kept without it.
    pub programs: Option<PathBuf>,
}

impl Default for SampleAsk {
    fn default() -> Self {
        Self {
            frequency: FREQUENCY,
            events: Vec::new(),
            nodes: Vec::new(),
            beside: Vec::new(),
            locate: false,
            per_function: false,
            call_chains: CallChains::None,
            registers: false,
            branches: false,
            loads: None,
            period: None,
            ring: RING,
            programs: None,
        }
    }
}
