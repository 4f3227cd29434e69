//! Memory allocated by a program, from the log of its allocator calls, and the callers of an allocation, from its
//! stack (from the return address on) and the unwind tables of the files.

use crate::emit::{ENTRIES, ENTRY, LIMIT, LOG, LOGGED};
use crate::facts::{Base, Frame, Frames};
use crate::patch::Shared;
use crate::process::{Mapping, mappings};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

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

/// Depth limit of the search.
const DEEPEST: usize = 8;

/// A call in the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Its file: index in [`Heap::files`](super::Heap).
    pub file: u32,
    /// The address after the call (p_vaddr).
    pub address: u64,
}

/// The stack at the entry of a function.
pub(super) struct Stack<'a> {
    /// The stack pointer, which points to the return address.
    pub pointer: u64,
    /// The frame pointer, rbp.
    pub frame: u64,
    /// The words from `pointer` on.
    pub words: &'a [u64],
}

impl Stack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let index = address.checked_sub(self.pointer).filter(|bytes| bytes % 8 == 0)? / 8;
        // Unreadable words are 0.
        self.words.get(usize::try_from(index).ok()?).copied().filter(|word| *word != 0)
    }
}

/// The callers of a log.
#[derive(Default)]
pub(super) struct Callers {
    /// Oldest first.
    mappings: Vec<Mapping>,
    paths: Vec<PathBuf>,
    frames: Vec<Option<Frames>>,
    /// Return address in the process → the call.
    places: HashMap<u64, Option<Caller>>,
    rules: HashMap<Caller, Option<Frame>>,
    numbers: HashMap<Vec<Caller>, u32>,
    all: Vec<Vec<Caller>>,
}

impl Callers {
    /// Updates the mappings of a process if it still runs.
    pub fn refresh(&mut self, process: i32) {
        let is_code = |m: &Mapping| m.is_executable() && m.path.starts_with('/');
        for mapping in mappings(process).into_iter().filter(is_code) {
            if !self.mappings.contains(&mapping) {
                self.mappings.push(mapping);
                // Other code may have been at these addresses.
                self.places.clear();
            }
        }
    }

    /// All lists of callers, by number, and their files.
    pub fn into_parts(self) -> (Vec<Vec<Caller>>, Vec<PathBuf>) {
        (self.all, self.paths)
    }

    /// The number of the list of callers, innermost first.
    pub fn of(&mut self, stack: &Stack<'_>) -> u32 {
        let mut found = Vec::new();
        // The stack pointer after the return.
        let mut top = stack.pointer.wrapping_add(8);
        let (mut next, mut frame) = (stack.word(stack.pointer), Some(stack.frame));
        while let Some(caller) = next.and_then(|address| self.place(address)) {
            found.push(caller);
            let Some(rule) = self.rule(caller).filter(|_| found.len() < DEEPEST) else { break };
            let base = match rule.base {
                Base::Stack => Some(top),
                Base::Frame => frame,
            };
            let Some(after) = base.map(|base| base.wrapping_add_signed(rule.distance)) else {
                break;
            };
            if after <= top {
                break;
            }
            if let Some(saved) = rule.saved {
                frame = stack.word(after.wrapping_add_signed(saved));
            }
            next = stack.word(after.wrapping_sub(8));
            top = after;
        }
        self.number(found)
    }

    fn number(&mut self, callers: Vec<Caller>) -> u32 {
        if let Some(number) = self.numbers.get(&callers) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(callers.clone());
        self.numbers.insert(callers, number);
        number
    }

    /// The call that returns to an address.
    fn place(&mut self, address: u64) -> Option<Caller> {
        if let Some(known) = self.places.get(&address) {
            return *known;
        }
        // A call may be the last instruction of its function.
        let call = address.wrapping_sub(1);
        let found = self.mappings.iter().rfind(|m| (m.start..m.end).contains(&call)).cloned();
        let caller = found.and_then(|mapping| {
            let file = self.file(Path::new(&mapping.path));
            let offset = call - mapping.start + mapping.offset;
            let address = self.frames[file].as_ref()?.layout.address_of(offset)?.checked_add(1)?;
            Some(Caller { file: file as u32, address })
        });
        self.places.insert(address, caller);
        caller
    }

    fn file(&mut self, path: &Path) -> usize {
        let known = self.paths.iter().position(|known| known == path);
        known.unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.frames.push(Frames::read(path));
            self.paths.len() - 1
        })
    }

    /// The frame at a call.
    fn rule(&mut self, caller: Caller) -> Option<Frame> {
        if let Some(known) = self.rules.get(&caller) {
            return *known;
        }
        let frames = self.frames.get(caller.file as usize).and_then(Option::as_ref);
        let found = frames.and_then(|frames| frames.at(caller.address - 1));
        self.rules.insert(caller, found);
        found
    }
}
