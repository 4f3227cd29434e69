//! The setup with which a block runs: initial values, pages, and the accesses it makes with them. For accesses that
//! do not fault (masked ones, prefetches) also the elements that the masks select, and their pages.
//!
//! No fault maps the pages of such accesses on demand, but the processor still looks the page up: where it is
//! missing, a masked access suppresses the fault in microcode, which takes hundreds of cycles, and a prefetch walks
//! the page table each time. In a program the page exists.

use super::trace::{Access, Stored, all_lanes, each, plain, selected};
use crate::harness::{RequiredState, Shape, Slot, mask};
use crate::sandbox::layout::PAGE;
use crate::values::Values;
use isa::code::{Block, Inst};
use std::collections::{BTreeMap, BTreeSet};

/// Ways of the smallest L1 data cache (8) minus one for the harness.
const WAYS: usize = 7;

/// Most pages that accesses without faults are given.
const MOST_PAGES: usize = 64;
/// Why their pages are not known.
const TOO_MANY: &str =
    "masked accesses and prefetches may access more pages than are mapped for them";
const GAPS: &str = "some addresses of masked accesses or prefetches are not in the trace";

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
        if self.without_faults.moves {
            return false;
        }
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

    /// The first copies, which access no more pages than there are physical ones.
    pub fn copies_on_own_pages(&self, physical: usize) -> usize {
        // In the order of discovery: the first ones have a physical page each.
        let shared: BTreeSet<u64> =
            self.pages.iter().skip(physical).map(|page| page / PAGE as u64).collect();
        let shares = |access: &&Access| {
            access.lines().any(|line| shared.contains(&(line * 64 / PAGE as u64)))
        };
        self.accesses.iter().find(shares).map_or(self.copies, |access| access.copy)
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

/// A masked instruction of a traced run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// Instruction, from 0.
    pub instruction: usize,
    /// Copies in which its mask selected nothing.
    pub empty: usize,
    /// Copies whose mask was traced.
    pub copies: usize,
}

/// The accesses of a traced run that do not fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WithoutFaults {
    /// Its masked instructions, in order.
    pub masked: Vec<Masked>,
    /// Whether it prefetches.
    pub prefetches: bool,
    /// Whether copies access other places than the first one.
    pub moves: bool,
    /// Pages of prefetches, and of masked accesses with every element selected, in order of discovery.
    pub pages: Vec<u64>,
    /// Why some of these pages are missing, if they are.
    pub incomplete: Option<&'static str>,
}

/// The accesses of a trace that do not fault, with `[rip+x]` relative to `rip`.
pub(super) fn without_faults(
    block: &Block,
    slots: &[Slot],
    bytes: &[u8],
    copies: usize,
    rip: u64,
) -> WithoutFaults {
    let mut found = WithoutFaults::default();
    if !block.instructions.iter().any(|inst| mask(inst).is_some() || inst.hints()) {
        return found;
    }
    let mut first: BTreeMap<usize, Vec<(u64, u64)>> = BTreeMap::new();
    each(block, slots, bytes, copies, |_, instruction, inst, stored| {
        if mask(inst).is_some() {
            let known = found.masked.iter().position(|m| m.instruction == instruction);
            let at = known.unwrap_or_else(|| {
                found.masked.push(Masked { instruction, empty: 0, copies: 0 });
                found.masked.len() - 1
            });
            if let Some(selected) = selected(inst, stored) {
                found.masked[at].copies += 1;
                found.masked[at].empty += usize::from(selected == 0);
            }
        } else if inst.hints() {
            found.prefetches = true;
        } else {
            return;
        }
        let Some(ranges) = ranges(inst, stored, rip) else {
            found.incomplete = Some(GAPS);
            return;
        };
        match first.get(&instruction) {
            Some(known) => found.moves |= *known != ranges,
            None => drop(first.insert(instruction, ranges.clone())),
        }
        for (address, size) in ranges {
            let (first, last) = (address, address.saturating_add(size.max(1) - 1));
            for page in [first, last].map(|end| end & !(PAGE as u64 - 1)) {
                if found.pages.contains(&page) {
                    continue;
                }
                if found.pages.len() == MOST_PAGES {
                    found.incomplete = Some(TOO_MANY);
                    return;
                }
                found.pages.push(page);
            }
        }
    });
    found
}

