//! Plans the initial registers and memory with which a loop body runs as a loop, including array contents that
//! decide addresses or the exit: indices, links of a list, the element that ends a scan.

use super::arrays::{Extent, Known, Pointer, TABLE, at, places, pointers, spilled, stride, whole};
use super::exit::{Control, control, element_values};
use crate::values::Values;
use isa::code::Block;
use isa::flow::{Iteration, LinearAccess, Loaded, Term};
use std::collections::BTreeMap;

/// Most iterations of a run: more do not change the result.
pub(super) const MOST: usize = 1024;
/// Fewest worth measuring as a loop.
pub(super) const FEWEST: usize = 16;
/// Share of the L1 data cache that arrays may take: the rest is for what runs around the loop.
const L1_SHARE: f64 = 0.6;
/// The size of an L1 data cache that is not known: that of the smallest since 2008.
const L1_BYTES: usize = 32 * 1024;
/// The initial value of registers that decide neither an address nor the exit.
const DATA: u64 = 3;
/// The initial value of registers that are compared with loaded values.
const COMPARED: i64 = 64;
/// The number of no register.
const NO_REGISTER: u8 = 16;

const PAGE: u64 = 4096;
/// Seed of the random content: the same block gets the same content.
const SEED: u64 = 13;

/// Initial values, memory content, and the number of iterations that they are for.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Registers, and the fill of pages without content of their own.
    pub values: Values,
    /// Pages with content of their own.
    pub images: BTreeMap<u64, Vec<u8>>,
    /// Iterations that it is made for.
    pub iterations: usize,
}

/// A plan for at most `most` iterations of a loop body; `None` where arrays would not fit the L1 data
/// cache for even a few.
pub(crate) fn plan(block: &Block, l1_bytes: Option<usize>, most: usize) -> Option<Plan> {
    let decoded: Vec<_> = block.instructions.iter().map(|i| i.decoded).collect();
    let iteration = Iteration::of(&decoded);
    let pointers = pointers(&iteration);
    let budget = L1_SHARE * l1_bytes.unwrap_or(L1_BYTES) as f64;
    let iterations = fitting(&iteration, &pointers, budget as i64).min(most) & !1;
    if iterations < FEWEST {
        return None;
    }
    let numbers: Vec<u8> = pointers.iter().map(|p| p.register).collect();
    let control = iteration.exit.as_ref().and_then(|exit| control(&iteration, exit, &numbers));
    let mut known = Known::default();
    let decided = |register: &u8| numbers.contains(register) || is_offset(&iteration, *register);
    (0..16u8).filter(|r| !decided(r)).for_each(|r| known.set(r, DATA as i64));
    if let (Some(Control::Element(..)), Some(exit)) = (&control, &iteration.exit) {
        let compared = exit.difference.registers().filter(|(r, _)| !decided(r));
        compared.for_each(|(r, _)| known.set(r, COMPARED));
    }
    // A counter or index that is compared has its first value before arrays are placed, a bound after.
    let early = matches!(&control, Some(Control::Register(r, _)) if iteration.step(*r) != Some(0));
    let solved = |known: &Known| {
        let (control, exit) = (control.as_ref()?, iteration.exit.as_ref()?);
        control.value(&iteration, exit, known, iterations)
    };
    let mut ends = None;
    if early && let (Some(Control::Register(r, _)), Some(value)) = (&control, solved(&known)) {
        known.set(*r, value);
        ends = Some(*r);
    }
    let mut content = Content::default();
    let pointers = in_order(&iteration, pointers);
    let length = |pointer: &Pointer| {
        let extent = whole(&iteration, pointer, &known, iterations);
        (extent.high - extent.low).unsigned_abs()
    };
    let in_memory = spilled(&iteration);
    let lengths = pointers.iter().map(length).chain(in_memory.iter().map(|_| L1_BYTES as u64 / 8));
    let places = places(&lengths.collect::<Vec<_>>());
    let spilled_places = places[pointers.len()..].to_vec();
    for (pointer, place) in pointers.into_iter().zip(places) {
        if ends == Some(pointer.register) {
            continue;
        }
        let extent = whole(&iteration, &pointer, &known, iterations);
        let first = first_value(place, extent);
        known.set(pointer.register, first + misalignment(&iteration, &pointer, &known));
        if let Some(link) = pointer.next_node {
            content.list(known.register(pointer.register) as u64, extent, link, iterations);
        }
    }
    for (pointer, place) in in_memory.iter().zip(spilled_places) {
        let of = |access: &&LinearAccess| {
            Extent::of(&iteration, access, NO_REGISTER, &known, iterations)
        };
        if let Some(extent) = pointer.accesses.iter().map(of).reduce(Extent::and) {
            content.cell(&iteration, &known, pointer.loaded, first_value(place, extent));
        }
    }
    match (&control, solved(&known)) {
        (Some(Control::Register(r, _)), Some(value)) if !early => {
            known.set(*r, value);
        }
        (Some(Control::Cell(loaded, _)), Some(value)) => {
            content.cell(&iteration, &known, loaded, value);
        }
        _ => {}
    }
    content.fill(&iteration, &known, iterations, control.as_ref());
    let mut values = Values { memory: Values::default().vector, ..Values::default() };
    values.registers = std::array::from_fn(|r| known.register(r as u8) as u64);
    Some(Plan { images: content.pages(values.memory), values, iterations })
}

