//! Repeated string instructions with a known count, element by element.

use super::action::Action;
use super::machine::{Machine, Observer};
use super::program::Program;

/// Limit on the bytes of one instruction: a longer copy counts as unknown.
const MAX_BYTES: u64 = 4096;

const RAX: usize = 0;
const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;

impl Machine {
    /// Does the accesses of `rep movs` or `rep stos`, if rcx does not depend on unknown values; otherwise
    /// its results become unknown. The direction flag is clear, as the ABI requires.
    pub(super) fn repeat(
        &mut self,
        program: &Program,
        number: usize,
        observer: &mut impl Observer,
    ) {
        let operation = &program.operations[number];
        let accesses = operation.accesses.start as usize..operation.accesses.end as usize;
        let size = u64::from(operation.size.clamp(1, 8));
        let count = self.values[RCX];
        let wide = program.addresses[accesses.clone()].iter().all(|a| a.is_wide());
        let known = self.origins[RCX] == 0 && count <= MAX_BYTES / size && wide;
        if !known {
            if !self.unknown_counts.contains(&number) {
                self.unknown_counts.push(number);
            }
            self.make_unknown(operation);
            return;
        }
        let load = accesses.clone().find(|at| program.addresses[*at].load);
        let copies = operation.action == Action::RepeatMovs;
        let mut writers: Vec<(u16, u32)> = Vec::new();
        for _ in 0..count {
            let mut lanes = [self.values[RAX], 0, 0, 0, 0, 0, 0, 0];
            let mut origins = self.origins[RAX];
            if let Some(load) = load.filter(|_| copies) {
                origins = self.load_element(load, self.values[RSI], size as u32, &mut lanes);
                self.note_writers(&mut writers);
                self.values[RSI] = self.values[RSI].wrapping_add(size);
            }
            self.memory.store(self.values[RDI], size as u32, &lanes, origins, self.step);
            self.values[RDI] = self.values[RDI].wrapping_add(size);
        }
        self.values[RCX] = 0;
        if let Some(load) = load {
            observer.loaded(load, self.step, (count * size) as u32, &writers);
        }
    }

    /// Adds the writers of an element, except for the instruction itself.
    fn note_writers(&self, all: &mut Vec<(u16, u32)>) {
        for (writer, bytes) in self.writers.iter().filter(|(writer, _)| *writer != self.step) {
            match all.iter_mut().find(|(known, _)| known == writer) {
                Some((_, sum)) => *sum += bytes,
                None => all.push((*writer, *bytes)),
            }
        }
    }
}
