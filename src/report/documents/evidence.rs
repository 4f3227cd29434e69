//! Everything that an estimate was computed from, `tdtool.evidence/1`: it is evaluated again anywhere, without the
//! processor and the program. Addresses are p_vaddr. In files it is compact JSON, compressed (gzip) where the name ends
//! in `.gz`.

use super::count::Count;
use super::estimate::{Run, Work};
use super::report::Report;
use crate::files::write_whole;
use bench::Class;
use estimate::BoundBy;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::Write as _;
use std::path::Path;
use tma::Error;

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.evidence/1";

/// The evidence of one estimate.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of tdtool that wrote it.
    pub tool: String,
    /// Whether paths, names and arguments are placeholders.
    #[serde(default)]
    pub redacted: bool,
    /// The core that it ran on.
    pub core: CoreUsed,
    /// The report without the estimate.
    pub report: Option<Box<Report>>,
    /// The command; empty of a live process.
    pub command: Vec<String>,
    /// Name of the program.
    pub name: String,
    /// Whether a live process was estimated, in windows.
    pub process: bool,
    /// Core cycles of the run.
    pub cycles: f64,
    /// The sampled run.
    pub samples: Sampled,
    /// Functions with their code.
    pub functions: Vec<Code>,
    /// Counts, mispredictions and loads.
    pub count: Count,
    /// Code measured in isolation.
    pub isolated: Vec<Alone>,
    /// Recorded data.
    pub recorded: Records,
    /// A run on one CPU, if threads contended for cache lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// Functions with few samples each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
    /// Runs of the command.
    pub runs: Vec<Run>,
    /// Whether two runs entered all blocks equally often.
    pub deterministic: Option<bool>,
    /// By how much entries of the two runs differ, relative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<f64>,
    /// How much more work a run does that is not counted; `cycles` are those of the counted work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Notes of the runs, in front of those about the numbers and after them.
    pub notes: (Vec<String>, Vec<String>),
    /// Why nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The facts of a core that an estimate uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreUsed {
    /// Vendor, family and model.
    pub processor: String,
    /// Its table.
    pub table: Option<String>,
    /// The tables of which it has what they state alike, where several fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// Slots a cycle.
    pub width: f64,
    /// The least and most that it may be, where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widths: Option<(f64, f64)>,
    /// Ways and sets of its first-level code cache.
    pub l1_code: Option<(usize, usize)>,
    /// Ways and sets of its first-level data cache.
    pub l1_data: Option<(usize, usize)>,
    /// The clock in GHz, its relative error, and why it was not measured.
    pub clock: (f64, f64, Option<String>),
    /// Cycles of a misprediction by the self-test.
    pub misprediction: Option<f64>,
    /// All answers of the self-test, for whoever reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<serde_json::Value>,
}

/// Functions of the sampled run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Name of the event.
    pub event: String,
    /// Samples.
    pub samples: u64,
    /// Wall time.
    pub seconds: f64,
    /// Share of the kernel.
    pub kernel: f64,
    /// Analysed functions, hottest first.
    pub functions: Vec<HotCode>,
}

/// A hot function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotCode {
    /// Its file.
    pub module: String,
    /// Its name.
    pub name: String,
    /// First address and the one after the last.
    pub range: (u64, u64),
    /// Share of all samples.
    pub share: f64,
    /// Why its code is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// The code of a function, with what was seen of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Code {
    /// Its number among the hot functions.
    pub number: usize,
    /// Whether it is an entry of a linkage table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stub: bool,
    /// Basic blocks in order of address.
    pub blocks: Vec<Block>,
    /// Natural loops, outer ones first.
    pub loops: Vec<Around>,
    /// Runs of instructions: their address and bytes in hex.
    pub code: Vec<(u64, String)>,
    /// Source lines of instructions with samples, and samples, by address.
    pub lines: BTreeMap<u64, Line>,
}

/// A basic block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// First address and the one after its last instruction.
    pub range: (u64, u64),
    /// The blocks after it, by number; the fall-through is last.
    pub to: Vec<To>,
    /// The innermost loop that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub innermost: Option<usize>,
    /// Whether it may go on to places that are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unresolved: bool,
    /// Samples.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Its entries, or why they are not known.
    pub entries: Result<u64, Why>,
    /// Cycles of its longest path of dependencies, if it has samples.
    #[serde(default, skip_serializing_if = "is_none")]
    pub latency: f64,
}

/// Where control goes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum To {
    /// A block, by number.
    Block(usize),
    /// An address out of the function.
    Outside {
        /// The address.
        outside: u64,
    },
}

/// A natural loop, with blocks by number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// Its first block.
    pub head: usize,
    /// Blocks that jump back.
    pub back: Vec<usize>,
    /// All.
    pub blocks: Vec<usize>,
}

/// An instruction of the listing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Samples.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Source file and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<(String, u32)>,
}

