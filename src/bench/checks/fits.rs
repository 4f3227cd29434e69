//! Checks whether code fits the L1 instruction cache and the op cache, and whether memory fits the first level:
//! pages of the data TLB, cache lines and pages of a captured loop.

use super::common::{GAPS, NO_MEMORY, is_complete};
use crate::harness::skeleton::has_wide_immediate;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption};
use isa::code::{Block, Inst};
use std::collections::BTreeSet;
use tma::Cache;
use tma::tables::facts::{DataTlb, OpCache};
use tma::text::several;

/// Bytes of the harness: set-up, clock, and the worker's loop.
const HARNESS_CODE: usize = 6 * 1024;

/// Pages that the harness itself reads and writes between runs: its context and its mailbox.
const HARNESS_PAGES: usize = 2;

/// Cache lines of a page.
const LINES_OF_PAGE: u64 = 64;
/// Entries of the first-level data TLB where the core's are not known: the fewest in `events/`.
const FEWEST: u32 = 64;

/// Compares the bytes of the long and the short run with the L1 instruction cache.
pub fn l1_code(block: &Block, setup: &RunSetup, copies: usize, cache: Option<Cache>) -> Assumption {
    let long = bytes(block, setup, copies);
    let all = long + long / 2 + HARNESS_CODE;
    let Some(cache) = cache else {
        let how = format!("{all} bytes; the size of the L1 instruction cache is not known");
        return Assumed::L1Code.unchecked(how);
    };
    let how = format!(
        "{long} bytes in {} copies; with the short run and the harness, {all} of {} bytes of the L1 \
         instruction cache",
        copies,
        cache.bytes()
    );
    Assumed::L1Code.judged(all <= cache.bytes(), how)
}

/// Compares the operations of the long run with the op cache.
pub fn op_cache(
    block: &Block,
    setup: &RunSetup,
    copies: usize,
    cache: Option<&OpCache>,
) -> Assumption {
    let ops = copies * block.instructions.iter().map(operations).sum::<usize>()
        + setup.reseeded.len() * copies;
    let about = format!("about {ops} operations in {} copies", copies);
    let Some(cache) = cache else {
        let how = format!("{about}; the op cache of this processor is not known");
        return Assumed::OpCache.unchecked(how);
    };
    let how = format!("{about}; the op cache holds {} ({})", cache.ops, cache.source);
    // A quarter is reserved for the end of the short run, the harness, and lines that are not full.
    if 4 * ops > 3 * cache.ops as usize {
        return Assumed::OpCache.violated(how);
    }
    match cache.per_32_bytes {
        Some(most) if ops * 32 > most as usize * bytes(block, setup, copies) => {
            let how = format!(
                "{how}, but not more than {most} per 32 bytes of code, which this code exceeds"
            );
            Assumed::OpCache.violated(how)
        }
        _ => Assumed::OpCache.held(how),
    }
}

/// Bytes of the copies; reinitialising a register is a load of 7 bytes.
fn bytes(block: &Block, setup: &RunSetup, copies: usize) -> usize {
    (block.bytes.len() + 7 * setup.reseeded.len()) * copies
}

/// Op-cache entries of an instruction: one, plus one for reading and writing the same memory and one
/// for a 64-bit immediate. Microcoded instructions are not considered.
fn operations(inst: &Inst) -> usize {
    let both = |m: &iced_x86::UsedMemory| Inst::reads(m.access()) && Inst::writes(m.access());
    1 + usize::from(inst.memory.iter().any(both)) + usize::from(has_wide_immediate(inst))
}

/// Compares the pages read and written with the TLB's entries. Physical pages may be fewer, but every
/// linear page has its own translation.
pub fn data_tlb(setup: &RunSetup, tlb: Option<&DataTlb>) -> Assumption {
    const NAME: Assumed = Assumed::DataTlb;
    if setup.accesses.is_empty() && setup.complete {
        return NAME.held(NO_MEMORY);
    }
    if !is_complete(setup) {
        return NAME.unchecked(GAPS);
    }
    let pages = |wanted: fn(&crate::initial::trace::Access) -> bool| {
        let touched = setup.accesses.iter().filter(|a| wanted(a));
        let pages: BTreeSet<u64> =
            touched.flat_map(|a| a.lines()).map(|line| line / (4096 / 64)).collect();
        pages.len()
    };
    let (loads, stores) = (pages(|a| a.reads), pages(|a| a.writes));
    let about = format!("{} read, {stores} written", several(loads, "page"));
    let Some(tlb) = tlb else {
        let how = format!("{about}; the data TLB of this processor is not known");
        return NAME.unchecked(how);
    };
    let held = match tlb.stores {
        Some(own) => {
            loads + HARNESS_PAGES <= tlb.loads as usize && stores + HARNESS_PAGES <= own as usize
        }
        None => pages(|_| true) + HARNESS_PAGES <= tlb.loads as usize,
    };
    let entries = match tlb.stores {
        Some(own) => format!("{} entries for loads and {own} for stores", tlb.loads),
        None => format!("{} entries", tlb.loads),
    };
    let beyond = if held { "" } else { "; further pages miss to the second level" };
    let how = format!("{about}; the first-level data TLB has {entries} ({}){beyond}", tlb.source);
    NAME.judged(held, how)
}

