//! A block that runs: with which values, on which pages, touching what.

use super::trace::Access;
use super::values::Values;
use crate::harness::program::Shape;
use crate::harness::required_state::Needs;
use isa::code::Block;

/// Lines in one set of the smallest L1 data cache that leave a way to the harness.
const WAYS: usize = 7;

/// A block that runs.
#[derive(Debug, Clone)]
pub struct Found {
    /// Initial values.
    pub values: Values,
    /// Copies that are known to run.
    pub copies: usize,
    /// Pages mapped, in the order of discovery.
    pub pages: Vec<u64>,
    /// Lines that it writes.
    pub lines: Vec<u64>,
    /// For each copy, whether the final jump is taken.
    pub taken: Vec<bool>,
    /// Registers set again before every copy.
    pub reseeded: Vec<u8>,
    /// Accesses of all copies.
    pub accesses: Vec<Access>,
    /// Whether the trace holds every access.
    pub complete: bool,
    /// General-purpose registers and memory at the end.
    pub end: End,
    /// Where `[rip+x]` points, from the start of the region.
    pub rip_area: usize,
}

impl Found {
    /// How `copies` of the block are built so that they run as these did, at `start` in the region.
    pub fn shape<'a>(
        &'a self,
        block: &'a Block,
        needs: &'a Needs,
        copies: usize,
        start: usize,
    ) -> Shape<'a> {
        Shape {
            block,
            needs,
            copies,
            lines: !self.lines.is_empty(),
            reseeded: &self.reseeded,
            taken: &self.taken,
            start,
            rip_area: self.rip_area,
        }
    }

    /// Whether every instruction accesses the same addresses in every copy but the first, and the
    /// final jump goes the same way in all of them, as far
    /// as the trace tells.
    pub fn is_stationary(&self) -> bool {
        let same = |a: &[Access], b: &[Access]| {
            let what = |a: &Access| (a.instruction, a.address, a.size);
            a.iter().map(what).eq(b.iter().map(what))
        };
        // Accesses are in the order of the copies.
        let mut rest = &self.accesses[..];
        let mut own = |copy: usize| {
            let (own, behind) = rest.split_at(rest.iter().take_while(|a| a.copy <= copy).count());
            rest = behind;
            own
        };
        own(0);
        let usual = own(1);
        let jumps = self.taken.get(1..).unwrap_or_default();
        self.complete
            && jumps.windows(2).all(|pair| pair[0] == pair[1])
            && (2..self.copies).all(|copy| same(own(copy), usual))
    }

    /// Lines in the fullest set of an L1 data cache of 64 sets, and pages.
    pub fn unrest(&self) -> (usize, usize) {
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

    /// Whether all it touches can stay in the L1 data cache, each page with one of its own.
    pub fn is_calm(&self, physical: usize) -> bool {
        self.pages.len() <= WAYS.min(physical)
            || self.unrest().0 <= WAYS && self.pages.len() <= physical
    }
}

/// What a run left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// General-purpose registers, in encoding order.
    pub registers: Vec<u64>,
    /// The physical pages in use.
    pub memory: Vec<u8>,
}
