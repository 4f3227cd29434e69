//! The measurer's findings on the assumptions of a measurement, on real blocks.
//!
//! Findings that follow from the address trace and from exception flags do not depend on contention; others are
//! tried a bounded number of times.

use super::{measure, measured, quick, quiet_sandbox, sandbox, thorough};
use crate::support::trial::{Trial, assert_holds, claim};
use bench::{Assumption, BlockMeasurer, Init, Measurement, Options, Outcome, Status, Values};

fn named<'a>(report: &'a Measurement, name: &str) -> &'a Assumption {
    let found = report.assumptions.iter().find(|i| i.name.word() == name);
    found.unwrap_or_else(|| panic!("no {name}: {:?} {:?}", report.status, report.reason))
}

/// Screening with every eight bytes of memory and of the vectors as given.
fn with(memory: u64, vector: u64) -> Options {
    let values = Values { memory, vector, ..Values::default() };
    Options { values: Some(values), ..quick() }
}

/// 1.0 twice in single precision.
const ONES: u64 = 0x3f80_0000_3f80_0000;

#[test]
fn subnormals_are_found_where_they_arise_and_nowhere_else() {
    // Bit patterns by IEEE 754: 00000001 is the smallest subnormal, 00800000 the smallest normal
    // number, 3f000000 is one half.
    let half = 0x3f00_0000_3f00_0000;
    let smallest = 0x0080_0000_0080_0000;
    let found = [
        // addps xmm0,[rsi] with a subnormal in memory
        ("4801d8 0f5806", with(0x1_0000_0001, ONES), Outcome::Violated, "instruction 1"),
        // half the smallest normal number is exact, so no flag is set
        ("0f28c8 0f590e", with(half, smallest), Outcome::Violated, "exact subnormal results"),
        // the same with normal numbers
        ("0f28c8 0f590e", with(half, ONES), Outcome::Held, "none traps"),
        // fld dword [rsi]; fstp st(0)
        ("d906 ddd8", with(0x1_0000_0001, ONES), Outcome::Violated, "do not affect"),
        ("d906 ddd8", with(ONES, ONES), Outcome::Held, "x87"),
        // fninit clears the flags
        ("d906 dbe3", with(0x1_0000_0001, ONES), Outcome::Unchecked, "fninit"),
        // add rax,rbx
        ("4801d8", quick(), Outcome::Held, "no floating-point"),
    ];
    let Some(_busy) = sandbox() else { return };
    for (hex, options, verdict, word) in found {
        let report = measure(&mut BlockMeasurer::new(options), hex);
        let subnormals = named(&report, "subnormals");
        assert_eq!(subnormals.outcome, verdict, "{hex}: {}", subnormals.how);
        assert!(subnormals.how.contains(word), "{hex}: {}", subnormals.how);
    }
}

#[test]
fn looking_for_subnormals_leaves_the_next_block_alone() {
    // addps xmm0,[rsi]; what traps in the search must not trap in the block's own runs.
    let Some(_busy) = sandbox() else { return };
    let mut measurer = BlockMeasurer::new(with(0x1_0000_0001, ONES));
    for _ in 0..3 {
        let report = measured(&mut measurer, "0f5806");
        assert_eq!(named(&report, "subnormals").outcome, Outcome::Violated);
    }
}

#[test]
fn the_trace_tells_which_accesses_straddle_or_alias() {
    let Some(_busy) = sandbox() else { return };
    let usual = quick();
    let one_page = Options { physical_pages: 1, ..quick() };
    // Every register holds 0x12345600, so that displacements alone decide.
    for (hex, options, name, verdict, word) in [
        ("488b4304", &usual, "alignment", Outcome::Violated, "0 `mov rax,[rbx+4]`"),
        ("488b4304", &usual, "line-crossing", Outcome::Held, "trace"),
        ("488b433c", &usual, "line-crossing", Outcome::Violated, "0 `mov rax,[rbx+0x3c]`"),
        ("488b433c", &usual, "page-crossing", Outcome::Held, "trace"),
        // 0x12345600 + 0x9fc = 0x12345ffc
        ("488b83fc090000", &usual, "page-crossing", Outcome::Violated, "0 `mov rax,[rbx+0x9fc]`"),
        // two pages, same offset
        ("488b03 488b8b00100000", &usual, "page-aliasing", Outcome::Held, "its own"),
        ("488b03 488b8b00100000", &one_page, "page-aliasing", Outcome::Violated, "0x12345000"),
        // two pages, other offsets
        ("488b03 488b8b40100000", &one_page, "page-aliasing", Outcome::Held, "no line"),
        // mov [rbx],rax; mov rcx,[rbx+0x1000]
        ("488903 488b8b00100000", &usual, "store-aliasing", Outcome::Violated, "after store 0"),
        ("488903 488b8b40100000", &usual, "store-aliasing", Outcome::Held, "trace"),
    ] {
        let report = measure(&mut BlockMeasurer::new(options.clone()), hex);
        let assumption = named(&report, name);
        assert_eq!(assumption.outcome, verdict, "{hex}: {name}: {}", assumption.how);
        assert!(assumption.how.contains(word), "{hex}: {name}: {}", assumption.how);
    }
}

