//! Trampolines and jumps, before they are written into a process.

use super::patched::Jump;
use crate::emit::Patch;
use crate::plan::PAGE;
use std::ops::Range;

/// Bytes for the number of a process, aligned.
pub const WORD: usize = 16;

/// Addresses of a file's code and memory in a process.
pub struct Code {
    /// Added to a p_vaddr.
    pub bias: u64,
    /// Address of the shared memory.
    pub shared: u64,
    /// Address of the trampolines near the code.
    pub(super) trampolines: u64,
}

/// Trampolines and jumps to write.
#[derive(Default)]
pub struct Written {
    /// Trampolines next to the shared memory.
    pub(super) trampolines: Vec<u8>,
    /// Addresses and bytes of the trampolines of puns.
    pub(super) far: Vec<(u64, Vec<u8>)>,
    pub(super) prefixes: Vec<u64>,
    /// Address of the number of the process.
    pub(super) process: Option<u64>,
    pub(super) jumps: Vec<Jump>,
    /// Parts of trampolines, in the process → original p_vaddr.
    pub origins: Vec<(Range<u64>, u64)>,
}

impl Written {
    /// The address of the next trampoline: that of the p_vaddr `far`, or anywhere if not given.
    pub fn place(&self, code: &Code, far: Option<u64>) -> u64 {
        let next = code.trampolines + self.trampolines.len() as u64;
        far.map_or(next, |at| code.bias.wrapping_add(at))
    }

    /// Address of the number of the process (4 bytes; 0 unless it was forked). To be called before
    /// any trampoline is added.
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

    /// All trampolines by address, joined per page: few writes while a process is stopped.
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
