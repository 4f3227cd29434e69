//! All dependencies of a region, from its instructions and latencies.

use super::code::Code;
use super::kind::{Kind, Overlap};
use super::links::{self, False, Link};
use super::memory::{Finder, Found, Settings};
use super::recurrence::{self, Recurrence};
use crate::latency::Latencies;

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
            kind: if link.reg.is_flag() { Kind::Flag } else { Kind::Register },
            through: link.reg.name(),
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
