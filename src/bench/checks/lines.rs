//! Checks of the cache lines that a block touches: whether they fit the first level, which accesses straddle them,
//! which linear pages share a physical page, and which loads follow stores with the same low address bits.

use super::common::{GAPS, NO_MEMORY, abridged, is_complete, listed};
use crate::harness::RequiredState;
use crate::initial::run_setup::RunSetup;
use crate::initial::trace::Access;
use crate::measurement::{Assumed, Assumption};
use crate::sandbox::layout as at;
use crate::sandbox::layout::{PAGE, context};
use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tma::Cache;
use tma::text::several;

/// Stores that may be in the store buffer when a load executes.
const STORES: usize = 64;

/// Compares the lines in each set of the L1 data cache, including the harness's, with its ways.
pub fn l1_data(
    block: &Block,
    setup: &RunSetup,
    physical: usize,
    cache: Option<Cache>,
) -> Assumption {
    if !is_complete(setup) {
        return Assumed::L1Data.unchecked(GAPS);
    }
    if setup.accesses.is_empty() {
        return Assumed::L1Data.held(NO_MEMORY);
    }
    let non_temporal = ["movnt", "vmovnt", "maskmov", "vmaskmovdqu"];
    let bypasses =
        |text: &str| non_temporal.iter().any(|a| text.starts_with(a)) && !text.contains("ntdqa");
    if let Some(inst) = block.instructions.iter().find(|i| bypasses(&i.text) && i.writes_memory()) {
        let how = format!("`{}` bypasses the cache", inst.text);
        return Assumed::L1Data.violated(how);
    }
    let Some(cache) = cache else {
        return Assumed::L1Data.unchecked("the size of the L1 data cache is not known");
    };
    let mut sets: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    let mut linear: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    let set = |line: u64| (line % cache.sets as u64) as usize;
    // Copies touch the same few lines again and again.
    let mut lines: Vec<u64> = setup.accesses.iter().flat_map(touched).collect();
    lines.sort_unstable();
    lines.dedup();
    for line in lines {
        sets.entry(set(line)).or_default().insert(physical_line(setup, physical, line));
        linear.entry(set(line)).or_default().insert(line);
    }
    let total: usize = sets.values().map(BTreeSet::len).sum();
    let own = harness(block, setup, cache);
    let fullest = sets.iter().map(|(set, lines)| (lines.len(), own.get(set).copied().unwrap_or(0)));
    let (lines, own) = fullest.max_by_key(|(lines, own)| lines + own).unwrap_or((0, 0));
    let mut how = format!(
        "address trace: {}; the fullest set has {lines} and {own} of the harness, the cache {}; warm-up \
         runs touch all of them",
        several(total, "line"),
        several(cache.ways, "way")
    );
    let offsets = linear.values().map(BTreeSet::len).max().unwrap_or(0);
    if offsets > cache.ways {
        how +=
            &format!("; {offsets} pages are accessed at the same offset, more than there are ways");
    }
    Assumed::L1Data.judged(lines + own <= cache.ways, how)
}

/// Cache lines that an access touches, by number.
pub fn touched(access: &Access) -> std::ops::RangeInclusive<u64> {
    access.address / 64..=access.address.saturating_add(access.size.max(1) - 1) / 64
}

/// The physical line of a linear one: pages share physical pages in the order of discovery.
fn physical_line(setup: &RunSetup, physical: usize, line: u64) -> u64 {
    let lines_of_page = PAGE as u64 / 64;
    let page = line / lines_of_page * PAGE as u64;
    match setup.pages.iter().position(|p| *p == page) {
        Some(i) => (i % physical.max(1)) as u64 * lines_of_page + line % lines_of_page,
        // Not mapped for the block: its own physical page.
        None => line,
    }
}

/// Lines of the harness in each set while copies run: initial values of registers and vectors, counters,
/// and the list of lines to restore.
fn harness(block: &Block, setup: &RunSetup, cache: Cache) -> BTreeMap<usize, usize> {
    let fields = [context::START, context::REGISTERS, context::REGISTERS + 64];
    let context = fields.into_iter().map(|field| (at::CONTEXT + field) / 64);
    let inputs = RequiredState::of(block).vector_inputs;
    let vectors = inputs.iter().map(|register| at::VECTORS / 64 + usize::from(*register));
    // Two addresses for each line.
    let list = (0..setup.lines.len().div_ceil(4)).map(|i| at::LINES / 64 + i);
    let mut lines: Vec<usize> = context.chain(vectors).chain(list).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut sets = BTreeMap::new();
    for line in lines {
        *sets.entry(line % cache.sets).or_default() += 1;
    }
    sets
}

