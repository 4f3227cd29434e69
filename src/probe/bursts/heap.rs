//! Memory allocated by a program, from the log of its allocator calls.

use super::callers::{Caller, Callers, Stack};
use crate::emit::{ENTRIES, ENTRY, LIMIT, LOG, LOGGED};
use crate::patch::Shared;
use std::ops::Range;
use std::path::PathBuf;

/// Entries read at once, in less than a millisecond.
const MANY: u64 = 1 << 10;
/// Entries from which on the log is read while the program runs.
const LONG: u64 = ENTRIES / 2;
/// Most calls stored per image: 200 MB.
const MOST: u64 = 1 << 23;

/// Memory that a call allocated or freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Its addresses.
    pub range: Range<u64>,
    /// The function that was called: index in [`Recorded::observed`](super::Recorded).
    pub site: u32,
    /// Its callers: index in [`Heap::callers`].
    pub callers: u32,
}

/// Memory allocated by an image.
#[derive(Debug, Clone)]
pub struct Heap {
    /// The image ([`Burst::image`](super::Burst)).
    pub image: usize,
    /// All logged calls, in order of return.
    pub allocations: Vec<Allocation>,
    /// Calls lost since the log was full.
    pub lost: u64,
    /// Callers, innermost first, as far as the logged part of the stack shows them.
    pub callers: Vec<Vec<Caller>>,
    /// Files of the callers.
    pub files: Vec<PathBuf>,
    /// The log also has calls of forked processes, with copies of the memory.
    pub is_forked: bool,
}

/// The log of an image while it runs.
pub(super) struct Log {
    callers: Callers,
    allocations: Vec<Allocation>,
    /// The image has forked.
    pub is_forked: bool,
}

/// Bytes of shared memory needed.
pub(super) fn needs() -> u64 {
    LOG + ENTRIES * ENTRY
}

/// A number in shared memory.
fn number(shared: &Shared, at: u64) -> Option<u64> {
    let mut word = [0; 8];
    shared.read(&mut word, at).ok().map(|()| u64::from_le_bytes(word))
}

impl Log {
    /// Number of calls logged so far.
    pub fn logged(shared: &Shared) -> u64 {
        number(shared, LOGGED).unwrap_or(u64::MAX)
    }

    /// An empty log. If its memory cannot be written, no call is logged.
    pub fn new(shared: &Shared) -> Self {
        let _ = shared.write(&ENTRIES.to_le_bytes(), LIMIT);
        Self { callers: Callers::default(), allocations: Vec::new(), is_forked: false }
    }

    /// Updates the mappings of the process.
    pub fn refresh(&mut self, process: i32) {
        self.callers.refresh(process);
    }

    /// Whether calls must be read to make room.
    pub fn is_long(&self, shared: &Shared) -> bool {
        Self::logged(shared) >= self.allocations.len() as u64 + LONG
    }

    /// Reads some logged calls and makes room; false if there were none.
    pub fn read(&mut self, shared: &Shared) -> bool {
        let first = self.allocations.len() as u64;
        let slot = first % ENTRIES;
        let left = Self::logged(shared).saturating_sub(first).min(MOST.saturating_sub(first));
        let most = left.min(MANY).min(ENTRIES - slot);
        let mut bytes = vec![0; (most * ENTRY) as usize];
        if most == 0 || shared.read(&mut bytes, LOG + slot * ENTRY).is_err() {
            return false;
        }
        for (entry, call) in bytes.as_chunks::<{ ENTRY as usize }>().0.iter().zip(first..) {
            // An entry that is not (yet) written ends the log.
            let Some(found) = allocation(entry, call, &mut self.callers) else { break };
            self.allocations.push(found);
        }
        let read = self.allocations.len() as u64;
        let _ = shared.write(&(read + ENTRIES).to_le_bytes(), LIMIT);
        read > first
    }

    /// All calls logged by an image that has ended.
    pub fn finish(mut self, image: usize, shared: &Shared) -> Heap {
        while self.read(shared) {}
        let Self { callers, allocations, is_forked } = self;
        let lost = Self::logged(shared).saturating_sub(allocations.len() as u64);
        let (callers, files) = callers.into_parts();
        Heap { image, allocations, lost, callers, files, is_forked }
    }
}

/// Decodes an entry written by a trampoline, if it is of this call.
fn allocation(
    entry: &[u8; ENTRY as usize],
    call: u64,
    callers: &mut Callers,
) -> Option<Allocation> {
    let mut words = [0; ENTRY as usize / 8];
    for (word, bytes) in words.iter_mut().zip(entry.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let [head, start, size, frame, pointer, site, words @ ..] = words;
    let range = start..start.saturating_add(size);
    (head == call + 1).then(|| {
        let callers = callers.of(&Stack { pointer, frame, words: &words });
        Allocation { range, site: site as u32, callers }
    })
}
