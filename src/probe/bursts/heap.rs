//! What memory a program was given, by the log of the calls that gave it.

use super::callers::{Caller, Callers, Stack};
use crate::emit::{ENTRIES, ENTRY, LIMIT, LOG, LOGGED};
use crate::patch::Shared;
use std::ops::Range;
use std::path::PathBuf;

/// Entries that are read at once: that takes less than a millisecond.
const MANY: u64 = 1 << 10;
/// From so many on they are read while the program runs.
const LONG: u64 = ENTRIES / 2;
/// Most calls that are kept of an image: 200 MB.
const MOST: u64 = 1 << 23;

/// Memory that a call gave, or took back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Its addresses.
    pub range: Range<u64>,
    /// The function that was called: index in [`Recorded::observed`](super::Recorded).
    pub site: u32,
    /// Who called it: index in [`Heap::callers`].
    pub callers: u32,
}

/// The memory that an image was given.
#[derive(Debug, Clone)]
pub struct Heap {
    /// Which image ([`Burst::image`](super::Burst)).
    pub image: usize,
    /// All logged calls, in order of their ends.
    pub allocations: Vec<Allocation>,
    /// Calls that came after the log was full.
    pub lost: u64,
    /// Callers, the innermost first, as far as what was logged of the stack shows them.
    pub callers: Vec<Vec<Caller>>,
    /// Files of the callers.
    pub files: Vec<PathBuf>,
    /// Processes with copies of the memory are in the same log.
    pub is_forked: bool,
}

/// The log of an image while it runs.
pub(super) struct Log {
    callers: Callers,
    allocations: Vec<Allocation>,
    /// The image has made a copy of itself.
    pub is_forked: bool,
}

/// Bytes of shared memory that are needed.
pub(super) fn needs() -> u64 {
    LOG + ENTRIES * ENTRY
}

/// A number in shared memory.
fn number(shared: &Shared, at: u64) -> Option<u64> {
    let mut word = [0; 8];
    shared.read(&mut word, at).ok().map(|()| u64::from_le_bytes(word))
}

impl Log {
    /// Calls that were logged until now.
    pub fn logged(shared: &Shared) -> u64 {
        number(shared, LOGGED).unwrap_or(u64::MAX)
    }

    /// An empty one. If its memory cannot be written, there is no room for a call.
    pub fn new(shared: &Shared) -> Self {
        let _ = shared.write(&ENTRIES.to_le_bytes(), LIMIT);
        Self { callers: Callers::default(), allocations: Vec::new(), is_forked: false }
    }

    /// Looks where the code of the process is.
    pub fn look(&mut self, process: i32) {
        self.callers.look(process);
    }

    /// Whether calls are to be read, to make room.
    pub fn is_long(&self, shared: &Shared) -> bool {
        Self::logged(shared) >= self.allocations.len() as u64 + LONG
    }

    /// Reads some of what was logged, and makes room; whether there was something.
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
            // One that is not written yet, or never was, ends the log.
            let Some(found) = allocation(entry, call, &mut self.callers) else { break };
            self.allocations.push(found);
        }
        let read = self.allocations.len() as u64;
        let _ = shared.write(&(read + ENTRIES).to_le_bytes(), LIMIT);
        read > first
    }

    /// All that was logged of an image that does not run any more.
    pub fn finish(mut self, image: usize, shared: &Shared) -> Heap {
        while self.read(shared) {}
        let Self { callers, allocations, is_forked } = self;
        let lost = Self::logged(shared).saturating_sub(allocations.len() as u64);
        let (callers, files) = callers.into_parts();
        Heap { image, allocations, lost, callers, files, is_forked }
    }
}

/// An entry as the trampolines write it, if it is of this call.
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
