//! The part of a report about code: the hottest functions and blocks; one function's source, with the assembly below
//! each line.

use bench::{Class, Status};
use profile::hot::{
    Busiest, CallNode, Caller, EventShare, HotBlock, HotFunction, HotLine, HotLoop,
};
use serde::{Deserialize, Serialize};
use tma::Address;

/// Samples of a report, and what must be known to read them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Event, as perf names it.
    pub event: String,
    /// How exact the addresses are.
    pub skid: String,
    /// Samples that count.
    pub samples: u64,
    /// Samples of equal weight that would give shares the same error, where theirs differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<f64>,
    /// Records lost because a ring was full.
    pub lost: u64,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// Functions with samples; 0 in older documents.
    #[serde(default)]
    pub functions: usize,
    /// Share of the samples in the kernel; absent in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<f64>,
    /// The process that has most of them, if it still runs here.
    #[serde(skip)]
    pub running: Option<Busiest>,
}

/// One of several sampled events, and where its samples are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Event, as perf names it.
    pub name: String,
    /// Samples.
    pub samples: u64,
    /// Ids of the nodes that it locates, if any.
    pub nodes: Vec<String>,
    /// Their labels.
    pub labels: Vec<String>,
    /// The functions with most of them.
    pub functions: Vec<EventFunction>,
}

/// A function with its share of one event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventFunction {
    /// Demangled name.
    pub name: String,
    /// Name without parameters and return type of C++.
    pub short: String,
    /// File name of its module.
    pub module: String,
    /// Share of the event's samples, 0 to 1.
    pub share: f64,
    /// Half width of its 95 % interval: sampling error, if samples are independent of one another.
    pub error: f64,
    /// Samples.
    pub samples: u64,
}

/// The share of one of several sampled events in some code.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventPart {
    /// Number of the event in `events`.
    pub event: usize,
    /// Share of the event's samples, 0 to 1.
    pub share: f64,
    /// Half width of its 95 % interval: sampling error, if samples are independent of one another.
    pub error: f64,
    /// Samples.
    pub samples: u64,
}

impl From<EventShare> for EventPart {
    fn from(of: EventShare) -> Self {
        Self { event: of.event, share: of.share, error: of.error, samples: of.samples }
    }
}

impl EventFunction {
    /// A function, and its share of the event.
    pub fn new(function: &HotFunction, of: EventShare) -> Self {
        Self {
            name: function.name.clone(),
            short: function.short.clone(),
            module: function.module.clone(),
            share: of.share,
            error: of.error,
            samples: of.samples,
        }
    }
}

/// A hot function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionRow {
    /// Demangled name.
    pub name: String,
    /// Name without parameters and return type of C++; older documents have none.
    #[serde(default)]
    pub short: String,
    /// File name of its module.
    pub module: String,
    /// Share of the samples, 0 to 1.
    pub share: f64,
    /// Samples.
    pub samples: u64,
    /// Source file, where it is known.
    pub file: Option<String>,
    /// Line of its first instruction.
    pub line: Option<u32>,
    /// Its line with most samples, of inlined code too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hottest: Option<HotLine>,
    /// Why its code cannot be shown.
    pub gap: Option<String>,
    /// Share of each event, where several were sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventPart>,
}

/// Hot code of a function: a block or loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeRow {
    /// Its function.
    pub function: String,
    /// Name without parameters and return type of C++; older documents have none.
    #[serde(default)]
    pub function_short: String,
    /// File name of its module.
    pub module: String,
    /// Path of its module.
    pub path: String,
    /// First address, as in the ELF file.
    pub start: Address,
    /// End of its last instruction, exclusive.
    pub end: Address,
    /// Share of the samples, 0 to 1.
    pub share: f64,
    /// Samples.
    pub samples: u64,
    /// How many loops are around it.
    pub loop_depth: u32,
    /// Source file of its hottest instruction.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Inlined function that the line belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
}

impl CodeRow {
    fn new(of: &HotBlock, function: &HotFunction) -> Self {
        Self {
            function: function.name.clone(),
            function_short: function.short.clone(),
            module: function.module.clone(),
            path: function.path.clone(),
            start: of.start.into(),
            end: of.end.into(),
            share: of.share,
            samples: of.samples,
            loop_depth: of.loop_depth,
            file: of.file.clone(),
            line: of.line,
            inlined: of.inlined.clone(),
        }
    }
}

/// A hot block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRow {
    /// Where it is, and how hot.
    #[serde(flatten)]
    pub code: CodeRow,
    /// Share of each event, where several were sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventPart>,
    /// Its instructions without addresses, for comparisons; absent where its code is not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// The block in isolation, if measured.
    #[serde(default)]
    pub measured: Option<Clean>,
    /// The loop around it with the program's values, if the command was run again for them.
    #[serde(default)]
    pub with_values: Option<WithValues>,
    /// How often it was entered: in a run of the command, or a second of a live process.
    #[serde(default)]
    pub entries: Option<f64>,
    /// Half width of what is known of `entries`, as a ratio; 0 where every entry was counted,
    /// absent where `entries` are the least that there were.
    #[serde(default)]
    pub entries_error: Option<f64>,
    /// How `entries` are known, or why they are not; absent where they were not asked for.
    #[serde(default)]
    pub entries_how: Option<String>,
    /// How often the innermost loop around it was entered, where that is known exactly.
    #[serde(default)]
    pub loop_entries: Option<u64>,
    /// Iterations of that loop for each of them, on average.
    #[serde(default)]
    pub loop_trips: Option<f64>,
    /// Half width of what is known of the time and cycles of an entry, as a ratio: two standard
    /// deviations of the number of samples, and the error of `entries`.
    #[serde(default)]
    pub per_entry_error: Option<f64>,
    /// Time of the block for each entry, nanoseconds; the most it can be where `entries` are the
    /// least.
    #[serde(default)]
    pub ns_per_entry: Option<f64>,
    /// Core cycles of an entry, where they are known or can be estimated.
    #[serde(default)]
    pub cycles_per_entry: Option<f64>,
}

