//! The estimated top-down tree of a report: what a command's time divides into without a PMU, with the instructions and
//! source lines of its code. Shares are from 0 to 1; addresses are p_vaddr, `0x…`.

use super::command::Purpose;
use super::count::{ContendedLine, LevelShare};
use bench::Class;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use tma::Address;

pub use estimate::{Dominant, Node, Part, Parts, Share, Source as ShareSource};

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
    /// `[not covered]`, functions with few samples each one row `other code (N functions)`.
    pub functions: Vec<Row>,
    /// Loops without calls, less the loops within them, of two iterations an entry or more, hottest first; `end` is
    /// after their last block. Others are divided block by block.
    pub loops: Vec<Row>,
    /// Blocks, hottest first; loops of one block are among them, too.
    pub blocks: Vec<Row>,
    /// The covered part of the program.
    pub program: Row,
    /// Whether two runs entered all blocks equally often, those of `other code` about so; absent where that is not known.
    pub deterministic: Option<bool>,
    /// By how much entries of the two runs differ, relative: of all blocks, weighted by instructions, or of the one that
    /// differs most, of those of hot functions or with a hundredth of the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<f64>,
    /// How much more work a run does that is not counted, where it does; absent where runs do the same or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// The one of `notes` that says what else used the machine, if that affects the numbers; not in documents.
    #[serde(skip)]
    pub disturbed: Option<String>,
    /// Whether the command did other work when it ran again; not in documents.
    #[serde(skip)]
    pub is_unlike: bool,
    /// Assumptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Cache lines that threads contend for, those with most recorded accesses first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contended_lines: Vec<ContendedLine>,
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
    /// The largest loss, or Retiring if most retires; or `undecided`.
    pub bottleneck: Bottleneck,
    /// The parts; the values of those that are in no other one sum to 1, but for `backend_bound`: Core and Memory Bound.
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

/// The work of a run without probes, beside that of the counted one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// How many times as much.
    pub ratio: f64,
    /// Relative error of `ratio`.
    pub error: f64,
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
    /// The largest loss, or Retiring if most retires; or `undecided`.
    pub bottleneck: Bottleneck,
    /// The parts; the values of those that are in no other one sum to 1, but for `backend_bound`: Core and Memory Bound.
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

    /// The bottleneck; where it is undecided, the largest part of what may be.
    pub fn leading(&self) -> Part {
        self.bottleneck.part().unwrap_or_else(|| self.parts.leading())
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

/// The part of a time, or node of level 1, that loses most; none where it is not decided which that is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Bottleneck(pub Option<Dominant>);

impl Bottleneck {
    /// As in documents: that of the part or node, or `undecided`.
    pub fn name(self) -> &'static str {
        self.0.map_or("undecided", Dominant::name)
    }

    /// The part, if it is one and not all of Frontend or Backend Bound.
    pub fn part(self) -> Option<Part> {
        self.0.and_then(Dominant::part)
    }

    /// In words: `memory bound`.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }
}

impl From<Part> for Bottleneck {
    fn from(part: Part) -> Self {
        Self(Some(Dominant::Part(part)))
    }
}

impl From<Bottleneck> for String {
    fn from(of: Bottleneck) -> Self {
        of.name().to_owned()
    }
}

impl TryFrom<String> for Bottleneck {
    type Error = NoPart;

    fn try_from(name: String) -> Result<Self, NoPart> {
        match Dominant::of(&name) {
            None if !["undecided", ""].contains(&name.as_str()) => Err(NoPart(name)),
            found => Ok(Self(found)),
        }
    }
}

/// A name that no part of the time has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPart(String);

impl fmt::Display for NoPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no part of the time is called `{}`", self.0)
    }
}

/// An instruction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    /// Its address (p_vaddr).
    pub address: Address,
    /// Its bytes, in hex.
    pub bytes: String,
    /// Intel syntax.
    pub text: String,
    /// Its samples, which are often of the instruction before it.
    pub samples: u64,
    /// Share of all samples.
    pub share: f64,
    /// Whether it is on the loop-carried critical path.
    #[serde(default)]
    pub critical: bool,
    /// Source file and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<(String, u32)>,
    /// Share of a branch's executions mispredicted, *modelled*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<f64>,
    /// Sources of a load's data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelShare>,
    /// Its shares of the parts of its loop or block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Causes>,
}

/// Shares of a loop's or block's time that one of its instructions causes; those of all its instructions sum to the
/// parts. Retiring by µops, Bad Speculation by mispredictions, Core Bound to the critical path, Memory Bound by what
/// loads take beyond the first cache; what has no such evidence by samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Causes {
    /// Share of Retiring.
    pub retiring: f64,
    /// Share of Bad Speculation.
    pub bad_speculation: f64,
    /// Share of Fetch Latency and Fetch Bandwidth.
    pub frontend_bound: f64,
    /// Share of Core Bound and Memory Bound.
    pub backend_bound: f64,
    /// Share of the unexplained time.
    pub unexplained: f64,
}

impl Causes {
    /// In the order of the tree's level 1.
    pub fn level1(self) -> [f64; 5] {
        let Self { retiring, bad_speculation, frontend_bound, backend_bound, unexplained } = self;
        [retiring, bad_speculation, frontend_bound, backend_bound, unexplained]
    }
}

/// A source line with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Its file, as the program names it.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its text; absent if the file was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Share of all samples.
    pub share: f64,
    /// Bottleneck of its loops and blocks, or `undecided` where they differ.
    pub bottleneck: Bottleneck,
    /// The mean parts of its loops and blocks.
    pub parts: Parts,
    /// Its instructions.
    pub code: Vec<Instruction>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::Source;
    use serde_json::{from_value, to_value};

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

    /// Documents have these names, and older ones others.
    #[test]
    fn names_of_sources_and_bottlenecks_are_fixed() {
        let all = [
            (Source::Counted, "counted"),
            (Source::Modelled, "modelled"),
            (Source::Isolated, "measured in isolation"),
            (Source::Inferred, "inferred"),
            (Source::IsolatedInferred, "measured and inferred"),
            (Source::IsolatedModelled, "measured and modelled"),
            (Source::Residual, "residual"),
            (Source::Excluded, "excluded"),
            (Source::Bounded, "bounded"),
            (Source::Sum, "sum of its parts"),
            (Source::Several, "of several blocks"),
        ];
        for (source, name) in all {
            assert_eq!(to_value(source).unwrap(), name);
            assert_eq!(source.to_string(), name);
            assert_eq!(from_value::<Source>(name.into()).unwrap(), source);
        }
        assert_eq!(from_value::<Source>("no evidence".into()).unwrap(), Source::Bounded);
        let backend = Bottleneck(Some(Dominant::Backend));
        let all = [Bottleneck(None), Part::MemoryBound.into(), backend];
        for (found, name) in all.into_iter().zip(["undecided", "memory_bound", "backend_bound"]) {
            assert_eq!(to_value(found).unwrap(), name);
            assert_eq!(from_value::<Bottleneck>(name.into()).unwrap(), found);
        }
        assert_eq!(Bottleneck::from(Part::MemoryBound).words(), "memory bound");
        assert!(from_value::<Bottleneck>("dram".into()).is_err());
    }
}
