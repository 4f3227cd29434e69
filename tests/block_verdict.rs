//! What the block profiler says about a measurement, on real blocks.
//!
//! Assumptions that follow from the address trace and from exception flags do not depend on how
//! calm the machine is; what does is tried a bounded number of times.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use bench::{Holds, Invariant, Options, Profiler, Report, Status, Values};
use isa::code::{Block, parse_hex};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// `None` if the sandbox cannot run here at all.
fn measure(options: &Options, hex: &str) -> Option<Report> {
    let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
    match Profiler::new(options.clone()).measure(&block) {
        Ok(report) => Some(report),
        Err(error) => {
            eprintln!("skipped: no sandbox here: {error}");
            None
        }
    }
}

fn named<'a>(report: &'a Report, name: &str) -> &'a Invariant {
    let found = report.invariants.iter().find(|i| i.name == name);
    found.unwrap_or_else(|| panic!("no {name}: {:?} {:?}", report.status, report.reason))
}

/// Screening that does not wait for a calm core.
fn quick() -> Options {
    Options { budget: Duration::from_millis(50), ..Options::quick() }
}

/// The same, with every eight bytes of memory and of the vectors as given.
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
        ("4801d8 0f5806", with(0x1_0000_0001, ONES), Holds::Violated, "instruction 1"),
        // half the smallest normal number is exact, so that no flag tells
        ("0f28c8 0f590e", with(half, smallest), Holds::Violated, "exact subnormal results"),
        // the same with normal numbers
        ("0f28c8 0f590e", with(half, ONES), Holds::Held, "none traps"),
        // fld dword [rsi]; fstp st(0)
        ("d906 ddd8", with(0x1_0000_0001, ONES), Holds::Violated, "do not switch off"),
        ("d906 ddd8", with(ONES, ONES), Holds::Held, "x87"),
        // fninit clears the flags
        ("d906 dbe3", with(0x1_0000_0001, ONES), Holds::Unchecked, "fninit"),
        // add rax,rbx
        ("4801d8", quick(), Holds::Held, "no floating-point"),
    ];
    for (hex, options, verdict, word) in found {
        let Some(report) = measure(&options, hex) else { return };
        let subnormals = named(&report, "subnormals");
        assert_eq!(subnormals.verdict, verdict, "{hex}: {}", subnormals.how);
        assert!(subnormals.how.contains(word), "{hex}: {}", subnormals.how);
    }
}

#[test]
fn looking_for_subnormals_leaves_the_next_block_alone() {
    // addps xmm0,[rsi]; what traps in the search must not trap in the block's own runs.
    let options = with(0x1_0000_0001, ONES);
    let block = Block::decode(&parse_hex("0f5806").unwrap()).unwrap();
    let mut profiler = Profiler::new(options);
    for _ in 0..3 {
        let Ok(report) = profiler.measure(&block) else { return };
        assert!(matches!(report.status, Status::Ok | Status::Unstable), "{:?}", report.reason);
        assert_eq!(named(&report, "subnormals").verdict, Holds::Violated);
    }
}

#[test]
fn the_trace_tells_which_accesses_straddle_or_alias() {
    let usual = quick();
    let one_page = Options { physical_pages: 1, ..quick() };
    // Every register holds 0x12345600, so that displacements alone decide.
    for (hex, options, name, verdict, word) in [
        ("488b4304", &usual, "alignment", Holds::Violated, "0 `mov rax,[rbx+4]`"),
        ("488b4304", &usual, "line-crossing", Holds::Held, "trace"),
        ("488b433c", &usual, "line-crossing", Holds::Violated, "0 `mov rax,[rbx+0x3c]`"),
        ("488b433c", &usual, "page-crossing", Holds::Held, "trace"),
        // 0x12345600 + 0x9fc = 0x12345ffc
        ("488b83fc090000", &usual, "page-crossing", Holds::Violated, "0 `mov rax,[rbx+0x9fc]`"),
        // two pages, same offset
        ("488b03 488b8b00100000", &usual, "page-aliasing", Holds::Held, "of its own"),
        ("488b03 488b8b00100000", &one_page, "page-aliasing", Holds::Violated, "0x12345000"),
        // two pages, other offsets
        ("488b03 488b8b40100000", &one_page, "page-aliasing", Holds::Held, "no line"),
        // mov [rbx],rax; mov rcx,[rbx+0x1000]
        ("488903 488b8b00100000", &usual, "store-aliasing", Holds::Violated, "behind store 0"),
        ("488903 488b8b40100000", &usual, "store-aliasing", Holds::Held, "trace"),
    ] {
        let Some(report) = measure(options, hex) else { return };
        let invariant = named(&report, name);
        assert_eq!(invariant.verdict, verdict, "{hex}: {name}: {}", invariant.how);
        assert!(invariant.how.contains(word), "{hex}: {name}: {}", invariant.how);
    }
}

