//! Cache lines that several threads access, one of which writes (as `perf c2c`).
//!
//! Lines are found in two passes over the samples: most lines belong to one thread, and of those only a few words are
//! stored. If two threads access the same bytes, one of them writing, the data itself is shared; otherwise they only
//! happen to lie in one line (false sharing).

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

/// Bytes of a line, on all x86-64 processors.
const LINE: u64 = 64;
/// Lines noted in the first pass (140 MB): more are not looked at.
pub const MOST_LINES: usize = 3_600_000;

/// A cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// Its process; `None` for addresses that all processes share: the kernel's, and physical ones.
    pub process: Option<u32>,
    /// Address / 64.
    pub number: u64,
}

impl Line {
    /// The line of an address.
    pub fn of(process: Option<u32>, address: u64) -> Self {
        Self { process, number: address / LINE }
    }

    /// Its first address.
    pub fn address(self) -> u64 {
        self.number * LINE
    }
}

/// Thread or CPU that accesses a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// A thread.
    Thread(u32),
    /// A CPU, where the samples have no thread.
    Cpu(u32),
}

/// One sampled access.
#[derive(Debug, Clone, Copy)]
pub struct LineAccess {
    /// Its line.
    pub line: Line,
    /// The thread or CPU.
    pub actor: Actor,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// Offset in the line.
    pub offset: u8,
    /// Bytes, if known.
    pub bytes: Option<u8>,
    /// The caller's number of the instruction.
    pub site: usize,
    /// Whether it writes: a store, or a locked access.
    pub writes: bool,
    /// Whether another core had the line, modified.
    pub modified: bool,
    /// Whether a cache of another node had it.
    pub remote: bool,
    /// Latency in core cycles, if recorded.
    pub latency: Option<u32>,
}

/// State of a line after the first pass.
#[derive(Debug, Clone, Copy)]
struct Seen {
    first: Actor,
    several: bool,
    written: bool,
    modified: bool,
}

/// Lines of the first pass.
#[derive(Debug, Default)]
pub struct Lines {
    all: HashMap<Line, Seen>,
    /// Whether there were more than [`MOST_LINES`].
    pub is_part: bool,
}

/// Samples of one thread at one offset by one instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Bytes of an access, the most of all.
    pub bytes: Option<u8>,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub writes: u64,
    /// Samples of lines that another core had, modified.
    pub modified: u64,
    /// Samples in `modified` whose line was in a cache of another node.
    pub remote: u64,
    /// Samples with a latency, and its sum.
    pub latencies: (u64, u64),
    /// CPUs it ran on.
    pub cpus: BTreeSet<u32>,
}

/// Why threads meet in a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharing {
    /// They access the same bytes.
    #[serde(rename = "true")]
    Same,
    /// They access different bytes: false sharing.
    #[serde(rename = "false")]
    Different,
    /// Only one thread or no write was sampled, but another core had the line, modified.
    #[default]
    #[serde(rename = "unknown")]
    Unknown,
}

/// As in documents.
impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A line that several threads access.
#[derive(Debug, Clone, Default)]
pub struct SharedLine {
    /// By thread, offset and instruction.
    pub accesses: BTreeMap<(Actor, u8, usize), Accesses>,
}

impl Lines {
    /// Notes an access in the first pass.
    pub fn note(&mut self, access: &LineAccess) {
        if self.all.len() >= MOST_LINES && !self.all.contains_key(&access.line) {
            self.is_part = true;
            return;
        }
        let new = Seen { first: access.actor, several: false, written: false, modified: false };
        let seen = self.all.entry(access.line).or_insert(new);
        seen.several |= seen.first != access.actor;
        seen.written |= access.writes;
        seen.modified |= access.modified;
    }

    /// After the first pass: the lines to look at in the second.
    pub fn shared(self) -> BTreeMap<Line, SharedLine> {
        let is_shared = |seen: &Seen| (seen.several && seen.written) || seen.modified;
        let chosen = self.all.into_iter().filter(|(_, seen)| is_shared(seen));
        chosen.map(|(line, _)| (line, SharedLine::default())).collect()
    }
}