/// The first value of a pointer that puts its lowest access into the array's part of the address space, with
/// aligned data.
fn first_value(place: u64, extent: Extent) -> i64 {
    let below = ((-extent.low).max(0) + 63) & !63;
    let above = extent.low.max(0) & !63;
    place as i64 + below - above
}

/// Offset to add to an aligned pointer so that accesses that must be aligned are.
fn misalignment(iteration: &Iteration, pointer: &Pointer, known: &Known) -> i64 {
    let accesses = pointer.accesses.iter().map(|n| &iteration.accesses[*n]);
    let strictest = accesses.filter(|access| access.aligned).max_by_key(|access| access.bytes);
    strictest.map_or(0, |access| {
        let own = Extent::first(iteration, access, pointer.register, known);
        (-own).rem_euclid(access.bytes as i64)
    })
}

/// Whether a register that is no pointer is part of an address.
fn is_offset(iteration: &Iteration, register: u8) -> bool {
    iteration.accesses.iter().any(|access| access.address.factor(register) != 0)
}

/// Iterations that fit the budget in bytes.
fn fitting(iteration: &Iteration, pointers: &[Pointer], budget: i64) -> usize {
    let (mut per_iteration, mut fixed) = (0, 0);
    for pointer in pointers {
        let own = |n: &usize| stride(iteration, &iteration.accesses[*n].address).abs();
        per_iteration += pointer.accesses.iter().map(own).max().unwrap_or(0);
        let once = whole(iteration, pointer, &Known::default(), 1);
        let size = once.high - once.low;
        fixed += size;
        if pointer.next_node.is_some() {
            per_iteration += size.max(1).unsigned_abs().next_multiple_of(64) as i64;
        }
    }
    let left = (budget - fixed).max(0);
    (left / per_iteration.max(1)).min(MOST as i64) as usize
}

/// Pointers in the order of their places: independent ones before relative ones, and within each those written
/// through first, so that no load runs ahead of an older store at an equal offset within a page.
fn in_order(iteration: &Iteration, pointers: Vec<Pointer>) -> Vec<Pointer> {
    let access = |n: &usize| -> &LinearAccess { &iteration.accesses[*n] };
    let relative = |p: &Pointer| {
        let others = |n: &usize| {
            access(n).address.registers().any(|(r, factor)| {
                r != p.register && factor == 1 && pointers.iter().any(|q| q.register == r)
            })
        };
        p.accesses.iter().any(others)
    };
    let written = |p: &Pointer| p.accesses.iter().any(|n| access(n).writes);
    let mut sorted = pointers.clone();
    sorted.sort_by_key(|p| (relative(p), !written(p)));
    sorted
}

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
