//! A program compared with a copy of it that BOLT optimised by a profile: the document `tdtool.pgo-try/1`.

use super::command::Exit;
use super::diff::Diff;
use super::diff::paired::Paired;
use serde::{Deserialize, Serialize};

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.pgo-try/1";

/// A change of time below this is not called one, relative: where code and stack lie in memory changes as much.
pub const LEAST: f64 = 0.01;

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
    /// B's as a multiple of A's, round by round.
    #[serde(flatten)]
    pub paired: Option<Paired>,
    /// What that comes to.
    pub verdict: Verdict,
}

impl Change {
    /// The verdict on a time.
    pub fn of(time: Time, paired: Option<Paired>) -> Self {
        let verdict = match paired {
            None => Verdict::Unknown,
            Some(Paired { interval: None, .. }) => Verdict::TooFew,
            Some(of) if !of.is_clear() => Verdict::WithinNoise,
            Some(of) if (of.ratio - 1.0).abs() < LEAST => Verdict::TooSmall,
            Some(of) if of.ratio < 1.0 => Verdict::Faster,
            Some(_) => Verdict::Slower,
        };
        Self { time, paired, verdict }
    }
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
    /// Too few rounds to tell.
    TooFew,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_beyond_the_noise_and_not_tiny() {
        let of = |ratio: f64, interval| {
            Change::of(Time::Wall, Some(Paired { rounds: 10, ratio, interval })).verdict
        };
        assert_eq!(of(0.95, Some((0.94, 0.97))), Verdict::Faster);
        assert_eq!(of(1.05, Some((1.04, 1.06))), Verdict::Slower);
        assert_eq!(of(0.95, Some((0.9, 1.01))), Verdict::WithinNoise);
        assert_eq!(of(0.995, Some((0.994, 0.996))), Verdict::TooSmall);
        assert_eq!(of(0.5, None), Verdict::TooFew);
        assert_eq!(Change::of(Time::Wall, None).verdict, Verdict::Unknown);
    }
}
