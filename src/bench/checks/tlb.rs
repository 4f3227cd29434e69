//! Whether the first-level data TLB holds the translations of all pages.

use super::common::{GAPS, NO_MEMORY, assumption, is_complete, outcome};
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption, Outcome};
use std::collections::BTreeSet;
use tma::tables::facts::DataTlb;

/// Pages that the harness itself reads and writes between runs: its context and its mailbox.
pub(super) const HARNESS: usize = 2;

/// Compares the pages read and written with the TLB's entries. Physical pages may be fewer, but every
/// linear page has its own translation.
pub fn data_tlb(setup: &RunSetup, tlb: Option<&DataTlb>) -> Assumption {
    const NAME: Assumed = Assumed::DataTlb;
    if setup.accesses.is_empty() && setup.complete {
        return assumption(NAME, Outcome::Held, NO_MEMORY);
    }
    if !is_complete(setup) {
        return assumption(NAME, Outcome::Unchecked, GAPS);
    }
    let pages = |wanted: fn(&crate::initial::trace::Access) -> bool| {
        let touched = setup.accesses.iter().filter(|a| wanted(a));
        let pages: BTreeSet<u64> =
            touched.flat_map(|a| a.lines()).map(|line| line / (4096 / 64)).collect();
        pages.len()
    };
    let (loads, stores) = (pages(|a| a.reads), pages(|a| a.writes));
    let about = format!("{loads} pages read, {stores} written");
    let Some(tlb) = tlb else {
        let how = format!("{about}; the data TLB of this processor is not known");
        return assumption(NAME, Outcome::Unchecked, how);
    };
    let held = match tlb.stores {
        Some(own) => loads + HARNESS <= tlb.loads as usize && stores + HARNESS <= own as usize,
        None => pages(|_| true) + HARNESS <= tlb.loads as usize,
    };
    let entries = match tlb.stores {
        Some(own) => format!("{} entries for loads and {own} for stores", tlb.loads),
        None => format!("{} entries", tlb.loads),
    };
    let beyond = if held { "" } else { "; further pages miss to the second level" };
    let how = format!("{about}; the first-level data TLB has {entries} ({}){beyond}", tlb.source);
    assumption(NAME, outcome(held), how)
}

#[cfg(test)]
mod tests {
    use super::super::common::example::setup;
    use super::*;

    fn split() -> DataTlb {
        DataTlb { loads: 96, stores: Some(16), source: "test".to_owned() }
    }

    #[test]
    fn a_page_for_each_copy_exceeds_the_tlb() {
        // `mov rax,[rbx]; add rbx,4160` in 240 copies.
        let walk: Vec<_> =
            (0..240).map(|copy| (copy, 0, 0x1000_0000 + 4160 * copy as u64, 8, false)).collect();
        assert_eq!(data_tlb(&setup(&[], &walk), Some(&split())).outcome, Outcome::Violated);
        assert_eq!(data_tlb(&setup(&[], &walk[..64]), Some(&split())).outcome, Outcome::Held);
        assert_eq!(data_tlb(&setup(&[], &walk[..64]), None).outcome, Outcome::Unchecked);
    }

    #[test]
    fn stores_have_fewer_entries() {
        let walk: Vec<_> =
            (0..40).map(|copy| (copy, 0, 0x1000_0000 + 4096 * copy as u64, 8, true)).collect();
        assert_eq!(data_tlb(&setup(&[], &walk), Some(&split())).outcome, Outcome::Violated);
        let shared = DataTlb { stores: None, ..split() };
        assert_eq!(data_tlb(&setup(&[], &walk), Some(&shared)).outcome, Outcome::Held);
    }
}
