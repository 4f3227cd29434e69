//! Cache lines that threads contend for.

use loads::contention::Contention;
use serde::{Deserialize, Serialize};
use tma::Address;

/// A cache line that threads access in turn, one of them writing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContendedLine {
    /// Where it is: a variable with an offset, `[heap]`, `[stack]`, a file; empty where that is not known.
    pub place: String,
    /// How they contend for it.
    pub contention: Contention,
    /// How often a recorded access was of another thread than that before.
    pub handovers: u64,
    /// Recorded accesses.
    pub recorded: u64,
    /// By thread, offset and instruction; those that most accesses are of.
    pub accesses: Vec<ContendedAccess>,
}

/// Accesses of a thread to a contended line by one instruction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContendedAccess {
    /// The thread, numbered from 1 in order of its first access to one of the lines.
    pub thread: u32,
    /// Offset in the line.
    pub offset: u8,
    /// Bytes.
    pub bytes: u8,
    /// Whether it writes.
    pub writes: bool,
    /// Path of the file.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// The instruction's address.
    pub address: Address,
    /// The instruction, in Intel syntax.
    pub instruction: String,
    /// How many were recorded.
    pub recorded: u64,
}

impl ContendedLine {
    /// Its threads, and what helps, in words.
    pub fn text(&self) -> String {
        let Self { place, contention, .. } = self;
        let place = if place.is_empty() { "a cache line" } else { place };
        let one = |of: &ContendedAccess| {
            let ContendedAccess { thread, offset, instruction, function, address, .. } = of;
            format!("thread {thread} at +{offset} `{instruction}` ({function} {address})")
        };
        // One of each thread.
        let is_first = |(number, of): &(usize, &ContendedAccess)| {
            !self.accesses[..*number].iter().any(|before| before.thread == of.thread)
        };
        let shown = self.accesses.iter().enumerate().filter(is_first).map(|(_, of)| one(of));
        let shown = shown.take(SHOWN).collect::<Vec<_>>().join(", ");
        let advice = match contention {
            Contention::FalseSharing => {
                "align what each thread writes to 64 bytes (128 with adjacent-line prefetch)"
            }
            Contention::ContestedAccesses => {
                "give each thread data of its own, or hand it over in batches"
            }
            Contention::LockLatency => {
                "count per thread and sum at the end, lock less often or for shorter, or split the lock"
            }
        };
        format!("threads contend for {place} ({contention}): {shown}; {advice}")
    }
}

/// Threads that are named.
const SHOWN: usize = 2;