/// Finds accesses within a line whose address is not a multiple of their size.
pub fn alignment(block: &Block, setup: &RunSetup) -> Assumption {
    let unaligned = |a: &Access| a.size > 1 && !a.address.is_multiple_of(a.size.min(64));
    let note = "; within a cache line the cost is small or none";
    straddling(Assumed::Alignment, block, setup, note, |a| unaligned(a) && touched(a).count() == 1)
}

/// Finds accesses that cross a cache-line boundary.
pub fn line_crossing(block: &Block, setup: &RunSetup) -> Assumption {
    straddling(Assumed::LineCrossing, block, setup, "", |a| touched(a).count() > 1)
}

/// Finds accesses that cross a page boundary.
pub fn page_crossing(block: &Block, setup: &RunSetup) -> Assumption {
    let page = PAGE as u64;
    let crosses =
        |a: &Access| a.address / page != a.address.saturating_add(a.size.max(1) - 1) / page;
    straddling(Assumed::PageCrossing, block, setup, "", crosses)
}

fn straddling(
    name: Assumed,
    block: &Block,
    setup: &RunSetup,
    note: &str,
    is: impl Fn(&Access) -> bool,
) -> Assumption {
    let hits = || setup.accesses.iter().filter(|a| a.size > 0 && is(a));
    if hits().next().is_some() {
        let list = listed(block, setup.copies, hits().map(|a| (a.instruction, a.copy)));
        return name.violated(format!("address trace: instruction {list}{note}"));
    }
    match (is_complete(setup), setup.accesses.is_empty()) {
        (false, _) => name.unchecked(GAPS),
        (true, true) => name.held(NO_MEMORY),
        (true, false) => name.held("address trace of every copy"),
    }
}

/// Finds lines accessed through two linear addresses. Pages share physical pages if there are more of
/// them; on Zen, two linear addresses of one line evict each other.
pub fn pages(setup: &RunSetup, physical: usize) -> Assumption {
    let name = Assumed::PageAliasing;
    let count = setup.pages.len();
    if count == 0 {
        return name.held(NO_MEMORY);
    }
    if count <= physical {
        let each = if count == 1 { "" } else { "each " };
        return name.held(format!("{}, {each}with its own physical page", several(count, "page")));
    }
    let sharing = format!("{count} pages on {physical} physical ones");
    let mut lines: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for line in setup.accesses.iter().flat_map(touched) {
        lines.entry(physical_line(setup, physical, line)).or_default().insert(line);
    }
    let page = |line: &u64| line * 64 / PAGE as u64 * PAGE as u64;
    let pairs: BTreeSet<(u64, u64)> = lines
        .values()
        .filter_map(|lines| Some((page(lines.first()?), page(lines.iter().nth(1)?))))
        .collect();
    let mut names: Vec<_> = pairs.iter().map(|(a, b)| format!("{a:#x} with {b:#x}")).collect();
    match (names.is_empty(), is_complete(setup)) {
        (false, _) => {
            let how = format!(
                "{sharing}: a line is accessed through two addresses in {} ({})",
                abridged(&mut names, 3),
                "slow on AMD Zen, and a store through one address changes loads through the other"
            );
            name.violated(how)
        }
        (true, true) => {
            name.held(format!("{sharing}, but no line is accessed through two addresses"))
        }
        (true, false) => name.unchecked(format!("{sharing}; {GAPS}")),
    }
}