/// Which accesses are unaligned follows from the displacements, every register holding 0x12345600;
/// that the processor checks accesses of up to eight bytes, from Intel's manual.
#[test]
fn the_processors_own_check_of_alignment_agrees_with_the_trace() {
    let options = Options { explain: true, ..quick() };
    for (hex, verdict, word) in [
        // mov rax,[rbx+8]
        ("488b4308", Holds::Held, "finds none either"),
        // mov rcx,[rbx+8]; mov rax,[rbx+4]; mov edx,[rbx+2]
        ("488b4b08 488b4304 8b5302", Holds::Violated, "agrees: first instruction 1"),
        // add rbx,4; mov rax,[rbx]: every other copy, from the first on
        (
            "4883c304 488b03",
            Holds::Violated,
            "agrees: first instruction 1 `mov rax,[rbx]` in copy 0",
        ),
        // push rax at 0x12345600, then mov rax,[rbx+0x3c] across two lines
        ("50 58 488b433c", Holds::Held, "agrees: first instruction 2"),
        // mov word [rbx+6],ax; lock add dword [rbx+4],eax: aligned
        ("66894306 f0014304", Holds::Held, "finds none either"),
        // fld dword [rbx+2]; fstp st(0)
        ("d94302 ddd8", Holds::Violated, "agrees: first instruction 0"),
        // movups xmm0,[rbx+8]: whether this is checked is the processor's own affair
        ("0f104308", Holds::Violated, "EFLAGS.AC"),
        // no memory, no check
        ("4801d8", Holds::Held, "no memory"),
    ] {
        let Some(report) = measure(&options, hex) else { return };
        let alignment = named(&report, "alignment");
        assert_eq!(alignment.verdict, verdict, "{hex}: {}", alignment.how);
        assert!(alignment.how.contains(word), "{hex}: {}", alignment.how);
        // The flag is gone afterwards: the same profiler goes on with an unaligned block.
        assert!(
            matches!(report.status, Status::Ok | Status::Unstable),
            "{hex}: {:?}",
            report.reason
        );
    }
    let block = Block::decode(&parse_hex("488b4304").unwrap()).unwrap();
    let mut profiler = Profiler::new(options);
    for _ in 0..3 {
        let report = profiler.measure(&block).unwrap();
        assert!(
            report.throughput.is_some() || report.status == Status::Unstable,
            "{:?}",
            report.reason
        );
    }
}

#[test]
fn a_block_is_not_faster_than_its_front_end_nor_than_the_pipeline_is_wide() {
    // Independent additions of registers, and a chain of multiplications.
    for hex in ["4801d8 4801d9 4801da 4801dd", "480fafc3", "4801d8 4839cf 72f8"] {
        let tries = (0..5).map_while(|_| measure(&Options::default(), hex));
        let settled = tries
            .filter(|r| r.status == Status::Ok)
            .find(|r| r.bounds.iter().any(|b| b.name == "front-end"));
        let Some(report) = settled else {
            eprintln!("skipped: {hex}: the core was never calm");
            continue;
        };
        let judged = named(&report, "bounds");
        assert_eq!(judged.verdict, Holds::Held, "{hex}: {}", judged.how);
        assert!(report.bounds.iter().all(|b| b.low <= b.cycles && b.cycles <= b.high));
    }
}

