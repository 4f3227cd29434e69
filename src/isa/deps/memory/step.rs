//! Simulation of one instruction: loads, evaluation, stores.

use super::action::Action;
use super::address::Address;
use super::evaluate::evaluate;
use super::machine::{LAST_LOAD, Machine, OPAQUE, Observer};
use super::program::Program;
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
