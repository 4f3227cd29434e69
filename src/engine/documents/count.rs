//! Exact counts of chosen functions: the document `tdtool.count/1`.

use super::report::Exit;
use super::values::ValueRow;
use serde::{Deserialize, Serialize};
use std::path::Path;
use tma::error::{Error, Result};

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.count/1";

/// Counts of blocks, edges, branches and loops of one run of a command. Addresses are p_vaddr.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command; empty if it was a live process.
    pub command: Vec<String>,
    /// The live process that was counted for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<i32>,
    /// How the counted run ended.
    pub exit: Option<Exit>,
    /// Blocks, by module and address.
    pub blocks: Vec<BlockRow>,
    /// Control-flow edges between blocks of a function.
    pub edges: Vec<EdgeRow>,
    /// Loops.
    pub loops: Vec<LoopRow>,
    /// Conditional jumps; with their mispredictions, indirect jumps and calls, too.
    pub branches: Vec<BranchRow>,
    /// Loads, if they were asked for: those executed most often.
    #[serde(default)]
    pub loads: Vec<LoadRow>,
    /// What registers hold at the entries of functions and loops, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueRow>,
    /// What the latencies of loads were compared with.
    #[serde(default)]
    pub timer: Option<TimerRow>,
    /// Cycles that a misprediction costs here, by the self-test; with mispredictions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misprediction_cycles: Option<f64>,
    /// Functions and blocks without a count, and why.
    pub refused: Vec<Refused>,
    /// Sums of flow conservation that were checked.
    pub checked: usize,
    /// Sums that do not agree.
    pub contradictions: Vec<String>,
    /// How the functions were chosen, if by samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<HotFunctions>,
    /// What the runs took.
    pub cost: Vec<Cost>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

impl Count {
    /// The document in a file.
    ///
    /// # Errors
    /// It cannot be read, or is another.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |why: String| {
            Error::failed(format!("cannot read the counts in {}", path.display()))
                .because(why)
                .hint("tdtool count --hot --format json --output FILE -- COMMAND writes them")
        };
        let text = tma::files::read_text(path, tma::files::LONGEST_TEXT)
            .map_err(|e| failed(e.to_string()))?;
        let document: Self = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
        match document.schema == SCHEMA {
            true => Ok(document),
            false => Err(failed(format!("it is not a {SCHEMA}"))),
        }
    }
}

/// A block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRow {
    /// Path of its file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// First address, `0x…`.
    pub start: String,
    /// Address after its last instruction, `0x…`.
    pub end: String,
    /// Number of its instructions.
    pub instructions: usize,
    /// How often it was entered.
    pub count: u64,
    /// `placed` by a probe, or `derived` from its neighbours.
    pub how: String,
    /// Of a probe: `retarget`, `single`, `multi` or `pun`.
    pub probe: Option<String>,
}

/// An edge between two blocks of a function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRow {
    /// Path of the file.
    pub module: String,
    /// First address of the block that is left.
    pub from: String,
    /// First address of the block that is entered.
    pub to: String,
    /// How often; absent where it does not follow from the blocks.
    pub count: Option<u64>,
}

/// A loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopRow {
    /// Path of the file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// First address of its first block.
    pub head: String,
    /// How often it was entered from outside.
    pub entries: Option<u64>,
    /// How often its first block was entered.
    pub iterations: Option<u64>,
    /// Iterations of each entry.
    pub trips: Trips,
}

/// Iterations of an entry of a loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trips {
    /// On average.
    pub mean: Option<f64>,
    /// With `--branches`: trips, and how many of the executions had them that were seen from beginning to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64)>,
    /// With `--branches`: executions of which the beginning or the end was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<u64>,
}

/// A branch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Path of the file.
    pub module: String,
    /// Name of its function.
    #[serde(default)]
    pub function: String,
    /// Its address.
    pub address: String,
    /// How often it was executed, where its block has a count.
    #[serde(default)]
    pub executions: Option<u64>,
    /// How often it jumped.
    pub taken: Option<u64>,
    /// How often it did not.
    pub not_taken: Option<u64>,
    /// `conditional`, `indirect`, or `return`: all of a function that may call itself, at its address.
    #[serde(default)]
    pub kind: String,
    /// How often it is mispredicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<Modelled>,
    /// With `--branches`: why that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A number from a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// The number.
    pub value: f64,
    /// The lower end of its 95 % interval, of the sample alone.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Executions that were given to the model.
    pub seen: u64,
    /// Its cost in cycles: the number × `misprediction_cycles`.
    pub cycles: Option<f64>,
    /// `modelled`.
    pub source: String,
}

