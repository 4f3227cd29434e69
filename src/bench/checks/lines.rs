//! Cache lines that a block touches: whether they fit the first level, and which accesses straddle
//! them.

use super::super::sandbox::layout::{self as at, PAGE, context};
use super::common::{GAPS, NO_MEMORY, assumption, is_complete, listed, outcome};
use crate::harness::required_state::RequiredState;
use crate::initial::run_setup::RunSetup;
use crate::initial::trace::Access;
use crate::measurement::{Assumed, Assumption, Outcome};
use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet};
use tma::Cache;

/// Compares the lines in each set of the L1 data cache, including the harness's, with its ways.
pub fn l1_data(
    block: &Block,
    setup: &RunSetup,
    physical: usize,
    cache: Option<Cache>,
) -> Assumption {
    if !is_complete(setup) {
        return assumption(Assumed::L1Data, Outcome::Unchecked, GAPS);
    }
    if setup.accesses.is_empty() {
        return assumption(Assumed::L1Data, Outcome::Held, NO_MEMORY);
    }
    let non_temporal = ["movnt", "vmovnt", "maskmov", "vmaskmovdqu"];
    let bypasses =
        |text: &str| non_temporal.iter().any(|a| text.starts_with(a)) && !text.contains("ntdqa");
    if let Some(inst) = block.instructions.iter().find(|i| bypasses(&i.text) && i.writes_memory()) {
        let how = format!("`{}` bypasses the cache", inst.text);
        return assumption(Assumed::L1Data, Outcome::Violated, how);
    }
    let Some(cache) = cache else {
        return assumption(
            Assumed::L1Data,
            Outcome::Unchecked,
            "the size of the L1 data cache is not known",
        );
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
        "address trace: {total} lines; the fullest set has {lines} and {own} of the harness, the cache \
         {} ways; warm-up runs touch all of them",
        cache.ways
    );
    let offsets = linear.values().map(BTreeSet::len).max().unwrap_or(0);
    if offsets > cache.ways {
        how +=
            &format!("; {offsets} pages are accessed at the same offset, more than there are ways");
    }
    assumption(Assumed::L1Data, outcome(lines + own <= cache.ways), how)
}

/// Cache lines that an access touches, by number.
pub fn touched(access: &Access) -> std::ops::RangeInclusive<u64> {
    access.address / 64..=access.address.saturating_add(access.size.max(1) - 1) / 64
}

/// The physical line of a linear one: pages share physical pages in the order of discovery.
pub fn physical_line(setup: &RunSetup, physical: usize, line: u64) -> u64 {
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
        return assumption(
            name,
            Outcome::Violated,
            format!("address trace: instruction {list}{note}"),
        );
    }
    match (is_complete(setup), setup.accesses.is_empty()) {
        (false, _) => assumption(name, Outcome::Unchecked, GAPS),
        (true, true) => assumption(name, Outcome::Held, NO_MEMORY),
        (true, false) => assumption(name, Outcome::Held, "address trace of every copy"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::common::example::{block, setup};
    use super::*;

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
}
