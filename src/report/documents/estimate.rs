//! The estimated top-down tree of a report: what a command's time divides into without a PMU. Shares are from 0
//! to 1; addresses are p_vaddr, `0x…`.

use super::estimate_code::Instruction;
use super::estimate_lines::SourceLine;
use super::purpose::Purpose;
use bench::Class;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use tma::Address;

pub use super::bottleneck::Bottleneck;
pub use estimate::{Node, Part, Parts, Share, Source as ShareSource};

/// Values that a piece was measured with in isolation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Values {
    /// Registers and memory that the program had.
    Own,
    /// Others; and why not its own, if they were wanted.
    MadeUp(Option<String>),
}

const OWN: &str = "the program's values";
const MADE_UP: &str = "made-up values";

impl From<String> for Values {
    fn from(text: String) -> Self {
        let why = || text.strip_prefix(MADE_UP)?.strip_prefix(": ").map(str::to_owned);
        if text == OWN { Self::Own } else { Self::MadeUp(why()) }
    }
}

impl From<Values> for String {
    fn from(of: Values) -> Self {
        of.to_string()
    }
}

/// Word in documents.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str(OWN),
            Self::MadeUp(None) => f.write_str(MADE_UP),
            Self::MadeUp(Some(why)) => write!(f, "{MADE_UP}: {why}"),
        }
    }
}

/// Estimated top-down of a command, its functions, loops and blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Share of the time that `program` is of: functions whose code was analysed.
    pub covered: f64,
    /// Runs of the command, the sampled one first.
    pub runs: Vec<Run>,
    /// Functions, hottest first; kernel time and code that was not analysed are rows named `[kernel]` and
    /// `[not covered]`.
    pub functions: Vec<Row>,
    /// Loops without calls, less the loops within them, of two iterations an entry or more, hottest first; `end` is
    /// after their last block. Others are divided block by block.
    pub loops: Vec<Row>,
    /// Blocks, hottest first; loops of one block are among them, too.
    pub blocks: Vec<Row>,
    /// The covered part of the program.
    pub program: Row,
    /// Whether two runs entered all blocks equally often; absent where that is not known.
    pub deterministic: Option<bool>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// Assumptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Marked regions with samples, by region and thread (absent: all threads).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionParts>,
}

impl Estimate {
    /// The blocks that are not among the loops, too, by number.
    pub fn blocks_outside_of_loops<'a>(&'a self) -> impl Iterator<Item = (usize, &'a Row)> {
        let place = |row: &'a Row| (&row.module, row.start, row.end);
        let loops: HashSet<_> = self.loops.iter().map(place).collect();
        self.blocks.iter().enumerate().filter(move |(_, block)| !loops.contains(&place(block)))
    }
}

/// Parts of the time in a marked region.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionParts {
    /// The region, by number.
    pub region: u32,
    /// The thread, by number; null: all.
    pub thread: Option<u32>,
    /// Samples in it.
    pub samples: u64,
    /// Share of them in loops and blocks that run elsewhere, too: what these divide into there is not known apart.
    pub shared: f64,
    /// The largest part, or `undecided`.
    pub bottleneck: Bottleneck,
    /// The parts; their values sum to 1.
    pub parts: Parts,
}

/// A run of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Purpose.
    pub run: Purpose,
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
    /// First address; none of the program, and of time that is not divided.
    #[serde(with = "super::or_empty")]
    pub start: Option<Address>,
    /// Address after its last instruction.
    #[serde(with = "super::or_empty")]
    pub end: Option<Address>,
    /// Entry of a loop that is entered elsewhere than at its first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Address>,
    /// Share of all samples.
    pub share: f64,
    /// Core cycles of an entry, of a loop those of an iteration.
    pub cycles_per_entry: Option<f64>,
    /// Entries, of a loop its iterations, in a run.
    pub entries: Option<f64>,
    /// The largest part, or `undecided`.
    pub bottleneck: Bottleneck,
    /// The parts; their values sum to 1.
    pub parts: Parts,
    /// Cycles of an entry in isolation, if measured.
    pub isolated: Option<f64>,
    /// With which values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated_with: Option<Values>,
    /// Bound in isolation, as in `tdtool.block/2`.
    pub bound: Option<Class>,
    /// Its loads and stores that can cost most, with their pattern and cache levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The bottleneck in a sentence.
    pub sentence: String,
    /// A command that shows more.
    pub next: String,
    /// Iterations of an entry of a loop, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trips: Option<f64>,
    /// Share of its executed branches that were mispredicted, *modelled*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<f64>,
    /// Cycles of its loop-carried critical path, by the latencies of its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_cycles: Option<f64>,
    /// Why `code`, `trips`, `mispredicted`, `loads` or `critical_cycles` are absent, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, String>,
    /// The instructions of a loop or block, in order of address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<Instruction>,
    /// The source lines of a function that have samples in its loops and blocks; empty without debug information.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SourceLine>,
}

impl Row {
    /// Its addresses.
    pub fn range(&self) -> Option<Range<u64>> {
        Some(self.start?.0..self.end?.0)
    }

    /// Where it is: `0x1140..0x1180`; empty where that is nowhere.
    pub fn place(&self) -> String {
        let both = self.start.zip(self.end);
        both.map_or(String::new(), |(start, end)| format!("{start}..{end}"))
    }

    /// Whether only its last instruction may jump: its code alone can be measured.
    pub fn is_one_path(&self) -> bool {
        let jumps = |one: &Instruction| {
            let mnemonic = one.text.split(' ').next().unwrap_or_default();
            ["j", "loop", "call"].iter().any(|begin| mnemonic.starts_with(begin))
        };
        self.code.split_last().is_none_or(|(_, before)| !before.iter().any(jumps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let why = "the loop was not entered: it ended".to_owned();
        for values in [Values::Own, Values::MadeUp(None), Values::MadeUp(Some(why))] {
            assert_eq!(Values::from(values.to_string()), values);
        }
        assert_eq!(Values::MadeUp(None).to_string(), "made-up values");
    }

    #[test]
    fn a_row_without_an_address_has_an_empty_text() {
        let located =
            Row { start: Some(Address(0x10)), end: Some(Address(0x18)), ..Row::default() };
        for (row, start, place) in [(Row::default(), "", ""), (located, "0x10", "0x10..0x18")] {
            let mut json = serde_json::to_value(&row).unwrap();
            assert_eq!((&json["start"], row.place().as_str()), (&start.into(), place));
            assert_eq!(serde_json::from_value::<Row>(json.clone()).unwrap(), row);
            json["end"] = "18".into();
            let error = serde_json::from_value::<Row>(json).unwrap_err().to_string();
            assert_eq!(error, "the address `18` does not begin with 0x");
        }
    }
}
