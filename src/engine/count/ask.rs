//! A question for counts.

use crate::callback::Callback;
use crate::hot::hottest::Hottest;
use crate::places::Places;
use crate::steps::Step;
use pmu::Command;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tma::Core;

/// Code to count, and how.
#[derive(Debug, Clone, Default)]
pub struct CountAsk {
    /// The command; not used with a process.
    pub command: Command,
    /// A live process instead, and for how long each time.
    pub process: Option<(i32, Duration)>,
    /// Files with the functions; the command's own program if none.
    pub modules: Vec<PathBuf>,
    /// Names of functions, or addresses in them (`0x4327`); all if none.
    pub functions: Vec<String>,
    /// Instead, the functions with most of the samples of an earlier run.
    pub hot: Option<Hottest>,
    /// Whether the command is also run without probes, for the cost.
    pub plain: bool,
    /// Whether access patterns and latencies of the hot loads are recorded, in two further runs or windows.
    pub loads: bool,
    /// Only loads of this code, and no allocations.
    pub loads_of: Option<Places>,
    /// Whether registers at the entries of functions and loops are recorded, and at those of the blocks with
    /// these addresses, in a further run or window.
    pub values: Option<Vec<u64>>,
    /// Whether mispredictions are modelled, on this core, from a further run or window.
    pub branches: Option<Arc<Core>>,
    /// Branches that go one way in a smaller share of their executions are not recorded; if it is above 0, trips are not
    /// either.
    pub rarest: f64,
    /// Called before each run or window.
    pub watch: Option<Callback<Step>>,
}
