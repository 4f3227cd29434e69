//! Simulation of one instruction: loads, evaluation, stores; repeated string instructions with a known count, element by
//! element.

use super::action::Action;
use super::evaluate::evaluate;
use super::machine::{LAST_LOAD, Machine, OPAQUE, Observer};
use super::operation::{Address, Program};
use super::shadow::Loaded;

impl Machine {
    /// Simulates the instruction at `number`.
    pub fn step(&mut self, program: &Program, number: usize, observer: &mut impl Observer) {
        let operation = &program.operations[number];
        let accesses = operation.accesses.start as usize..operation.accesses.end as usize;
        if !accesses.is_empty() {
            self.load_all(&program.addresses, accesses.clone(), observer);
        }
        evaluate(self, operation);
        if matches!(operation.action, Action::RepeatMovs | Action::RepeatStos) {
            self.repeat(program, number, observer);
        }
        if operation.stores {
            self.store_all(&program.addresses, accesses);
        }
        self.step += 1;
    }

    /// Computes all addresses and does all loads. Only the value of the first load is used.
    fn load_all(
        &mut self,
        addresses: &[Address],
        accesses: std::ops::Range<usize>,
        observer: &mut impl Observer,
    ) {
        self.located.clear();
        let mut first = true;
        for index in accesses {
            let access = &addresses[index];
            let (address, origins) = access.compute(&self.registers());
            self.located.push((address, origins));
            observer.located(index, self.step, address, origins);
            if !access.load || access.bytes == 0 {
                continue;
            }
            let mut lanes = [0; 8];
            let origins = self.load_element(index, address, access.bytes, &mut lanes);
            observer.loaded(index, self.step, access.bytes, &self.writers);
            if first {
                (self.lanes, self.lane_origins, first) = (lanes, origins, false);
            }
        }
    }

    /// Loads an element of a repeated instruction's access; returns its origins.
    pub(super) fn load_element(
        &mut self,
        index: usize,
        address: u64,
        bytes: u32,
        lanes: &mut [u64; 8],
    ) -> u64 {
        let origin = match self.loads[index] {
            0 => 1 << self.next_load,
            known => known,
        };
        let Loaded { origins, fresh } =
            self.memory.load(address, bytes, origin, lanes, &mut self.writers);
        if fresh {
            self.count_fresh(index, origin);
        }
        origins
    }

    fn count_fresh(&mut self, index: usize, origin: u64) {
        if self.loads[index] == 0 {
            self.loads[index] = origin;
            self.next_load = (self.next_load + 1).min(LAST_LOAD);
        }
        self.fresh[index] += 1;
    }

    /// Does all stores: the first stores `lanes`, the others unknown values.
    fn store_all(&mut self, addresses: &[Address], accesses: std::ops::Range<usize>) {
        let mut first = true;
        for (index, position) in accesses.zip(0..) {
            let access = &addresses[index];
            if !access.store || access.bytes == 0 {
                continue;
            }
            if !first {
                self.lanes = std::array::from_fn(|_| self.random.u64(..));
                self.lane_origins = OPAQUE;
            }
            first = false;
            let (address, _) = self.located[position];
            self.memory.store(address, access.bytes, &self.lanes, self.lane_origins, self.step);
        }
    }
}

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
