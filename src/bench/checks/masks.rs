//! Masked accesses and prefetches: whether masks select anything, and whether the pages are mapped.

use super::common::{assumption, listed};
use crate::initial::masks::{Masked, WithoutFaults};
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption, Outcome};
use isa::code::Block;

/// Checks that every mask selects an element, and that masked accesses and prefetches have pages; nothing without such
/// accesses.
pub fn masks(block: &Block, setup: &RunSetup) -> Vec<Assumption> {
    let found = &setup.without_faults;
    let pages = (found.prefetches || !found.masked.is_empty()).then(|| pages(setup));
    pages.into_iter().chain(selections(block, found)).collect()
}

fn pages(setup: &RunSetup) -> Assumption {
    let found = &setup.without_faults;
    let missing = found.pages.iter().filter(|page| !setup.pages.contains(page)).count();
    if missing > 0 {
        let how = format!(
            "{missing} pages of masked accesses or prefetches cannot be mapped: suppressing the fault of a masked access \
             takes hundreds of cycles, and each prefetch walks the page table"
        );
        return assumption(Assumed::MappedPages, Outcome::Violated, how);
    }
    match found.incomplete {
        Some(why) => assumption(Assumed::MappedPages, Outcome::Unchecked, why),
        None => assumption(
            Assumed::MappedPages,
            Outcome::Held,
            "address trace: the pages of all masked accesses and prefetches are mapped",
        ),
    }
}

fn selections(block: &Block, found: &WithoutFaults) -> Option<Assumption> {
    let all = &found.masked;
    if all.is_empty() {
        return None;
    }
    let empty = |m: &&Masked| m.empty > 0;
    let hits =
        all.iter().filter(empty).flat_map(|m| (0..m.empty).map(|copy| (m.instruction, copy)));
    let copies = all.iter().map(|m| m.copies).max().unwrap_or(0);
    let how = listed(block, copies, hits);
    Some(if !how.is_empty() {
        let remedy = if all.iter().all(|m| is_vector(block, m)) {
            "; --init vec=-1 selects all of them"
        } else {
            ""
        };
        let how = format!(
            "the mask selects nothing: {how}; the page is mapped, and nothing is accessed{remedy}"
        );
        assumption(Assumed::Masks, Outcome::Violated, how)
    } else if all.iter().any(|m| m.copies == 0) {
        assumption(Assumed::Masks, Outcome::Unchecked, "some masks are not in the trace")
    } else {
        assumption(Assumed::Masks, Outcome::Held, "address trace: every mask selects an element")
    })
}

/// Whether the mask is a vector register, whose sign bits `--init vec` sets.
fn is_vector(block: &Block, masked: &Masked) -> bool {
    !block.instructions[masked.instruction].text.contains("{k")
}

#[cfg(test)]
mod tests {
    use super::super::common::example::{block, setup};
    use super::*;

    #[test]
    fn masks_that_select_nothing_are_named() {
        let store = block("c4e27d2e0f"); // vmaskmovps [rdi],ymm0,ymm1
        let with = |empty, copies| {
            let masked = vec![Masked { instruction: 0, empty, copies }];
            selections(&store, &WithoutFaults { masked, ..Default::default() }).unwrap()
        };
        assert_eq!(with(0, 2).outcome, Outcome::Held);
        assert_eq!(with(0, 0).outcome, Outcome::Unchecked);
        let empty = with(2, 2);
        assert_eq!(empty.outcome, Outcome::Violated);
        assert!(empty.how.contains("(2 of 2 copies)") && empty.how.contains("vec=-1"), "{empty:?}");
    }

    #[test]
    fn pages_that_are_missing_are_said() {
        let with = |pages: &[u64], incomplete| {
            let found = WithoutFaults {
                prefetches: true,
                pages: pages.to_vec(),
                incomplete,
                ..Default::default()
            };
            let all =
                masks(&block("0f180e"), &RunSetup { without_faults: found, ..setup(&[], &[]) });
            assert_eq!(all.len(), 1);
            (all[0].name, all[0].outcome)
        };
        assert_eq!(with(&[], None), (Assumed::MappedPages, Outcome::Held));
        assert_eq!(with(&[0x9000], None), (Assumed::MappedPages, Outcome::Violated));
        assert_eq!(with(&[], Some("too many")), (Assumed::MappedPages, Outcome::Unchecked));
        assert!(masks(&block("4801d8"), &setup(&[], &[])).is_empty());
    }
}
