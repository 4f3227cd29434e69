//! Masked accesses: whether their masks select anything, and whether they have pages.

use super::common::{assumption, listed};
use crate::initial::masks::Masked;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption, Outcome};
use isa::code::Block;

/// Checks that every mask selects an element and every masked access has a page; `None` without masked accesses.
pub fn masks(block: &Block, setup: &RunSetup) -> Option<Assumption> {
    let all = &setup.masked.instructions;
    if all.is_empty() {
        return None;
    }
    let missing = setup.masked.pages.iter().filter(|page| !setup.pages.contains(page)).count();
    if missing > 0 {
        let how = format!(
            "{missing} pages of masked accesses cannot be mapped: suppressing the fault of each takes hundreds of cycles"
        );
        return Some(assumption(Assumed::Masks, Outcome::Violated, how));
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
    } else if let Some(why) = setup.masked.incomplete {
        assumption(Assumed::Masks, Outcome::Unchecked, why)
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
    use crate::initial::masks::MaskedAccesses;

    #[test]
    fn masks_that_select_nothing_are_named() {
        let store = block("c4e27d2e0f"); // vmaskmovps [rdi],ymm0,ymm1
        let with = |empty, pages: &[u64]| {
            let instructions = vec![Masked { instruction: 0, empty, copies: 2 }];
            let masked = MaskedAccesses { instructions, pages: pages.to_vec(), incomplete: None };
            masks(&store, &RunSetup { masked, ..setup(&[], &[]) }).unwrap()
        };
        assert_eq!(with(0, &[]).outcome, Outcome::Held);
        let empty = with(2, &[]);
        assert_eq!(empty.outcome, Outcome::Violated);
        assert!(empty.how.contains("(2 of 2 copies)") && empty.how.contains("vec=-1"), "{empty:?}");
        assert!(with(0, &[0x9000]).how.contains("cannot be mapped"));
        let unchecked = |copies: [usize; 2], incomplete| {
            let one = |(instruction, copies)| Masked { instruction, empty: 0, copies };
            let instructions = copies.into_iter().enumerate().map(one).collect();
            let masked = MaskedAccesses { instructions, incomplete, ..Default::default() };
            let twice = block("c4e27d2e0fc4e27d2e0f");
            let found = masks(&twice, &RunSetup { masked, ..setup(&[], &[]) }).unwrap();
            (found.outcome == Outcome::Unchecked).then_some(found.how)
        };
        assert_eq!(unchecked([2, 2], None), None);
        assert!(unchecked([2, 0], None).unwrap().contains("not in the trace"));
        assert_eq!(unchecked([2, 2], Some("too many")).as_deref(), Some("too many"));
        assert!(masks(&block("4801d8"), &setup(&[], &[])).is_none());
    }
}