/// Pages and cache lines of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Iterations that are run.
    pub iterations: u64,
    /// Pages that it accesses.
    pub pages: usize,
    /// Pages that it writes.
    pub pages_written: usize,
    /// Cache lines that it writes.
    pub lines_written: u64,
    /// Cache lines that were accessed in the program, and in how many iterations, where that is known.
    pub lines_followed: Option<(u64, u64)>,
    /// Most of these lines at the same offset within a page.
    pub same_set: Option<u64>,
}

impl Footprint {
    /// The larger one of two executions.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        let size = |one: &Self| {
            let (lines, of) = one.lines_followed.unwrap_or((0, 1));
            (one.pages, lines * one.iterations / of.max(1))
        };
        if size(&other) > size(&self) { other } else { self }
    }
}

/// Compares the lines of an execution, and those that restore what it writes, with the L1 data cache.
pub fn captured_l1_data(footprint: &Footprint, cache: Option<Cache>) -> Assumption {
    const NAME: Assumed = Assumed::L1Data;
    let Some(cache) = cache else {
        let how = "the size of the L1 data cache is not known";
        return NAME.unchecked(how);
    };
    let room = (cache.ways * cache.sets) as u64;
    // The content of a line, and a quarter of a line with its addresses.
    let restoring = footprint.lines_written + footprint.lines_written.div_ceil(4);
    let Some((lines, is_exact)) = lines(footprint) else {
        let how =
            "how many lines an execution accesses is not known: captured by an earlier version";
        return NAME.unchecked(how);
    };
    let about = if is_exact { "" } else { "about " };
    // Lines of a page are in different sets if there are at least 64 sets; with fewer, some share a set.
    let sets_of_page = (cache.sets as u64).min(LINES_OF_PAGE);
    let same_set = footprint.same_set.unwrap_or(0) * (LINES_OF_PAGE / sets_of_page.max(1));
    let is_crowded = same_set > cache.ways as u64 * (cache.sets as u64 / sets_of_page.max(1));
    let held = lines + restoring <= room && !is_crowded;
    let crowd = match is_crowded {
        true => format!(" in {} ways, and {same_set} of them share a set", cache.ways),
        false => String::new(),
    };
    let beyond = if held { "" } else { "; further lines miss to the second level" };
    let how = format!(
        "an execution accesses {about}{}, and {restoring} restore what it writes; the L1 data cache has \
         {room}{crowd}{beyond}",
        several(lines, "cache line")
    );
    NAME.judged(held, how)
}

/// The lines of an execution, and whether they were counted or follow from the iterations that were followed.
fn lines(footprint: &Footprint) -> Option<(u64, bool)> {
    let (lines, iterations) = footprint.lines_followed?;
    if footprint.iterations <= iterations {
        return Some((lines, true));
    }
    let most = footprint.pages as u64 * LINES_OF_PAGE;
    let extrapolated = lines as f64 * footprint.iterations as f64 / iterations.max(1) as f64;
    Some(((extrapolated as u64).clamp(lines.min(most), most), false))
}

