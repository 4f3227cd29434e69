//! Samples on functions, blocks and instructions.
//!
//! | file | concern |
//! |---|---|
//! | `gather` | samples → places, with the address spaces as they were |
//! | `functions` | places → functions, their shares and lines |
//! | `annotate` | one function: its blocks and instructions with their samples |
//! | `callers` | call chains: who calls a function, folded stacks |
//! | `threads` | which threads have samples |
//!
//! Shares are of the weight of all samples that pass the filter: of their periods where every
//! sample has one, else of their number.

mod annotate;
mod callers;
mod functions;
mod gather;
mod threads;

pub use callers::Caller;
pub use threads::{Thread, threads};

use super::event::Event;
use super::recording::Recording;
use super::space::{ModuleAddress, AddressSpaces};
use super::symbols::{Origin, SearchPaths, Symbols};
use gather::{Gathered, Tally};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Deref;

/// Which samples count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Index of the event; the first if `None`.
    pub event: Option<usize>,
    /// Threads and processes, by number; all if empty.
    pub threads: Vec<u32>,
    /// Threads by name; all if empty.
    pub names: Vec<String>,
    /// Nanoseconds since the first sample, from and to.
    pub time: Option<(u64, u64)>,
    /// Whether call chains are followed: only callers and folded stacks need them, and they take
    /// most of the time.
    pub chains: bool,
}

/// How exact the samples' addresses are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skid {
    /// The instruction itself.
    None,
    /// The instruction or one a few behind it.
    #[default]
    Some,
    /// Where the timer's interrupt was taken: often the one behind a slow instruction.
    Timer,
}

impl Skid {
    /// That of an event's samples.
    pub fn of(event: &Event) -> Self {
        // PERF_TYPE_SOFTWARE: clocks (0 and 1) tick in an interrupt; faults and switches happen at
        // their instruction.
        match (event.kind, event.config, event.precise) {
            (1, 0 | 1, _) => Self::Timer,
            (1 | 2 | 5, ..) | (_, _, 3) => Self::None,
            _ => Self::Some,
        }
    }

    /// For people.
    pub fn explain(self) -> &'static str {
        match self {
            Self::None => "samples are on the instruction itself",
            Self::Some => "samples skid: the instruction is the one named or one a few before it",
            Self::Timer => {
                "samples are where the timer's interrupt was taken: often the instruction behind the \
                 one that was waited for"
            }
        }
    }
}

/// A function with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotFunction {
    /// Demangled name.
    pub name: String,
    /// The same without parameters and return type.
    #[serde(default)]
    pub short: String,
    /// Module's name.
    pub module: String,
    /// Module's path.
    pub path: String,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Samples in it.
    pub samples: u64,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line of its first instruction.
    pub line: Option<u32>,
    /// First address (p_vaddr).
    pub start: u64,
    /// Behind its last.
    pub end: u64,
    /// Why its code cannot be shown.
    pub gap: Option<String>,
}

/// A block with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotBlock {
    /// Index of its function.
    pub function: usize,
    /// First address (p_vaddr).
    pub start: u64,
    /// Behind its last instruction.
    pub end: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Samples in it.
    pub samples: u64,
    /// How many loops are around it.
    pub loop_depth: u32,
    /// Source line of its hottest instruction.
    pub file: Option<String>,
    /// See `file`.
    pub line: Option<u32>,
}

/// An instruction of an annotated function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedLine {
    /// Address (p_vaddr).
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Intel syntax, addresses absolute.
    pub text: String,
    /// Samples on it.
    pub samples: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Source file and line.
    pub source: Option<(String, u32)>,
}

/// A block of an annotated function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedBlock {
    /// Its place and share.
    pub block: HotBlock,
    /// Start addresses of the blocks it may go on to.
    pub edges: Vec<u64>,
    /// Whether it is the head of a loop.
    pub is_head: bool,
    /// The head of the loop it jumps back to.
    pub back_to: Option<u64>,
    /// Whether edges are missing: an indirect jump whose targets were not found.
    pub unresolved: bool,
    /// Its instructions.
    pub lines: Vec<AnnotatedLine>,
}

