//! Regions that a program marks, `tdtool.regions/1`.

use super::command::Exit;
use super::estimate::{Bottleneck, Parts};
use super::report_parts::FunctionNode;
use serde::{Deserialize, Serialize};
use tma::Address;

/// The schema of [`Regions`].
pub const SCHEMA: &str = "tdtool.regions/1";

/// The regions of a command or process. Times are of a run whose markers were probed, nothing else; the time of the
/// probes is subtracted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Regions {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command, or that of the process.
    pub command: Vec<String>,
    /// The process, if it ran already: all is of a window of its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<i32>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Seconds from its start to its end, or of the window.
    pub duration: f64,
    /// Markers that were executed.
    pub markers: u64,
    /// Markers that were executed and not logged: all numbers are too low then.
    pub lost: u64,
    /// Mean cost of a pair of markers with its probes, in seconds.
    pub pair_cost: Option<f64>,
    /// Regions, each after the one around it.
    pub regions: Vec<Region>,
    /// Markers that were found, or asked for, and not probed.
    pub not_probed: Vec<NotProbed>,
    /// Samples of the run; absent if it was not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<RegionsSampled>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// The samples of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionsSampled {
    /// The event.
    pub event: String,
    /// All samples.
    pub samples: u64,
    /// The table of counted trees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Why regions have no counted tree, and no estimated one.
    pub no_tree: Option<String>,
}

/// Where the tree of a region is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeSource {
    /// Counts of a PMU, which samples read.
    Counted,
    /// An estimate.
    Estimated,
    /// No tree.
    #[default]
    None,
}

/// The tree of a region, those inside it included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionTree {
    /// Where it is from.
    pub source: TreeSource,
    /// Samples in it.
    pub samples: u64,
    /// Share of all samples.
    pub share: f64,
    /// Level 1, *counted*: what came in between two samples of a thread, attributed to the region of the later one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<FunctionNode>,
    /// The parts of the time, *estimated*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// The bottleneck of an estimate, or `undecided`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Share of an estimate's samples in loops and blocks that run elsewhere, too; intervals allow for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<f64>,
    /// Why it has no tree, or none to trust.
    pub reason: Option<String>,
    /// Its hottest functions.
    pub functions: Vec<RegionFunction>,
}

/// A function in a region.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionFunction {
    /// Demangled name.
    pub name: String,
    /// File name of its module.
    pub module: String,
    /// Share of the samples of the region.
    pub share: f64,
}

/// A region: all entries of a name inside the same other regions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// The names around it, the outermost first.
    pub inside: Vec<String>,
    /// Entries and times in all threads.
    #[serde(flatten)]
    pub all: Times,
    /// Tree of its time in all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<RegionTree>,
    /// Threads, in the order of their first markers.
    pub threads: Vec<ThreadRow>,
}

/// Entries and times of a region.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How often it began.
    pub entries: u64,
    /// Entries inside itself: they have no times of their own.
    pub recursive: u64,
    /// Entries that never ended: they have none either.
    pub unfinished: u64,
    /// Seconds from begin to end, all together; null if `reason` says why.
    pub time: Option<f64>,
    /// Mean seconds of an entry.
    pub mean: Option<f64>,
    /// The shortest.
    pub min: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
    /// Seconds in the probes of markers inside, which are not in `time`.
    pub probes_inside: f64,
    /// Why there are no times.
    pub reason: Option<String>,
    /// Whether that is because its entries are too short beside what their probes take.
    #[serde(skip)]
    pub too_short: bool,
}

/// A region in one thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// The process.
    pub process: i32,
    /// The thread; null if its end was not seen.
    pub thread: Option<i32>,
    /// Its number among threads with markers, from 0.
    pub number: usize,
    /// Entries and times in this thread.
    #[serde(flatten)]
    pub of: Times,
    /// Tree of its time in this thread, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<RegionTree>,
}

/// A marker without a probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NotProbed {
    /// Path of the file.
    pub module: String,
    /// Its address.
    pub address: Address,
    /// Why.
    pub reason: String,
}