/// Compares the pages of an execution with the first-level data TLB.
pub fn captured_data_tlb(footprint: &Footprint, tlb: Option<&DataTlb>) -> Assumption {
    let (pages, written) = (footprint.pages, footprint.pages_written);
    // Written pages are restored from pages of the sandbox.
    let all = pages + written + HARNESS_PAGES;
    let (loads, stores, entries) = match tlb {
        Some(tlb) => (tlb.loads, tlb.stores, format!("{} entries ({})", tlb.loads, tlb.source)),
        None => {
            let entries =
                format!("{FEWEST} entries on the smallest of the known cores, not known here");
            (FEWEST, None, entries)
        }
    };
    let fits_stores = stores.is_none_or(|own| written + HARNESS_PAGES <= own as usize);
    let held = all <= loads as usize && fits_stores;
    let own = stores.map_or(String::new(), |own| format!(" and {own} for stores"));
    let beyond = if held { "" } else { "; further pages miss to the second level" };
    let how = format!(
        "an execution accesses {} and writes {written} of them; the first-level data TLB has \
         {entries}{own}{beyond}",
        several(pages, "page")
    );
    Assumed::DataTlb.judged(held, how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::common::example::{block, setup};
    use crate::measurement::Outcome;

    #[test]
    fn code_fits_with_both_runs() {
        let cache = Some(Cache { ways: 8, sets: 64 });
        let add = block("4801d8");
        assert_eq!(l1_code(&add, &setup(&[], &[]), 192, cache).outcome, Outcome::Held);
        assert_eq!(l1_code(&add, &setup(&[], &[]), 8000, cache).outcome, Outcome::Violated);
        assert_eq!(l1_code(&add, &setup(&[], &[]), 192, None).outcome, Outcome::Unchecked);
    }

    #[test]
    fn operations_are_counted_against_the_size_and_the_window() {
        let cache =
            |per_32_bytes| OpCache { ops: 1536, per_32_bytes, source: "a manual".to_owned() };
        let add = block("4801d8");
        assert_eq!(
            op_cache(&add, &setup(&[], &[]), 960, Some(&cache(Some(18)))).outcome,
            Outcome::Held
        );
        // Reading and writing memory takes two: 1,920 operations.
        assert_eq!(
            op_cache(&block("480103"), &setup(&[], &[]), 960, Some(&cache(None))).outcome,
            Outcome::Violated
        );
        // 32 nops of a byte in 32 bytes.
        let nops = op_cache(&block("90"), &setup(&[], &[]), 192, Some(&cache(Some(18))));
        assert_eq!(nops.outcome, Outcome::Violated, "{}", nops.how);
        assert_eq!(op_cache(&add, &setup(&[], &[]), 960, None).outcome, Outcome::Unchecked);
    }

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

    fn of(pages: usize, iterations: u64) -> Footprint {
        Footprint {
            iterations,
            pages,
            pages_written: 0,
            lines_written: 0,
            lines_followed: Some((256, 256)),
            same_set: Some(4),
        }
    }

    /// A pointer chase with a node in each page, as AMD's and Intel's manuals give the sizes: 96 entries on Zen 5,
    /// 64 on Zen 3.
    #[test]
    fn more_pages_than_the_tlb_has_entries_fail() {
        let zen5 = DataTlb { loads: 96, stores: None, source: "test".to_owned() };
        let judged = captured_data_tlb(&of(252, 252), Some(&zen5));
        assert_eq!(judged.outcome, Outcome::Violated);
        assert!(
            judged.how.contains("252 pages") && judged.how.contains("96 entries"),
            "{}",
            judged.how
        );
        assert_eq!(captured_data_tlb(&of(80, 80), Some(&zen5)).outcome, Outcome::Held);
        let unknown = captured_data_tlb(&of(80, 80), None);
        assert_eq!(unknown.outcome, Outcome::Violated);
        assert!(unknown.how.contains("not known here"), "{}", unknown.how);
        let split = DataTlb { stores: Some(16), ..zen5 };
        let written = Footprint { pages_written: 20, ..of(40, 40) };
        assert_eq!(captured_data_tlb(&written, Some(&split)).outcome, Outcome::Violated);
    }

    /// 32 KiB: 512 lines.
    #[test]
    fn more_lines_than_the_cache_has_fail() {
        let cache = Some(Cache { ways: 8, sets: 64 });
        assert_eq!(captured_l1_data(&of(8, 256), cache).outcome, Outcome::Held);
        // A line an iteration: 1,024 of them on 16 pages.
        let judged = captured_l1_data(&of(16, 1024), cache);
        assert_eq!(judged.outcome, Outcome::Violated);
        assert!(judged.how.contains("about 1024 cache lines"), "{}", judged.how);
        // Repeated accesses touch no more lines than the pages have.
        assert_eq!(captured_l1_data(&of(4, 1 << 20), cache).outcome, Outcome::Held);
        let written = Footprint { lines_written: 250, ..of(8, 256) };
        assert_eq!(captured_l1_data(&written, cache).outcome, Outcome::Violated);
        // Twelve in a set of eight ways.
        let crowded = captured_l1_data(&Footprint { same_set: Some(12), ..of(12, 12) }, cache);
        assert_eq!(crowded.outcome, Outcome::Violated);
        assert!(crowded.how.contains("12 of them share a set"), "{}", crowded.how);
        let unknown = Footprint { lines_followed: None, ..of(8, 256) };
        assert_eq!(captured_l1_data(&unknown, cache).outcome, Outcome::Unchecked);
    }
}