/// First bytes and sizes of all that an instruction accesses or prefetches with a mask that selects everything; `None` if an
/// address was not traced.
fn ranges(inst: &Inst, stored: &Stored<'_>, rip: u64) -> Option<Vec<(u64, u64)>> {
    let mut all = Vec::new();
    for memory in &inst.memory {
        let size = memory.memory_size().size() as u64;
        if memory.index().is_vector_register() {
            let lanes = all_lanes(inst, memory, stored)?;
            all.extend(lanes.into_iter().map(|address| (address, size)));
        } else {
            all.push((plain(inst, memory, stored, rip)?, size));
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Register;

    /// The masked accesses of copies of a block of one instruction, given `rdi` in each, with masks that select everything.
    fn of(hex: &str, registers: &[Register], rdi: &[u64]) -> WithoutFaults {
        let block = Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap();
        let (mut slots, mut bytes) = (Vec::new(), Vec::new());
        for (copy, base) in rdi.iter().enumerate() {
            for register in registers.iter().copied() {
                slots.push(Slot { copy, instruction: 0, register, after: false, at: bytes.len() });
                match register {
                    Register::RDI => bytes.extend(base.to_le_bytes()),
                    _ => bytes.extend([0xff; 32]),
                }
            }
        }
        without_faults(&block, &slots, &bytes, rdi.len(), 0)
    }

    #[test]
    fn copies_have_their_own_pages_until_there_are_more_than_physical_ones() {
        // Copy n accesses eight bytes that begin four before page n + 1.
        let access = |copy: usize| {
            let address = (copy as u64 + 1) * 4096 - 4;
            Access { copy, instruction: 0, address, size: 8, reads: true, writes: false }
        };
        let setup = RunSetup {
            values: Values::default(),
            copies: 4,
            pages: (0..5).map(|page| page * 4096).collect(),
            lines: Vec::new(),
            taken: Vec::new(),
            reseeded: Vec::new(),
            accesses: (0..4).map(access).collect(),
            complete: true,
            without_faults: WithoutFaults::default(),
            end: FinalState::default(),
            rip_area: 0,
        };
        let copies = [1, 2, 3, 4, 5].map(|physical| setup.copies_on_own_pages(physical));
        assert_eq!(copies, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn pages_that_are_not_known_are_said() {
        // vmaskmovps [rdi],ymm0,ymm1
        let store = "c4e27d2e0f";
        let registers = [Register::RDI, Register::YMM0];
        let pages: Vec<u64> = (1..=65).map(|page| page << 12).collect();
        let all = of(store, &registers, &pages[..64]);
        assert_eq!((all.pages.len(), all.incomplete), (64, None));
        assert_eq!(all.masked, [Masked { instruction: 0, empty: 0, copies: 64 }]);
        let most = of(store, &registers, &pages);
        assert_eq!((most.pages.len(), most.incomplete), (64, Some(TOO_MANY)));
        let unknown = of(store, &registers[1..], &pages[..1]);
        assert_eq!((unknown.pages.len(), unknown.incomplete), (0, Some(GAPS)));
        // vpgatherdd xmm1,[rdi+xmm2*4],xmm3 without its indices
        let gather = of("c4e261900c97", &[Register::RDI, Register::YMM3], &pages[..1]);
        assert_eq!((gather.pages.len(), gather.incomplete), (0, Some(GAPS)));
        // prefetcht0 [rdi+0xfff]
        let prefetch = of("0f188fff0f0000", &[Register::RDI], &[0x1000, 0x1001]);
        assert_eq!((prefetch.prefetches, prefetch.moves), (true, true));
        assert_eq!(prefetch.pages, [0x1000, 0x2000]);
        assert!(!of("0f180f", &[Register::RDI], &[0x1000, 0x1000]).moves); // prefetchnta [rdi]
    }
}