/// Finds loads after a store to the same offset of another page (4K aliasing): the low 12 bits are
/// compared first, and the load waits. Some cores confuse stores and loads of the same base register
/// at smaller `distances`, too.
pub fn stores(block: &Block, setup: &RunSetup, distances: Option<&[u32]>) -> Assumption {
    let name = Assumed::StoreAliasing;
    if setup.accesses.is_empty() && setup.complete {
        return name.held(NO_MEMORY);
    }
    let least = distances.and_then(|all| all.iter().min()).map_or(PAGE as u64, |d| u64::from(*d));
    let near_too = (1..PAGE as u64).contains(&least);
    let mut none = "address trace: no load follows a store with the same low 12 address bits on \
                    another page"
        .to_owned();
    if near_too {
        none += &format!(", nor a multiple of {least:#x} below it with the same base register");
    }
    // On one page there is nothing else to search for.
    if is_complete(setup) && setup.pages.len() < 2 && !near_too {
        return name.held(none);
    }
    let base = |access: &Access| {
        block.instructions.get(access.instruction).and_then(|i| Some(i.memory.first()?.base()))
    };
    let confused = |load: &Access, store: &Access| {
        let same_base = near_too && base(load).is_some() && base(load) == base(store);
        overlaps(load, store, if same_base { least.min(PAGE as u64) } else { PAGE as u64 })
    };
    let mut recent: VecDeque<Access> = VecDeque::with_capacity(STORES + 1);
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for instruction in by_instruction(&setup.accesses) {
        for load in instruction.iter().filter(|a| a.reads && a.size > 0) {
            let near = recent.iter().find(|store| confused(load, store));
            if let Some(store) = near.filter(|store| !overlaps(load, store, u64::MAX)) {
                *pairs.entry((store.instruction, load.instruction)).or_default() += 1;
            }
        }
        for store in instruction.iter().filter(|a| a.writes && a.size > 0) {
            recent.push_front(*store);
            recent.truncate(STORES);
        }
    }
    if pairs.is_empty() {
        return match is_complete(setup) {
            true => name.held(none),
            false => name.unchecked(GAPS),
        };
    }
    let text = |i: usize| format!("{i} `{}`", block.instructions[i].text);
    let mut names: Vec<_> = pairs
        .iter()
        .map(|((store, load), times)| {
            let times = several(*times, "time");
            format!("load {} after store {}, {times}", text(*load), text(*store))
        })
        .collect();
    let how = format!(
        "address trace: {}: {} in {} copies",
        match near_too {
            true => format!("same low 12 address bits, or a multiple of {least:#x} apart"),
            false => "same low 12 address bits on another page".to_owned(),
        },
        abridged(&mut names, 3),
        setup.copies
    );
    name.violated(how)
}

/// Runs of accesses that belong to one instruction of one copy.
fn by_instruction(accesses: &[Access]) -> impl Iterator<Item = &[Access]> {
    accesses.chunk_by(|a, b| (a.copy, a.instruction) == (b.copy, b.instruction))
}