/// A hot loop, less the loops within it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopRow {
    /// Where it is, and how hot; with nesting depth from 1.
    #[serde(flatten)]
    pub code: CodeRow,
    /// First address of the block that it is entered at, as in the ELF file.
    pub head: Address,
    /// Number of its blocks.
    pub blocks: usize,
}

impl LoopRow {
    /// The row of a loop of `function`.
    pub fn new(of: &HotLoop, function: &HotFunction) -> Self {
        let code = CodeRow::new(&of.whole, function);
        Self { code, head: of.head.into(), blocks: of.blocks }
    }
}

/// A block measured in isolation, in the block profiler's sandbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Clean {
    /// Outcome.
    pub status: Status,
    /// Why it is not `ok`.
    pub reason: Option<String>,
    /// Cycles per iteration in straight copies.
    pub cycles: Option<f64>,
    /// Lowest and highest.
    pub range: Option<(f64, f64)>,
    /// Cycles per iteration as a loop.
    pub looped: Option<f64>,
    /// Source of the cycles.
    pub clock: Option<String>,
    /// Names of the assumptions that were violated.
    pub violated: Vec<String>,
    /// Instruction left out: a call or return at its end.
    pub without: Option<String>,
    /// The bound that explains the cycles, as in `tdtool.block/2`; absent where that was not found.
    #[serde(default)]
    pub bound: Option<Class>,
}

/// The innermost loop around a hot block, measured with the values of a further run of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WithValues {
    /// Outcome; empty where there are no values.
    #[serde(with = "super::or_empty")]
    pub status: Option<Status>,
    /// Why it is not `ok`, or why there are no values.
    pub reason: Option<String>,
    /// Address of its first block; none where it was not found.
    #[serde(with = "super::or_empty")]
    pub head: Option<Address>,
    /// Number of its blocks.
    pub blocks: usize,
    /// Cycles per iteration of the loop.
    pub cycles: Option<f64>,
    /// Lowest and highest.
    pub range: Option<(f64, f64)>,
    /// Source of the cycles.
    pub clock: Option<String>,
    /// The entry of its first block, from 1, from which the values are.
    pub entry: Option<u64>,
    /// Its iterations from there on.
    pub iterations: Option<u64>,
}

impl From<&HotFunction> for FunctionRow {
    fn from(function: &HotFunction) -> Self {
        Self {
            name: function.name.clone(),
            short: function.short.clone(),
            module: function.module.clone(),
            share: function.share,
            samples: function.samples,
            file: function.file.clone(),
            line: function.line,
            hottest: function.hottest.clone(),
            gap: function.gap.as_ref().map(ToString::to_string),
            events: Vec::new(),
        }
    }
}

impl BlockRow {
    /// The row of a block of `function`.
    pub fn new(block: &HotBlock, function: &HotFunction) -> Self {
        Self { code: CodeRow::new(block, function), ..Self::default() }
    }
}

/// The callers of one function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Callers {
    /// Function asked for.
    pub function: String,
    /// Who calls it, by share of its samples; a sample counts once for each caller in its chain.
    pub callers: Vec<Caller>,
    /// Its callers and theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<CallNode>,
}

/// The callees of one function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Callees {
    /// Function asked for.
    pub function: String,
    /// Callees, theirs, and its own code.
    pub tree: Vec<CallNode>,
}

/// A function, line by line. Shares are of the function's samples, 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnnotatedFunction {
    /// Demangled name.
    pub function: String,
    /// File name of its module.
    pub module: String,
    /// First address, as in the ELF file.
    pub start: Address,
    /// End address, exclusive.
    pub end: Address,
    /// Share of all samples that are in it.
    pub share: f64,
    /// Its samples.
    pub samples: u64,
    /// Why lines or their text are missing; empty if none are.
    pub missing: Vec<String>,
    /// Its lines, file by file: the function's own file first, lines in order, then those of inlined code.
    /// Without lines in the program one row has all instructions.
    pub lines: Vec<SourceLine>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// A source line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Source file, as the program names it; absent where the line is not known.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Its text; absent if the file was not found.
    pub text: Option<String>,
    /// Share of the function's samples.
    pub share: f64,
    /// Half width of its 95 % interval, sampling error only.
    pub error: f64,
    /// Samples.
    pub samples: u64,
    /// Whether no line has more.
    pub hottest: bool,
    /// Share of the samples of each event, where several were sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventPart>,
    /// Its instructions, in order of address.
    pub instructions: Vec<SourceInstruction>,
}

/// An instruction of a source line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceInstruction {
    /// Address, as in the ELF file.
    pub address: Address,
    /// Intel syntax.
    pub text: String,
    /// Share of the function's samples.
    pub share: f64,
    /// Samples.
    pub samples: u64,
}
