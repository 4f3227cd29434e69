//! Trampolines and jumps, before they are written into a process.

use super::patched::Jump;
use crate::emit::Patch;
use crate::plan::PAGE;
use std::ops::Range;

/// Bytes of the number of a process, with what follows it aligned.
pub const WORD: usize = 16;

/// Where the code of a process and its shared memory are.
pub struct Code {
    /// Added to a p_vaddr.
    pub bias: u64,
    /// The shared memory.
    pub shared: u64,
    /// Trampolines near the code.
    pub(super) trampolines: u64,
}

/// All that is to be written.
#[derive(Default)]
pub struct Written {
    /// Those next to the shared memory.
    pub(super) trampolines: Vec<u8>,
    /// Those of puns, with their addresses.
    pub(super) far: Vec<(u64, Vec<u8>)>,
    pub(super) prefixes: Vec<u64>,
    /// Where the number of the process is.
    pub(super) process: Option<u64>,
    pub(super) jumps: Vec<Jump>,
    /// What the parts of trampolines stand for: addresses in the process → p_vaddr.
    pub origins: Vec<(Range<u64>, u64)>,
}

impl Written {
    /// Where a trampoline lies, if it may lie anywhere, or at the p_vaddr `far`.
    pub fn place(&self, code: &Code, far: Option<u64>) -> u64 {
        let next = code.trampolines + self.trampolines.len() as u64;
        far.map_or(next, |at| code.bias.wrapping_add(at))
    }

    /// Where the trampolines find the number of their process, of 4 bytes: 0, but in a process that is forked. It is
    /// to be asked for before there are any.
    pub fn process(&mut self, code: &Code) -> u64 {
        *self.process.get_or_insert_with(|| {
            let at = code.trampolines + self.trampolines.len() as u64;
            self.trampolines.extend([0; WORD]);
            at
        })
    }

    /// Adds a trampoline at its [place](Self::place), and the jump there from the p_vaddr `at`.
    pub fn add(&mut self, code: &Code, far: Option<u64>, at: u64, patch: Patch) {
        let Patch { trampoline, prefixes, jump } = patch;
        let to = self.place(code, far);
        self.prefixes.extend(prefixes.iter().map(|offset| to + *offset as u64));
        self.jumps.push(Jump { at: code.bias.wrapping_add(at), bytes: jump, to });
        match far {
            Some(_) => self.far.push((to, trampoline)),
            None => self.trampolines.extend(trampoline),
        }
    }

    /// All trampolines by address, those of a page in one: few writes while a process stands still.
    pub(super) fn pieces(&mut self, code: &Code) -> Vec<(u64, Vec<u8>)> {
        let near = (code.trampolines, std::mem::take(&mut self.trampolines));
        let mut all = std::mem::take(&mut self.far);
        all.extend(Some(near).filter(|(_, bytes)| !bytes.is_empty()));
        all.sort_by_key(|(at, _)| *at);
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        for (at, bytes) in all {
            match pieces.last_mut() {
                Some((start, before)) if *start / PAGE == at / PAGE => {
                    before.resize((at - *start) as usize, 0);
                    before.extend(bytes);
                }
                _ => pieces.push((at, bytes)),
            }
        }
        pieces
    }
}
