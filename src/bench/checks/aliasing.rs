//! Addresses that the processor takes for each other: pages that share a physical one, and loads
//! behind stores with the same low bits.

use super::super::sandbox::layout::PAGE;
use super::common::{GAPS, NO_MEMORY, assumption, is_whole, more};
use super::lines::{physical_line, touched};
use crate::initial::run_setup::Found;
use crate::initial::trace::Access;
use crate::measurement::{Assumption, Outcome};
use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Stores that may still wait when a load comes.
const STORES: usize = 64;

/// Whether a line is touched through two addresses. Pages share a physical page when there are
/// more of them than physical ones; on Zen two linear addresses of a line evict each other.
pub fn pages(found: &Found, physical: usize) -> Assumption {
    let name = "page-aliasing";
    let count = found.pages.len();
    if count == 0 {
        return assumption(name, Outcome::Held, NO_MEMORY);
    }
    if count <= physical {
        let how = format!("pages: {count}, each with a physical page of its own");
        return assumption(name, Outcome::Held, how);
    }
    let sharing = format!("{count} pages on {physical} physical ones");
    let mut lines: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for line in found.accesses.iter().flat_map(touched) {
        lines.entry(physical_line(found, physical, line)).or_default().insert(line);
    }
    let page = |line: &u64| line * 64 / PAGE as u64 * PAGE as u64;
    let pairs: BTreeSet<(u64, u64)> = lines
        .values()
        .filter_map(|lines| Some((page(lines.first()?), page(lines.iter().nth(1)?))))
        .collect();
    let mut names: Vec<_> = pairs.iter().map(|(a, b)| format!("{a:#x} with {b:#x}")).collect();
    match (names.is_empty(), is_whole(found)) {
        (false, _) => {
            let how = format!(
                "{sharing}: a line is touched through two addresses in {} ({})",
                more(&mut names, 3),
                "which costs on AMD Zen, and lets a store through one change a load through the \
                 other"
            );
            assumption(name, Outcome::Violated, how)
        }
        (true, true) => {
            assumption(name, Outcome::Held, format!("{sharing}, but no line through two addresses"))
        }
        (true, false) => assumption(name, Outcome::Unchecked, format!("{sharing}; {GAPS}")),
    }
}

/// Whether a load follows a store to the same place of another page: the low 12 bits are compared
/// first, and the load waits.
pub fn stores(block: &Block, found: &Found) -> Assumption {
    let name = "store-aliasing";
    if found.accesses.is_empty() && found.complete {
        return assumption(name, Outcome::Held, NO_MEMORY);
    }
    let elsewhere = "address trace: no load behind a store to the same low 12 bits elsewhere";
    // The usual block, which is not worth the search.
    if is_whole(found) && found.pages.len() < 2 {
        return assumption(name, Outcome::Held, elsewhere);
    }
    let mut recent: VecDeque<Access> = VecDeque::with_capacity(STORES + 1);
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for instruction in by_instruction(&found.accesses) {
        for load in instruction.iter().filter(|a| a.reads && a.size > 0) {
            let near = recent.iter().find(|store| overlaps(load, store, PAGE as u64));
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
        return match is_whole(found) {
            true => assumption(name, Outcome::Held, elsewhere),
            false => assumption(name, Outcome::Unchecked, GAPS),
        };
    }
    let text = |i: usize| format!("{i} `{}`", block.instructions[i].text);
    let mut names: Vec<_> = pairs
        .iter()
        .map(|((store, load), times)| {
            format!("load {} behind store {}, {times} times", text(*load), text(*store))
        })
        .collect();
    let how = format!(
        "address trace: same low 12 bits on another page: {} in {} copies",
        more(&mut names, 3),
        found.copies
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
    use super::super::common::example::{block, found};
    use super::*;

    #[test]
    fn pages_alias_only_where_a_line_is_touched_through_two_addresses() {
        let three = [0x1000, 0x2000, 0x3000];
        let apart = found(&three, &[(0, 0, 0x1000, 8, false), (1, 0, 0x3040, 8, false)]);
        assert_eq!(pages(&apart, 2).outcome, Outcome::Held);
        let same = found(&three, &[(0, 0, 0x1000, 8, false), (1, 0, 0x3000, 8, false)]);
        let judged = pages(&same, 2);
        assert_eq!(judged.outcome, Outcome::Violated);
        assert!(judged.how.contains("0x1000 with 0x3000"), "{}", judged.how);
        assert_eq!(pages(&same, 16).outcome, Outcome::Held);
    }

    #[test]
    fn a_load_behind_a_store_to_the_same_offset_elsewhere_is_named() {
        let pair = block("488903 488b07"); // mov [rbx],rax; mov rax,[rdi]
        let alias = found(&[0x1000, 0x2000], &[(0, 0, 0x1010, 8, true), (0, 1, 0x2014, 8, false)]);
        let judged = stores(&pair, &alias);
        assert_eq!(judged.outcome, Outcome::Violated);
        for word in ["load 1 `mov rax,[rdi]`", "store 0 `mov [rbx],rax`", "1 times"] {
            assert!(judged.how.contains(word), "{}", judged.how);
        }
        // What was stored there itself is forwarded, whatever an older store did elsewhere.
        let forwarded = found(
            &[0x1000, 0x2000],
            &[(0, 0, 0x1010, 8, true), (0, 0, 0x2010, 8, true), (0, 1, 0x2010, 8, false)],
        );
        assert_eq!(stores(&pair, &forwarded).outcome, Outcome::Held);
        // A load before the store is none behind it.
        let before = found(&[0x1000], &[(0, 1, 0x2010, 8, false), (1, 0, 0x1010, 8, true)]);
        assert_eq!(stores(&pair, &before).outcome, Outcome::Held);
    }
}