/// A load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Path of the file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// Its address.
    pub address: String,
    /// The instruction, in Intel syntax.
    pub instruction: String,
    /// How often it was executed.
    pub executions: Option<u64>,
    /// How its addresses are made.
    pub class: Option<LoadClass>,
    /// Shares of the caches and of memory.
    pub levels: Vec<LevelShare>,
    /// What it takes, from the address to the value, in isolation.
    pub latency: Option<LoadLatency>,
    /// Why some of that is missing.
    pub reasons: Vec<String>,
}

/// How the addresses of a load are made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadClass {
    /// `constant`, `stride`, `pointer_chase`, `chase_offset`, `indirect` or `irregular`.
    pub kind: String,
    /// The distance of most addresses to those before them, in bytes.
    pub stride: Option<i64>,
    /// Address of the load whose value it uses: the chase, or what loads the index.
    pub of: Option<String>,
    /// What that value is multiplied by.
    pub scale: Option<i64>,
    /// What is added to it; absent where that is a base address.
    pub offset: Option<i64>,
    /// The class of the load of the index.
    pub inner: Option<Box<LoadClass>>,
    /// Of a stride: how many of the addresses in a row it separated, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// … and how many it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaks: Option<u64>,
    /// Windows of up to 64 executions that were looked at.
    pub windows: usize,
    /// Their share that agrees, 0 to 1.
    pub share: f64,
}

/// The share of a level of the memory hierarchy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelShare {
    /// `L1`, `L2`, `L3` or `DRAM`.
    pub level: String,
    /// Its share of the load's executions, 0 to 1.
    pub share: f64,
    /// Ends of its 95 % interval, of the sampling error.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Median latency of its executions in nanoseconds: of as many as its share, slower than those of the levels
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
}

/// Latencies in nanoseconds, without those of the fences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadLatency {
    /// Executions that were timed.
    pub samples: u64,
    /// Others that took more than 5 µs: an interrupt or a page fault came between.
    pub interrupted: u64,
    /// The mean.
    pub mean: f64,
    /// The median, to a step of the counter.
    pub p50: f64,
    /// 90 % are not longer.
    pub p90: f64,
    /// 99 % are not longer.
    pub p99: f64,
}

/// The time-stamp counter, and loads of known levels on this host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// Ticks in a nanosecond.
    pub ticks_per_ns: f64,
    /// The step by which the counter advances, in ticks.
    pub step: u32,
    /// What the fences take without a load, in ticks, on average: no part of a latency.
    pub floor: f64,
    /// Mean latencies of hits of each cache in nanoseconds.
    pub caches: Vec<LevelMean>,
    /// Latencies from here on are of memory, in nanoseconds.
    pub memory: f64,
    /// Caches that others use so much that no hits could be measured: theirs are taken to be those
    /// between the cache before and memory.
    pub assumed: Vec<String>,
}

/// What hits of a cache take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelMean {
    /// `L1`, `L2` or `L3`.
    pub level: String,
    /// In nanoseconds.
    pub mean: f64,
}

/// A function or block without a count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// Path of the file.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// First address.
    pub start: String,
    /// Why.
    pub reason: String,
}

/// The functions that hold most of the samples of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotFunctions {
    /// Share of the samples that was asked for, 0 to 1.
    pub asked: f64,
    /// Event that was sampled.
    pub event: String,
    /// Samples of the run.
    pub samples: u64,
    /// The functions, hottest first.
    pub functions: Vec<HotRow>,
}

/// A function with its share of the samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotRow {
    /// Path of its file; empty for the kernel.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// Its share of the samples, 0 to 1.
    pub share: f64,
    /// Why its blocks are not counted; absent where they are asked for.
    pub reason: Option<String>,
}

/// What a run took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// What the run was for: `samples`, `counts`, `branches`, `values`, `addresses of loads` or `latencies of loads`.
    pub run: String,
    /// Wall time.
    pub seconds: f64,
    /// Wall time of a run without probes: the sampled one, or one more that was asked for.
    pub plain: Option<f64>,
    /// Probes in the process with most of them.
    pub probes: usize,
}
