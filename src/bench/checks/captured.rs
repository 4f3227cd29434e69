//! Whether the memory that a captured loop accesses fits the first level: its cache lines and its pages.

use super::common::{assumption, outcome};
use super::tlb::HARNESS;
use crate::measurement::{Assumed, Assumption, Outcome};
use tma::Cache;
use tma::tables::facts::DataTlb;

/// Cache lines of a page.
const LINES_OF_PAGE: u64 = 64;
/// Entries of the first-level data TLB where the core's are not known: the fewest in `events/`.
const FEWEST: u32 = 64;

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
pub fn l1_data(footprint: &Footprint, cache: Option<Cache>) -> Assumption {
    const NAME: Assumed = Assumed::L1Data;
    let Some(cache) = cache else {
        let how = "the size of the L1 data cache is not known";
        return assumption(NAME, Outcome::Unchecked, how);
    };
    let room = (cache.ways * cache.sets) as u64;
    // The content of a line, and a quarter of a line with its addresses.
    let restoring = footprint.lines_written + footprint.lines_written.div_ceil(4);
    let Some((lines, is_exact)) = lines(footprint) else {
        let how =
            "how many lines an execution accesses is not known: captured by an earlier version";
        return assumption(NAME, Outcome::Unchecked, how);
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
        "an execution accesses {about}{lines} cache lines, and {restoring} restore what it writes; the L1 \
         data cache has {room}{crowd}{beyond}"
    );
    assumption(NAME, outcome(held), how)
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
pub fn data_tlb(footprint: &Footprint, tlb: Option<&DataTlb>) -> Assumption {
    let (pages, written) = (footprint.pages, footprint.pages_written);
    // Written pages are restored from pages of the sandbox.
    let all = pages + written + HARNESS;
    let (loads, stores, entries) = match tlb {
        Some(tlb) => (tlb.loads, tlb.stores, format!("{} entries ({})", tlb.loads, tlb.source)),
        None => {
            let entries =
                format!("{FEWEST} entries on the smallest of the known cores, not known here");
            (FEWEST, None, entries)
        }
    };
    let fits_stores = stores.is_none_or(|own| written + HARNESS <= own as usize);
    let held = all <= loads as usize && fits_stores;
    let own = stores.map_or(String::new(), |own| format!(" and {own} for stores"));
    let beyond = if held { "" } else { "; further pages miss to the second level" };
    let how = format!(
        "an execution accesses {pages} pages and writes {written} of them; the first-level data TLB has \
         {entries}{own}{beyond}"
    );
    assumption(Assumed::DataTlb, outcome(held), how)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let judged = data_tlb(&of(252, 252), Some(&zen5));
        assert_eq!(judged.outcome, Outcome::Violated);
        assert!(
            judged.how.contains("252 pages") && judged.how.contains("96 entries"),
            "{}",
            judged.how
        );
        assert_eq!(data_tlb(&of(80, 80), Some(&zen5)).outcome, Outcome::Held);
        let unknown = data_tlb(&of(80, 80), None);
        assert_eq!(unknown.outcome, Outcome::Violated);
        assert!(unknown.how.contains("not known here"), "{}", unknown.how);
        let split = DataTlb { stores: Some(16), ..zen5 };
        let written = Footprint { pages_written: 20, ..of(40, 40) };
        assert_eq!(data_tlb(&written, Some(&split)).outcome, Outcome::Violated);
    }

    /// 32 KiB: 512 lines.
    #[test]
    fn more_lines_than_the_cache_has_fail() {
        let cache = Some(Cache { ways: 8, sets: 64 });
        assert_eq!(l1_data(&of(8, 256), cache).outcome, Outcome::Held);
        // A line an iteration: 1,024 of them on 16 pages.
        let judged = l1_data(&of(16, 1024), cache);
        assert_eq!(judged.outcome, Outcome::Violated);
        assert!(judged.how.contains("about 1024 cache lines"), "{}", judged.how);
        // Repeated accesses touch no more lines than the pages have.
        assert_eq!(l1_data(&of(4, 1 << 20), cache).outcome, Outcome::Held);
        let written = Footprint { lines_written: 250, ..of(8, 256) };
        assert_eq!(l1_data(&written, cache).outcome, Outcome::Violated);
        // Twelve in a set of eight ways.
        let crowded = l1_data(&Footprint { same_set: Some(12), ..of(12, 12) }, cache);
        assert_eq!(crowded.outcome, Outcome::Violated);
        assert!(crowded.how.contains("12 of them share a set"), "{}", crowded.how);
        let unknown = Footprint { lines_followed: None, ..of(8, 256) };
        assert_eq!(l1_data(&unknown, cache).outcome, Outcome::Unchecked);
    }
}