/// Whether two accesses share a byte, addresses taken modulo `modulus`.
fn overlaps(a: &Access, b: &Access, modulus: u64) -> bool {
    let (first, second) = (a.address % modulus, b.address % modulus);
    first < second.saturating_add(b.size) && second < first.saturating_add(a.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::common::example::{block, setup};
    use crate::measurement::Outcome;

    const CACHE: Option<Cache> = Some(Cache { ways: 8, sets: 64 });

    /// One load from each of `pages` pages, all at `offset`.
    fn spread(pages: u64, offset: u64) -> RunSetup {
        let all: Vec<u64> = (0..pages).map(|i| 0x10_0000 + 0x1000 * i).collect();
        let accesses: Vec<_> = all.iter().map(|p| (0, 0, p + offset, 8, false)).collect();
        setup(&all, &accesses)
    }

    #[test]
    fn lines_of_a_set_count_by_physical_page_and_with_the_harness() {
        let load = block("488b03");
        assert_eq!(l1_data(&load, &spread(8, 0x200), 16, CACHE).outcome, Outcome::Held);
        // Register values lie at offsets 0xc40 to 0xcbf of their page.
        let shared = l1_data(&load, &spread(8, 0xc40), 16, CACHE);
        assert_eq!(shared.outcome, Outcome::Violated, "{}", shared.how);
        assert!(shared.how.contains("8 and 1 of the harness"), "{}", shared.how);
        assert_eq!(l1_data(&load, &spread(9, 0x200), 16, CACHE).outcome, Outcome::Violated);
        // Nine pages on one physical page are one line, though the offset is crowded.
        let one = l1_data(&load, &spread(9, 0x200), 1, CACHE);
        assert_eq!(one.outcome, Outcome::Held);
        assert!(one.how.contains("9 pages are accessed at the same offset"), "{}", one.how);
    }

    #[test]
    fn an_access_is_unaligned_or_crosses_a_line_or_a_page_and_its_instruction_is_named() {
        let loads = block("488b03 488b07");
        let trace = setup(
            &[0x1000, 0x2000],
            &[(0, 0, 0x1004, 8, false), (1, 1, 0x103c, 8, false), (2, 1, 0x1ffc, 8, false)],
        );
        let alignment = alignment(&loads, &trace);
        assert_eq!(alignment.outcome, Outcome::Violated);
        assert!(alignment.how.contains("0 `mov rax,[rbx]` (1 of 4 copies)"), "{}", alignment.how);
        let lines = line_crossing(&loads, &trace);
        assert!(lines.how.contains("1 `mov rax,[rdi]` (2 of 4 copies)"), "{}", lines.how);
        let pages = page_crossing(&loads, &trace);
        assert!(pages.how.contains("1 `mov rax,[rdi]` (1 of 4 copies)"), "{}", pages.how);
        let none = setup(&[0x1000], &[(0, 0, 0x1038, 8, false)]);
        assert_eq!(line_crossing(&loads, &none).outcome, Outcome::Held);
        let gaps = RunSetup { complete: false, ..none };
        assert_eq!(line_crossing(&loads, &gaps).outcome, Outcome::Unchecked);
    }

    #[test]
    fn pages_alias_only_if_a_line_is_accessed_through_two_addresses() {
        let three = [0x1000, 0x2000, 0x3000];
        let apart = setup(&three, &[(0, 0, 0x1000, 8, false), (1, 0, 0x3040, 8, false)]);
        assert_eq!(pages(&apart, 2).outcome, Outcome::Held);
        let same = setup(&three, &[(0, 0, 0x1000, 8, false), (1, 0, 0x3000, 8, false)]);
        let judged = pages(&same, 2);
        assert_eq!(judged.outcome, Outcome::Violated);
        assert!(judged.how.contains("0x1000 with 0x3000"), "{}", judged.how);
        assert_eq!(pages(&same, 16).outcome, Outcome::Held);
    }

    #[test]
    fn a_load_after_a_store_to_the_same_offset_of_another_page_is_named() {
        let pair = block("488903 488b07"); // mov [rbx],rax; mov rax,[rdi]
        let alias = setup(&[0x1000, 0x2000], &[(0, 0, 0x1010, 8, true), (0, 1, 0x2014, 8, false)]);
        let judged = stores(&pair, &alias, None);
        assert_eq!(judged.outcome, Outcome::Violated);
        for word in ["load 1 `mov rax,[rdi]`", "store 0 `mov [rbx],rax`", "1 time in"] {
            assert!(judged.how.contains(word), "{}", judged.how);
        }
        // The youngest store to the address forwards, whatever an older one did on another page.
        let forwarded = setup(
            &[0x1000, 0x2000],
            &[(0, 0, 0x1010, 8, true), (0, 0, 0x2010, 8, true), (0, 1, 0x2010, 8, false)],
        );
        assert_eq!(stores(&pair, &forwarded, None).outcome, Outcome::Held);
        // Measured natively on a Zen 4 and a Zen 5: `mov [rbx+0x800],rcx; mov rdx,[rbx]`.
        let same = block("48898b00080000 488b13");
        let near = setup(&[0x1000], &[(0, 0, 0x1808, 8, true), (0, 1, 0x1008, 8, false)]);
        let zen: &[u32] = &[0x400, 0x800, 0x1000];
        assert_eq!(stores(&same, &near, Some(zen)).outcome, Outcome::Violated);
        assert_eq!(stores(&same, &near, Some(&[])).outcome, Outcome::Held);
        assert_eq!(stores(&pair, &near, Some(zen)).outcome, Outcome::Held);
        // A load before the store does not count.
        let before = setup(&[0x1000], &[(0, 1, 0x2010, 8, false), (1, 0, 0x1010, 8, true)]);
        assert_eq!(stores(&pair, &before, None).outcome, Outcome::Held);
    }
}
