//! The estimated top-down tree of a report: what a command's time divides into without a PMU. Shares are from 0
//! to 1; addresses are p_vaddr, `0x…`.

use serde::{Deserialize, Serialize};

/// Estimated top-down of a command, its functions, loops and blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Share of the time that `program` is of: functions whose code was looked at.
    pub covered: f64,
    /// Runs of the command, the sampled one first.
    pub runs: Vec<Run>,
    /// Functions, hottest first; kernel time and code that was not looked at are rows named `[kernel]` and
    /// `[not covered]`.
    pub functions: Vec<Row>,
    /// Loops without calls, less the loops within them, hottest first; `end` is after their last block.
    pub loops: Vec<Row>,
    /// Blocks, hottest first.
    pub blocks: Vec<Row>,
    /// The covered part of the program.
    pub program: Row,
    /// Whether two runs entered all blocks equally often; absent where that is not known.
    pub deterministic: Option<bool>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// A run of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What it was for: `samples`, `counts`, `branches`, `addresses of loads`, `latencies of loads`.
    pub run: String,
    /// Wall time.
    pub seconds: f64,
}

/// A function, loop or block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of its function.
    pub name: String,
    /// Path of its file.
    pub module: String,
    /// First address; empty of the program.
    pub start: String,
    /// Address after its last instruction.
    pub end: String,
    /// Share of all samples.
    pub share: f64,
    /// Core cycles of an entry, of a loop those of an iteration.
    pub cycles_per_entry: Option<f64>,
    /// Entries, of a loop its iterations, in a run.
    pub entries: Option<f64>,
    /// The largest part, or `undecided`.
    pub bottleneck: String,
    /// The parts; their values sum to 1.
    pub parts: Parts,
    /// Cycles of an entry in isolation, if measured.
    pub isolated: Option<f64>,
    /// What bounds it there, as in `tdtool.block/1`.
    pub bound: Option<String>,
    /// The bottleneck in a sentence.
    pub sentence: String,
    /// A command that shows more.
    pub next: String,
}

/// Into what the time divides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Slots of retired µops.
    pub retiring: Share,
    /// Mispredicted branches.
    pub bad_speculation: Share,
    /// Fetching and decoding code that is at hand.
    pub fetch_bandwidth: Share,
    /// Fetching code from beyond the first cache.
    pub fetch_latency: Share,
    /// Ports, dependencies, store forwarding, dividers.
    pub core_bound: Share,
    /// Loads beyond the first cache.
    pub memory_bound: Share,
    /// What none of them covers.
    pub unexplained: Share,
}

/// A part's share of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The share.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// `counted`, `modelled`, `measured in isolation`, `residual`, or `no evidence`.
    pub source: String,
    /// What it may be instead, or why it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Parts {
    /// The parts with their labels, in order.
    pub fn all(&self) -> [(&'static str, &Share); 7] {
        [
            ("Retiring", &self.retiring),
            ("Bad Speculation", &self.bad_speculation),
            ("Fetch Bandwidth", &self.fetch_bandwidth),
            ("Fetch Latency", &self.fetch_latency),
            ("Core Bound", &self.core_bound),
            ("Memory Bound", &self.memory_bound),
            ("Unexplained", &self.unexplained),
        ]
    }
}
