//! A program compared with a copy of it that BOLT optimised by a profile: the document `tdtool.pgo-try/1`.

use super::command::Exit;
use super::diff::Diff;
use serde::{Deserialize, Serialize};

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.pgo-try/1";

/// A change of time below this is not called one, in percent: where code and stack lie in memory changes as much.
pub const LEAST: f64 = 1.0;

/// The comparison. A is the program, B the optimised copy.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// [`SCHEMA`].
    pub schema: String,
    /// Path of the file that was optimised.
    pub module: String,
    /// The commands whose runs made the profile.
    pub trained: Vec<Vec<String>>,
    /// The command that was timed.
    pub measured: Vec<String>,
    /// Whether that is one of those: on other inputs the gain may be less.
    pub is_same_input: bool,
    /// The optimiser, as it was found.
    pub optimiser: String,
    /// Bytes on standard output, the same of both.
    pub output: u64,
    /// How both ended.
    pub exit: Option<Exit>,
    /// What the times come to: the wall time, or where that is within the noise the processor time.
    pub change: Change,
    /// Times, software counts, and the tree where a PMU counts.
    pub compared: Diff,
    /// The code that A and B executed, by exact counts of a run each; absent where that of B cannot be counted.
    pub code: Option<[Executed; 2]>,
    /// Limits of the comparison.
    pub notes: Vec<String>,
}

/// A time that is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// From start to end.
    #[default]
    Wall,
    /// In which a processor ran it.
    Processor,
}

impl Time {
    /// The id of its row among the software counts.
    pub fn id(self) -> &'static str {
        match self {
            Self::Wall => "wall_ms",
            Self::Processor => "task_clock_ms",
        }
    }
}

/// The change of a time from A to B.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Which time.
    pub time: Time,
    /// In percent of A's.
    pub percent: Option<f64>,
    /// Half width of its 95 % interval.
    pub margin: Option<f64>,
    /// What that comes to.
    pub verdict: Verdict,
}

/// What a change comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The copy takes less time.
    Faster,
    /// It takes more.
    Slower,
    /// The difference is within what runs differ.
    WithinNoise,
    /// It is beyond that, but less than [`LEAST`].
    TooSmall,
    /// There are no times.
    #[default]
    Unknown,
}

/// Code that a run executed, by exact counts; of blocks without a count nothing is known, so that sums are at least these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    /// Instructions.
    pub instructions: u64,
    /// Jumps that were taken, to other functions, too.
    pub taken_jumps: u64,
    /// Calls with a known target.
    pub calls: u64,
    /// Lines of 64 bytes with executed code.
    pub lines: usize,
    /// The fewest of these with 99 % of the executed bytes.
    pub hot_lines: usize,
    /// Pages of 4096 bytes with executed code.
    pub pages: usize,
    /// The fewest of these with 99 % of the executed bytes.
    pub hot_pages: usize,
    /// Blocks and edges without a count.
    pub unknown: usize,
    /// Share of the taken jumps and calls whose counts are fitted or sampled.
    pub fitted: f64,
}