/// A loop or blocks in isolation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// The function, by its place in `functions`.
    pub function: usize,
    /// The blocks, by number.
    pub blocks: Vec<usize>,
    /// Cycles of an entry (value, low, high), or why they are not known.
    pub cycles: Result<(f64, f64, f64), Why>,
    /// Bound; empty where cycles are not known.
    #[serde(with = "super::or_empty")]
    pub kind: Option<BoundBy>,
    /// As in `tdtool.block/2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Class>,
    /// The share of its time beyond retiring in which loads wait for L1 or for stores. Older evidence has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<f64>,
    /// Whether it was measured with the program's own values.
    pub own_values: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_up: Option<String>,
}

/// A run pinned to one CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// Wall time.
    pub seconds: f64,
    /// Processor time in seconds.
    pub task: f64,
    /// Samples.
    pub samples: u64,
    /// Share of them in the kernel.
    pub kernel: f64,
    /// Those of blocks, by file: first address and samples.
    pub places: BTreeMap<String, Vec<(u64, u64)>>,
    /// Whether CPUs share a core, which slows threads, too.
    pub smt: bool,
    /// Why it does not tell what contention costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Why>,
}

/// Functions with few samples each, as one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// How many of them ran.
    pub functions: u64,
    /// Their samples.
    pub samples: f64,
    /// The share of their code that was counted.
    pub counted: f64,
    /// Cycles that their retired µops take (value, low, high).
    pub retiring: (f64, f64, f64),
    /// Cycles of their mispredictions.
    pub mispredicted: (f64, f64, f64),
    /// The most cycles of those that are not known, and why they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<(f64, Why)>,
    /// Executions of their lines of code.
    pub fetched: f64,
    /// Bytes of all hot code.
    pub footprint: f64,
    /// Blocks, drawn in proportion to the µops that they retire.
    pub blocks: Vec<Drawn>,
}

/// A block that was drawn. Cycles are of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// Cycles that its retired µops take.
    pub retired: f64,
    /// Cycles of its longest path of dependencies.
    pub latency: f64,
    /// Cycles in isolation.
    pub isolated: Result<f64, Why>,
    /// Bound there; empty where cycles are not known.
    #[serde(with = "super::or_empty")]
    pub kind: Option<BoundBy>,
    /// The share of these in which loads wait for L1 or for stores.
    pub waits: f64,
    /// Cycles that its loads and stores take beyond L1 at most: measured ones, and others.
    pub loads: Result<(f64, f64), Why>,
}

/// Records beside counts, as far as wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// Branches: wanted, and recorded.
    pub branches: (bool, bool),
    /// Loads.
    pub loads: (bool, bool),
    /// Nothing was left that loads could explain.
    pub is_explained: bool,
    /// The code of which loads were recorded, by file.
    pub places: BTreeMap<String, Vec<(u64, u64)>>,
}

/// Why a number is not known, in the words of the run that looked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why(pub String);

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_none(cycles: &f64) -> bool {
    *cycles == 0.0
}

/// Most bytes of a file's text.
const LONGEST: u64 = 64 << 20;

/// Reads a file.
///
/// # Errors
/// It cannot be read, is too long, or is something else.
pub fn read(path: &Path) -> tma::Result<Evidence> {
    let unreadable = |cause: &dyn Display| {
        Error::failed(format!("cannot read the evidence {}", tma::files::name(path)))
            .because(cause)
            .hint("`tdtool report --estimate --evidence FILE -- COMMAND` writes it")
    };
    let text = profile::kept::open(path).and_then(|file| tma::files::read_open(&file, LONGEST));
    // Through a value, as reports are read: the reader of their rows is generated once.
    let value = serde_json::from_slice(&text.map_err(|e| unreadable(&e))?);
    value.and_then(serde_json::from_value).map_err(|e| unreadable(&e))
}

/// Writes it, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, evidence: &Evidence) -> tma::Result<()> {
    let failed = |cause: &dyn Display| {
        Error::failed(format!("cannot write the evidence to {}", path.display())).because(cause)
    };
    let text = serde_json::to_vec(evidence).map_err(|e| failed(&e))?;
    let is_packed = path.extension().is_some_and(|end| end == "gz");
    let bytes = match is_packed {
        true => packed(&text).map_err(|e| failed(&e))?,
        false => text,
    };
    write_whole(path, &bytes, &[], "--evidence")
}

fn packed(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::{SCHEMA, *};
    use profile::counts::FileKind;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let evidence = Evidence { schema: SCHEMA.to_owned(), cycles: 0.1, ..Evidence::default() };
        for name in ["a.json", "a.json.gz"] {
            let path = folder.path().join(name);
            write(&path, &evidence).unwrap();
            assert_eq!(FileKind::of(&path).unwrap(), FileKind::Evidence, "{name}");
            let found = read(&path).unwrap();
            assert_eq!((found.schema.as_str(), found.cycles), (SCHEMA, 0.1));
        }
    }

    /// 64 MiB of spaces are 64 KiB packed.
    #[test]
    fn a_file_that_grows_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.gz");
        std::fs::write(&path, packed(&vec![b' '; (64 << 20) + 1]).unwrap()).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.cause().unwrap().contains("the limit is"), "{error:?}");
    }
}