impl SharedLine {
    /// Adds an access in the second pass.
    pub fn add(&mut self, access: &LineAccess) {
        let sum = self.accesses.entry((access.actor, access.offset, access.site)).or_default();
        sum.bytes = sum.bytes.max(access.bytes);
        match access.writes {
            true => sum.writes += 1,
            false => sum.loads += 1,
        }
        sum.modified += u64::from(access.modified);
        sum.remote += u64::from(access.modified && access.remote);
        if let Some(latency) = access.latency {
            sum.latencies = (sum.latencies.0 + 1, sum.latencies.1 + u64::from(latency));
        }
        sum.cpus.extend(access.cpu);
    }

    /// Samples: reads, writes, and those of lines that another core had, modified.
    pub fn totals(&self) -> (u64, u64, u64) {
        let all = self.accesses.values();
        all.fold((0, 0, 0), |(loads, writes, modified), one| {
            (loads + one.loads, writes + one.writes, modified + one.modified)
        })
    }

    /// Samples of lines that a core of another node had, modified.
    pub fn remote(&self) -> u64 {
        self.accesses.values().map(|one| one.remote).sum()
    }

    /// How many threads were sampled.
    pub fn actors(&self) -> usize {
        self.accesses.keys().map(|(actor, ..)| *actor).collect::<BTreeSet<_>>().len()
    }

    /// Whether threads access the same bytes.
    pub fn sharing(&self) -> Sharing {
        // Who reads or writes each byte of the line.
        let mut bytes: [(BTreeSet<Actor>, BTreeSet<Actor>); LINE as usize] =
            std::array::from_fn(|_| (BTreeSet::new(), BTreeSet::new()));
        for ((actor, offset, _), one) in &self.accesses {
            let first = usize::from(*offset).min(bytes.len());
            let end = first.saturating_add(usize::from(one.bytes.unwrap_or(1))).min(bytes.len());
            for (readers, writers) in &mut bytes[first..end] {
                if one.loads > 0 {
                    readers.insert(*actor);
                }
                if one.writes > 0 {
                    writers.insert(*actor);
                }
            }
        }
        let meet = |(readers, writers): &(BTreeSet<Actor>, BTreeSet<Actor>)| {
            !writers.is_empty() && readers.union(writers).count() > 1
        };
        let (_, writes, _) = self.totals();
        match () {
            () if bytes.iter().any(meet) => Sharing::Same,
            () if self.actors() > 1 && writes > 0 => Sharing::Different,
            () => Sharing::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(thread: u32, address: u64, writes: bool, modified: bool) -> LineAccess {
        LineAccess {
            line: Line::of(Some(7), address),
            actor: Actor::Thread(thread),
            cpu: Some(thread),
            offset: (address % LINE) as u8,
            bytes: Some(8),
            site: 0,
            writes,
            modified,
            remote: false,
            latency: None,
        }
    }

    fn shared(all: &[LineAccess]) -> BTreeMap<Line, SharedLine> {
        let mut lines = Lines::default();
        all.iter().for_each(|access| lines.note(access));
        let mut shared = lines.shared();
        for access in all {
            if let Some(line) = shared.get_mut(&access.line) {
                line.add(access);
            }
        }
        shared
    }

    /// By hand: what perf c2c's manual calls false sharing.
    #[test]
    fn lines_with_a_writer_and_another_thread() {
        let found = shared(&[
            access(1, 0x1000, true, false),
            access(2, 0x1008, false, true),
            access(1, 0x2000, false, false),
            access(2, 0x2008, false, false),
            access(1, 0x3000, true, false),
            access(1, 0x3008, false, false),
            access(1, 0x4000, true, false),
            access(2, 0x4004, true, false),
            access(2, 0x5000, false, true),
        ]);
        let found: Vec<_> =
            found.iter().map(|(line, one)| (line.address(), one.sharing())).collect();
        let expected =
            [(0x1000, Sharing::Different), (0x4000, Sharing::Same), (0x5000, Sharing::Unknown)];
        assert_eq!(found, expected, "not those that one thread accesses or none writes");
    }
}