fn json(args: &[&str]) -> Value {
    let tool = Command::new(env!("CARGO_BIN_EXE_tdtool")).arg("block").args(args).output().unwrap();
    serde_json::from_slice(&tool.stdout).unwrap()
}

/// Keys that every document has, with what they hold.
fn check_common(json: &Value) {
    assert_eq!(json["schema"], "tdtool.block/1");
    assert!(json["block"]["hex"].is_string());
    assert!(json["block"]["instructions"].is_array());
    assert!(["ok", "unstable", "failed", "rejected"].contains(&json["status"].as_str().unwrap()));
    for key in ["reason", "throughput", "forms"] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for key in ["invariants", "bounds"] {
        assert!(json[key].is_array(), "{key}");
    }
    assert!(json["samples"].is_object());
    assert!(json["hierarchy"]["verdict"].is_string());
    for node in json["hierarchy"]["nodes"].as_array().unwrap() {
        assert!(node["id"].is_string());
        assert!(node["share"].is_number() || node["reason"].is_string(), "{node}");
    }
}

#[test]
fn the_document_of_a_measured_block_has_the_keys_of_its_schema() {
    if measure(&quick(), "90").is_none() {
        return;
    }
    let measured = (0..10).map(|_| json(&["480fafc3", "--format", "json"]));
    let mut settled = measured.skip_while(|json| json["throughput"].is_null());
    let Some(json) = settled.next() else {
        eprintln!("skipped: the core was never calm");
        return;
    };
    check_common(&json);
    for key in ["cycles", "low", "high"] {
        assert!(json["throughput"][key].is_number(), "{key}");
    }
    assert!(json["throughput"]["modes"][0]["cycles"].is_number());
    assert!(json["throughput"]["clock"].is_string());
    for form in ["unrolled", "loop"] {
        assert!(json["forms"][form].is_object(), "{form}");
    }
    let invariants = json["invariants"].as_array().unwrap();
    let mut names: Vec<_> = invariants.iter().map(|i| i["name"].as_str().unwrap()).collect();
    for invariant in invariants {
        let verdict = invariant["verdict"].as_str().unwrap();
        assert!(["held", "violated", "unchecked"].contains(&verdict), "{invariant}");
        assert!(!invariant["how"].as_str().unwrap().is_empty(), "{invariant}");
    }
    // Exactly those that the documentation lists.
    let docs = include_str!("../docs/block-profiler.md");
    let section = docs.split("## The assumptions").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut listed: Vec<_> =
        section.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    // Two need what not every machine has: a PMU, a software event that may be opened.
    listed.retain(|name| {
        names.contains(name) || !["instruction-count", "page-faults"].contains(name)
    });
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(names, listed);
    for bound in json["bounds"].as_array().unwrap() {
        for key in ["cycles", "low", "high"] {
            assert!(bound[key].is_number(), "{key}");
        }
        assert!(bound["name"].is_string() && bound["how"].is_string());
    }
}

#[test]
fn the_documents_of_blocks_that_do_not_run_have_the_same_keys() {
    let rejected = json(&["0f05", "--format", "json"]);
    check_common(&rejected);
    assert_eq!(rejected["status"], "rejected");
    assert!(rejected["reason"].is_string() && rejected["throughput"].is_null());
    if measure(&quick(), "90").is_none() {
        return;
    }
    // mov rax,-1; mov rax,[rax]: an address of the kernel's half, which no values change
    let failed = json(&["48c7c0ffffffff 488b00", "--format", "json"]);
    check_common(&failed);
    assert_eq!(failed["status"], "failed");
    assert!(failed["reason"].is_string() && failed["throughput"].is_null());
    assert_eq!(failed["where"]["instruction"], 1);
    assert_eq!(failed["where"]["copy"], 0);
    assert_eq!(failed["where"]["address"], "0xffffffffffffffff");
}
