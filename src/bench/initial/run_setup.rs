//! The setup with which a block runs: initial values, pages, and the accesses it makes with them.

use super::masks::WithoutFaults;
use super::trace::Access;
use crate::harness::{RequiredState, Shape};
use crate::values::Values;
use isa::code::Block;

/// Ways of the smallest L1 data cache (8) minus one for the harness.
const WAYS: usize = 7;

/// A setup with which a block runs, and the results of its traced run.
#[derive(Debug, Clone)]
pub struct RunSetup {
    /// Initial values.
    pub values: Values,
    /// Copies that are known to run.
    pub copies: usize,
    /// Pages mapped, in the order of discovery.
    pub pages: Vec<u64>,
    /// Cache lines that it writes.
    pub lines: Vec<u64>,
    /// For each copy, whether the final jump is taken.
    pub taken: Vec<bool>,
    /// Registers reinitialised before every copy.
    pub reseeded: Vec<u8>,
    /// Accesses of all copies.
    pub accesses: Vec<Access>,
    /// Whether the trace holds every access.
    pub complete: bool,
    /// Masked accesses and prefetches.
    pub without_faults: WithoutFaults,
    /// General-purpose registers and memory at the end.
    pub end: FinalState,
    /// Where `[rip+x]` points, from the start of the region.
    pub rip_area: usize,
}

impl RunSetup {
    /// The shape of a program with `copies` of the block that run as these did, at `start` in the
    /// region.
    pub fn shape<'a>(
        &'a self,
        block: &'a Block,
        required_state: &'a RequiredState,
        copies: usize,
        start: usize,
    ) -> Shape<'a> {
        Shape {
            block,
            required_state,
            copies,
            lines: !self.lines.is_empty(),
            reseeded: &self.reseeded,
            taken: &self.taken,
            start,
            rip_area: self.rip_area,
        }
    }

    /// Whether every instruction accesses the same addresses, and the final jump goes the same way,
    /// in every copy but the first; `false` if the trace is incomplete.
    pub fn is_stationary(&self) -> bool {
        let same = |a: &[Access], b: &[Access]| {
            let what = |a: &Access| (a.instruction, a.address, a.size);
            a.iter().map(what).eq(b.iter().map(what))
        };
        // Accesses are in the order of the copies.
        let mut rest = &self.accesses[..];
        let mut own = |copy: usize| {
            let (own, later) = rest.split_at(rest.iter().take_while(|a| a.copy <= copy).count());
            rest = later;
            own
        };
        own(0);
        let second = own(1);
        let jumps = self.taken.get(1..).unwrap_or_default();
        self.complete
            && jumps.windows(2).all(|pair| pair[0] == pair[1])
            && (2..self.copies).all(|copy| same(own(copy), second))
    }

    /// Lines in the fullest set of an L1 data cache of 64 sets, and number of pages.
    pub fn cache_footprint(&self) -> (usize, usize) {
        let mut sets = vec![Vec::new(); 64];
        for line in self.accesses.iter().flat_map(Access::lines) {
            let set = &mut sets[(line % 64) as usize];
            if !set.contains(&line) {
                set.push(line);
            }
        }
        let fullest = sets.iter().map(Vec::len).max().unwrap_or(0);
        (fullest.max(WAYS), self.pages.len())
    }

    /// Whether all its lines fit the L1 data cache and every page has a physical page of its own.
    pub fn fits_l1_data(&self, physical: usize) -> bool {
        self.pages.len() <= WAYS.min(physical)
            || self.cache_footprint().0 <= WAYS && self.pages.len() <= physical
    }
}

/// Registers and memory after a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinalState {
    /// General-purpose registers, in encoding order.
    pub registers: Vec<u64>,
    /// The physical pages in use.
    pub memory: Vec<u8>,
}
