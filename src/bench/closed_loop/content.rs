//! Array contents that decide addresses or the exit: indices, links of a list, the element that ends a scan.

use super::arrays::{Extent, TABLE};
use super::exit::{Control, element_values};
use super::known::{Known, at};
use super::pointers::spilled;
use isa::flow::{Iteration, Loaded, Term};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
/// Seed of the random content: the same block gets the same content.
const SEED: u64 = 13;

/// Bytes at addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    bytes: BTreeMap<u64, u8>,
}

impl Content {
    fn put(&mut self, address: u64, bytes: u8, value: i64) {
        for (i, byte) in value.to_le_bytes().iter().take(usize::from(bytes)).enumerate() {
            self.bytes.insert(address + i as u64, *byte);
        }
    }

    /// A list of as many nodes as iterations, in an order that no prefetcher follows, the last of which
    /// links to nothing. The first node is at `first`.
    pub(super) fn list(&mut self, first: u64, extent: Extent, link: i64, iterations: usize) {
        let size = (extent.high - extent.low).unsigned_abs().next_multiple_of(64);
        let mut order: Vec<u64> = (1..iterations as u64).collect();
        fastrand::Rng::with_seed(SEED).shuffle(&mut order);
        let mut node = first;
        for next in order.iter().map(|n| first + n * size).chain([0]) {
            self.put(node.wrapping_add_signed(link), 8, next as i64);
            node = next;
        }
    }

    /// A value that no iteration changes, where its address is known.
    pub(super) fn cell(
        &mut self,
        iteration: &Iteration,
        known: &Known,
        loaded: &Loaded,
        value: i64,
    ) {
        if let Some(address) = at(iteration, &loaded.address, known, 0) {
            self.put(address as u64, loaded.bytes, value);
        }
    }

    /// Indices, and the element that ends a scan.
    pub(super) fn fill(
        &mut self,
        iteration: &Iteration,
        known: &Known,
        iterations: usize,
        control: Option<&Control>,
    ) {
        let pointers = spilled(iteration);
        for access in &iteration.accesses {
            if pointers.iter().any(|p| p.accesses.contains(&access)) {
                continue;
            }
            for (term, factor) in &access.address.terms {
                if let Term::Loaded(loaded) = term {
                    self.indices(iteration, known, iterations, loaded, *factor);
                }
            }
        }
        let Some(Control::Element(loaded, factor)) = control else { return };
        let Some((usual, last)) = element_values(iteration, known, *factor) else { return };
        for number in 0..iterations {
            let value = if number + 1 == iterations { last } else { usual };
            let Some(address) = at(iteration, &loaded.address, known, number) else { return };
            self.put(address as u64, loaded.bytes, value);
        }
    }

    /// Random indices within a table, where `loaded` is part of an address with this factor.
    fn indices(
        &mut self,
        iteration: &Iteration,
        known: &Known,
        iterations: usize,
        loaded: &Loaded,
        factor: i64,
    ) {
        let mut random = fastrand::Rng::with_seed(SEED);
        let width = 8 * u32::from(loaded.bytes.min(4));
        let entries = (TABLE / factor.abs().max(1)).clamp(1, (1i64 << width.min(31)) - 1);
        for number in 0..iterations {
            let Some(address) = at(iteration, &loaded.address, known, number) else { return };
            self.put(address as u64, loaded.bytes, random.i64(0..entries));
        }
    }

    /// Whole pages, with the pattern between.
    pub(super) fn pages(&self, pattern: u64) -> BTreeMap<u64, Vec<u8>> {
        let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (address, byte) in &self.bytes {
            let page = address & !(PAGE - 1);
            let content = pages
                .entry(page)
                .or_insert_with(|| pattern.to_le_bytes().repeat(PAGE as usize / 8));
            content[(address - page) as usize] = *byte;
        }
        pages
    }
}
