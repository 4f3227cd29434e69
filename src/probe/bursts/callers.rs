//! Callers of a function, found by its stack (from the return address on) and the files' unwind
//! tables.

use crate::facts::{Base, Frame, Frames};
use crate::process::{Mapping, mappings};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

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
            let address = self.frames[file].as_ref()?.address(offset)? + 1;
            Some(Caller { file: file as u32, address })
        });
        self.places.insert(address, caller);
        caller
    }

    fn file(&mut self, path: &Path) -> usize {
        let known = self.paths.iter().position(|known| known == path);
        known.unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.frames.push(Frames::read(path).ok());
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
