//! Dependencies of a block: through registers, flags and memory, and the bound that its
//! recurrences put on it.
//!
//! | file | concern |
//! |---|---|
//! | `code` | the instructions of a block or a path of several |
//! | `links` | dependencies through registers and flags |
//! | [`memory`] | dependencies through memory, by the method of random values |
//! | [`recurrence`] | the slowest cycle of values |
//! | [`latency`] | how long a value takes from an operand to a result, and who says so |
//! | `window` | how far a processor looks ahead |
//! | `document` | all of it as one document; `text`, `lanes` and `dot` render it, `row` and `census` are for batches |
//!
//! Memory and time are bounded by the length of the block and of the reorder buffer.

mod census;
mod code;
mod document;
mod dot;
mod lanes;
pub mod latency;
mod links;
pub mod memory;
pub mod recurrence;
mod row;
mod text;
mod window;

pub use census::Census;
pub use code::Code;
pub use document::{Document, Subject, document};
pub use dot::dot;
pub use links::{False, Link, Order};
pub use row::{HEADER, rejected, row};
pub use text::{Drawing, text};
pub use window::{Window, window};

use latency::Latencies;
use memory::{Finder, Found, Settings};
use recurrence::Recurrence;

/// What carries a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A general-purpose, vector, mask or x87 register.
    Register,
    /// A group of flags.
    Flag,
    /// Memory.
    Memory,
}

/// How a load overlaps the store whose bytes it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// The load lies within one store: forwarded.
    Full,
    /// Only some of the load's bytes were stored; the rest is in the cache.
    Partial,
    /// Several stores, or a store too narrow for it: the load waits until they are in the cache.
    Blocked,
}

/// A true dependency (read after write) between two instructions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependency {
    /// Index of the instruction that writes.
    pub writer: usize,
    /// Index of the one that reads.
    pub reader: usize,
    /// How many iterations later it reads; 0 within one.
    pub delta: u32,
    /// What carries it.
    pub kind: Kind,
    /// The register, the group of flags, or the memory operand as written in the reader.
    pub through: String,
    /// For memory, how the two overlap.
    pub overlap: Option<Overlap>,
}

/// All that is found out about a region.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    /// Through registers and flags.
    pub links: Vec<Link>,
    /// Through memory, and what could not be told.
    pub memory: Found,
    /// The slowest first.
    pub recurrences: Vec<Recurrence>,
}

/// Analyses regions; keeps its tables from one to the next.
#[derive(Debug, Default)]
pub struct Analyser {
    finder: Finder,
    latencies: Latencies,
}

impl Analyser {
    /// With these latencies.
    pub fn new(latencies: Latencies) -> Self {
        Self { finder: Finder::default(), latencies }
    }

    /// Dependencies and recurrences of `code`.
    pub fn analyse(&mut self, code: &Code, settings: &Settings) -> Analysis {
        let links = links::links(code);
        let memory = self.finder.find(code, settings);
        let recurrences = recurrence::recurrences(code, &links, &memory.carried, &self.latencies);
        Analysis { links, memory, recurrences }
    }
}

impl Analysis {
    /// Every true dependency, in order of reader; each once.
    pub fn dependencies(&self, code: &Code) -> Vec<Dependency> {
        let links = self.links.iter().map(|link| Dependency {
            writer: link.writer,
            reader: link.reader,
            delta: link.delta,
            kind: if link.place.is_flag() { Kind::Flag } else { Kind::Register },
            through: link.place.name(),
            overlap: None,
        });
        let memory = self.memory.carried.iter().map(|c| Dependency {
            writer: c.writer,
            reader: c.reader,
            delta: c.delta,
            kind: Kind::Memory,
            through: code.memory_text(c.reader, c.access),
            overlap: Some(c.overlap),
        });
        let mut all: Vec<Dependency> = links.chain(memory).collect();
        all.sort_by(|a, b| (a.reader, a.delta, a.writer, a).cmp(&(b.reader, b.delta, b.writer, b)));
        all.dedup();
        all
    }

    /// Where values are overwritten that were read or written before.
    pub fn overwritten(code: &Code) -> Vec<False> {
        links::overwritten(code)
    }
}