/// A function with its code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotated {
    /// The function.
    pub function: HotFunction,
    /// Its blocks, in order of address.
    pub blocks: Vec<AnnotatedBlock>,
    /// What must be known to read it.
    pub notes: Vec<String>,
}

/// What a recording says about the code, without what finds it: plain data for whoever shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Functions with samples, hottest first.
    pub functions: Vec<HotFunction>,
    /// Name of the event that the samples are of.
    pub event: String,
    /// How exact they are.
    pub skid: Skid,
    /// Samples that count.
    pub samples: u64,
    /// Records lost.
    pub lost: u64,
    /// What must be known to read it.
    pub notes: Vec<String>,
    /// Names of all events that were sampled.
    pub events: Vec<String>,
    /// Where there are several events, of each function the one that it has most of, and which
    /// share of that event's samples, 0 to 1.
    pub dominant: Vec<Option<(usize, f64)>>,
}

/// What a recording says about the code; reads as its [`Summary`].
#[derive(Debug)]
pub struct Profile {
    summary: Summary,
    spaces: AddressSpaces,
    symbols: Symbols,
    gathered: Gathered,
    /// Module and start of each function.
    keys: Vec<Key>,
    /// Places of each function, by address.
    places: Vec<Vec<(u64, Tally)>>,
}

impl Deref for Profile {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

/// What makes a function: its module, and where it starts.
type Key = (usize, u64);

impl Profile {
    /// Keeps the notes that are `wanted`.
    pub fn keep_notes(&mut self, wanted: impl Fn(&str) -> bool) {
        self.summary.notes.retain(|note| wanted(note));
    }

    /// Attributes the samples of a recording. Programs are looked for in `search`.
    pub fn new(recording: &Recording, filter: &Filter, search: SearchPaths) -> Self {
        let origin = Origin {
            live: is_of_this_system(recording),
            this_boot: recording.boot.is_some() && recording.boot == pmu::machine::boot_id(),
            kernel: recording.kernel.clone(),
            host: recording.host.clone(),
            architecture: recording.architecture.clone(),
        };
        let mut spaces = AddressSpaces::new(search.clone(), &recording.build_ids);
        let gathered = gather::gather(recording, filter, &mut spaces);
        let event = recording.events.get(filter.event.unwrap_or(0));
        let mut profile = Self {
            summary: Summary {
                event: event.map(|e| e.name.clone()).unwrap_or_default(),
                skid: event.map_or(Skid::Some, Skid::of),
                samples: gathered.total.samples,
                lost: recording.lost,
                notes: recording.notes.clone(),
                events: recording.events.iter().map(|e| e.name.clone()).collect(),
                ..Summary::default()
            },
            spaces,
            symbols: Symbols::new(search).of(origin),
            gathered,
            keys: Vec::new(),
            places: Vec::new(),
        };
        profile.attribute();
        profile
    }

    /// Share of a tally in all samples that count.
    fn share(&self, tally: Tally) -> f64 {
        let all = self.gathered.total;
        if all.weight == 0.0 { 0.0 } else { tally.weight / all.weight }
    }

    /// The name of the function at a place, and the same without parameters.
    fn names_at(&mut self, place: ModuleAddress) -> (String, String) {
        let module = &self.spaces.modules.all[place.module];
        match self.symbols.function_at(module, place.address) {
            Some(function) => (function.name.clone(), function.short.clone()),
            None => {
                let name = functions::bracketed(module.name());
                (name.clone(), name)
            }
        }
    }
}

/// Whether the running kernel and vdso are those of the recording.
fn is_of_this_system(recording: &Recording) -> bool {
    let here = nix::sys::utsname::uname();
    let same = |ours: Result<&std::ffi::OsStr, ()>, theirs: &Option<String>| {
        theirs.as_deref().is_some_and(|t| ours.is_ok_and(|o| o.to_str() == Some(t)))
    };
    let Ok(here) = here else { return false };
    same(Ok(here.nodename()), &recording.host) && same(Ok(here.release()), &recording.kernel)
}