/// Which accesses are unaligned follows from the displacements, every register holding 0x12345600;
/// that the processor checks accesses of up to eight bytes, from Intel's manual.
#[test]
fn the_processors_own_check_of_alignment_agrees_with_the_trace() {
    let Some(_busy) = sandbox() else { return };
    let mut measurer = BlockMeasurer::new(Options { explain: true, ..quick() });
    for (hex, verdict, word) in [
        // mov rax,[rbx+8]
        ("488b4308", Outcome::Held, "finds none either"),
        // mov rcx,[rbx+8]; mov rax,[rbx+4]; mov edx,[rbx+2]
        ("488b4b08 488b4304 8b5302", Outcome::Violated, "agrees: first instruction 1"),
        // add rbx,4; mov rax,[rbx]: every other copy, from the first on
        (
            "4883c304 488b03",
            Outcome::Violated,
            "agrees: first instruction 1 `mov rax,[rbx]` in copy 0",
        ),
        // push rax at 0x12345600, then mov rax,[rbx+0x3c] across two lines
        ("50 58 488b433c", Outcome::Held, "agrees: first instruction 2"),
        // mov word [rbx+6],ax; lock add dword [rbx+4],eax: aligned
        ("66894306 f0014304", Outcome::Held, "finds none either"),
        // fld dword [rbx+2]; fstp st(0)
        ("d94302 ddd8", Outcome::Violated, "agrees: first instruction 0"),
        // movups xmm0,[rbx+8]: whether this is checked is the processor's own affair
        ("0f104308", Outcome::Violated, "EFLAGS.AC"),
        // no memory, no check
        ("4801d8", Outcome::Held, "not access memory"),
    ] {
        // The flag is gone afterwards: the same measurer goes on with the next block, also with one
        // that is not aligned.
        let report = measured(&mut measurer, hex);
        let alignment = named(&report, "alignment");
        assert_eq!(alignment.outcome, verdict, "{hex}: {}", alignment.how);
        assert!(alignment.how.contains(word), "{hex}: {}", alignment.how);
    }
    for _ in 0..3 {
        let report = measured(&mut measurer, "488b4304");
        let timed = report.throughput.is_some() || report.status == Status::Unstable;
        assert!(timed, "{:?}", report.reason);
    }
}

#[test]
fn a_block_is_not_faster_than_its_front_end_nor_than_the_pipeline_is_wide() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let mut measurer = BlockMeasurer::new(thorough());
    // Independent additions of registers, a chain of multiplications, and a loop.
    for hex in ["4801d8 4801d9 4801da 4801dd", "480fafc3", "4801d8 4839cf 72f8"] {
        assert_holds(&format!("{hex} is not faster than its bounds"), || {
            let report = measured(&mut measurer, hex);
            let has_bound = report.bounds.iter().any(|b| b.name == "front-end");
            if report.status != Status::Ok || !has_bound {
                return Trial::Unsettled(format!("{:?}", report.reason));
            }
            assert!(report.bounds.iter().all(|b| b.low <= b.cycles && b.cycles <= b.high));
            let judged = named(&report, "bounds");
            claim(judged.outcome == Outcome::Held, || judged.how.clone()).into()
        });
    }
}

/// No fault maps a page that is only prefetched; in programs it is there.
#[test]
fn prefetched_pages_are_mapped() {
    let Some(_busy) = sandbox() else { return };
    // prefetcht0 [rsi]; prefetchnta [rsi+0x1000]; prefetcht1 [rip+0x40]
    let found = measured(&mut BlockMeasurer::new(quick()), "0f180e 0f188600100000 0f181540000000");
    assert_eq!(found.pages.len(), 3, "{found:?}");
    assert_eq!(named(&found, "mapped-pages").outcome, Outcome::Held);
}

/// A mask that selects nothing faults no page: it is mapped all the same, as it is in programs, and the report says so.
#[test]
fn masked_accesses_have_their_pages_whatever_the_mask() {
    let Some(_busy) = sandbox() else { return };
    if !std::arch::is_x86_feature_detected!("avx2") {
        return;
    }
    // vmaskmovps [rdi],ymm1,ymm0; vpmaskmovd ymm0,ymm1,[rsi]; vpgatherdd ymm0,[rdi+ymm2*4],ymm1
    for hex in ["c4e2752e07", "c4e2758c06", "c4e275900497"] {
        let mut measurer = BlockMeasurer::new(quick());
        let empty = measured(&mut measurer, hex);
        assert!(!empty.pages.is_empty(), "{hex}: {empty:?}");
        assert_eq!(named(&empty, "masks").outcome, Outcome::Violated, "{hex}");
        let init = vec![(Init::Vector, u64::MAX)];
        let mut measurer = BlockMeasurer::new(Options { init, ..quick() });
        let full = measured(&mut measurer, hex);
        assert!(!full.pages.is_empty(), "{hex}");
        // A gather leaves its mask empty for the next copy.
        if hex != "c4e275900497" {
            assert_eq!(named(&full, "masks").outcome, Outcome::Held, "{hex}");
        }
    }
}
