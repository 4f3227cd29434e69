//! Address aliasing: linear pages that share a physical page, and loads after stores with the same low
//! address bits.

use super::super::sandbox::layout::PAGE;
use super::common::{GAPS, NO_MEMORY, abridged, assumption, is_complete};
use super::lines::{physical_line, touched};
use crate::initial::run_setup::RunSetup;
use crate::initial::trace::Access;
use crate::measurement::{Assumed, Assumption, Outcome};
use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Stores that may be in the store buffer when a load executes.
const STORES: usize = 64;

/// Finds lines accessed through two linear addresses. Pages share physical pages if there are more of
/// them; on Zen, two linear addresses of one line evict each other.
pub fn pages(setup: &RunSetup, physical: usize) -> Assumption {
    let name = Assumed::PageAliasing;
    let count = setup.pages.len();
    if count == 0 {
        return assumption(name, Outcome::Held, NO_MEMORY);
    }
    if count <= physical {
        let how = format!("{count} pages, each with its own physical page");
        return assumption(name, Outcome::Held, how);
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
            assumption(name, Outcome::Violated, how)
        }
        (true, true) => assumption(
            name,
            Outcome::Held,
            format!("{sharing}, but no line is accessed through two addresses"),
        ),
        (true, false) => assumption(name, Outcome::Unchecked, format!("{sharing}; {GAPS}")),
    }
}

/// Finds loads after a store to the same offset of another page (4K aliasing): the low 12 bits are
/// compared first, and the load waits. Some cores confuse stores and loads of the same base register
/// at smaller `distances`, too.
pub fn stores(block: &Block, setup: &RunSetup, distances: Option<&[u32]>) -> Assumption {
    let name = Assumed::StoreAliasing;
    if setup.accesses.is_empty() && setup.complete {
        return assumption(name, Outcome::Held, NO_MEMORY);
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
        return assumption(name, Outcome::Held, none);
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
            true => assumption(name, Outcome::Held, none),
            false => assumption(name, Outcome::Unchecked, GAPS),
        };
    }
    let text = |i: usize| format!("{i} `{}`", block.instructions[i].text);
    let mut names: Vec<_> = pairs
        .iter()
        .map(|((store, load), times)| {
            format!("load {} after store {}, {times} times", text(*load), text(*store))
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
    assumption(name, Outcome::Violated, how)
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
    use super::super::common::example::{block, setup};
    use super::*;

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
        for word in ["load 1 `mov rax,[rdi]`", "store 0 `mov [rbx],rax`", "1 times"] {
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
