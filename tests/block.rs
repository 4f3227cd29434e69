//! The block profiler as a user meets it, and as a hostile block meets it.
//!
//! Timing is judged by the tool's own verdict: an `ok` must be right, an `unstable` may be tried
//! again a bounded number of times.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use bench::{Holds, Options, Profiler, Report, Status};
use isa::code::{Block, parse_hex};
use std::process::{Command, Output};

fn tool(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool")).args(args).output().unwrap()
}

fn measure(profiler: &mut Profiler, hex: &str) -> Report {
    let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
    profiler.measure(&block).unwrap()
}

/// `None` if the sandbox cannot run here at all.
fn profiler() -> Option<Profiler> {
    let mut profiler = Profiler::new(Options::default());
    let nop = Block::decode(&[0x90]).unwrap();
    match profiler.measure(&nop) {
        Ok(_) => Some(profiler),
        Err(error) => {
            eprintln!("skipped: no sandbox here: {error}");
            None
        }
    }
}

/// Tries until the tool says `ok`, at most ten times.
fn settled(profiler: &mut Profiler, hex: &str) -> Option<Report> {
    (0..10).map(|_| measure(profiler, hex)).find(|r| r.status == Status::Ok)
}

#[test]
fn an_ok_is_right_on_blocks_whose_throughput_is_known() {
    let Some(mut profiler) = profiler() else { return };
    // Latencies of dependent chains that all of AMD Zen and Intel since Haswell share (uops.info).
    let known = [
        ("4801d8 4801d8 4801d8 4801d8", 4.0), // 4 dependent add rax,rbx
        ("480fafc3", 3.0),                    // imul rax,rbx
        ("f2480f38f1c3", 3.0),                // crc32 rax,rbx
        ("4801d8 480fafc3", 4.0),             // add, imul on one register
    ];
    let mut judged = 0;
    for (hex, cycles) in known {
        let Some(report) = settled(&mut profiler, hex) else {
            eprintln!("skipped: {hex}: the core was never calm");
            continue;
        };
        let measured = report.throughput.unwrap().cycles;
        assert!((measured / cycles - 1.0).abs() < 0.05, "{hex}: {measured} for {cycles}");
        judged += 1;
    }
    eprintln!("{judged} of {} judged", known.len());
}

/// The report of a block that runs. What else runs may keep the worker from running for so long that
/// it is given up: then it is tried again.
fn ran(profiler: &mut Profiler, hex: &str) -> Report {
    let mut report = measure(profiler, hex);
    for _ in 0..4 {
        if report.reason.as_deref() != Some("another process took the core") {
            break;
        }
        report = measure(profiler, hex);
    }
    let ran = matches!(report.status, Status::Ok | Status::Unstable);
    assert!(ran, "{hex}: {:?} {:?}", report.reason, report.place);
    report
}

#[test]
fn every_address_a_block_touches_becomes_legal() {
    let Some(mut profiler) = profiler() else { return };
    for hex in [
        "488b00",                        // mov rax,[rax]: a pointer chain
        "64488b042528000000",            // mov rax,fs:[0x28]
        "488b0500100000 48890d00200000", // rip-relative load and store
        "50 5b",                         // push rax; pop rbx
        "4881c700100000 488b07",         // add rdi,4096; mov rax,[rdi]: a page a copy
        "c5fc5806",                      // vaddps ymm0,ymm0,[rsi]
        "4883c701 89d0 48c1ea08 3247ff 0fb6c0 483314c50a110400 4839cf", // gzip's updcrc
    ] {
        let report = ran(&mut profiler, hex);
        assert!(!report.pages.is_empty(), "{hex}");
    }
}

#[test]
fn a_block_runs_with_values_that_suit_it_and_registers_are_set_again_only_if_they_must() {
    let Some(mut profiler) = profiler() else { return };
    let own = |report: &Report| {
        report.invariants.iter().find(|i| i.name == "own-registers").map(|i| i.verdict)
    };
    for hex in [
        "0f284ef7 0f294ff0",           // movaps xmm1,[rsi-9]; movaps [rdi-16],xmm1
        "c5fc2845b0 c5fc299d50ffffff", // vmovaps around [rbp-0x50] and [rbp-0xb0]
        "49c1e603 4b8d0437 488b10",    // shl r14,3; lea rax,[r15+r14]; mov rdx,[rax]
        "31d2 48f7f1",                 // xor edx,edx; div rcx
        "8b0ced44617f01",              // mov ecx,[rbp*8+0x17f6144]
        "488b06 482b00 488b0cc7",      // an index from a difference of loaded values
        "480fa307",                    // bt [rdi],rax
        "d7",                          // xlatb
        "f3480fbdc1 f3a4",             // lzcnt rax,rcx; rep movsb
        "678b03",                      // mov eax,[ebx]
        "c8100000 c9",                 // enter 16,0; leave
    ] {
        let report = ran(&mut profiler, hex);
        assert_eq!(own(&report), Some(Holds::Held), "{hex}");
    }
    // mov rcx,[rax]; xor eax,eax: the next copy finds a null pointer whatever rax was.
    let report = measure(&mut profiler, "488b08 31c0");
    assert_eq!(own(&report), Some(Holds::Violated), "{:?}", report.reason);
}

#[test]
fn what_must_not_run_is_rejected_with_its_reason_and_status_1() {
    for (hex, word) in [("0f05", "kernel"), ("0f01d9", "hypervisor"), ("c3", "leave")] {
        let output = tool(&["block", hex]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{hex}");
        assert!(text.starts_with("rejected:") && text.contains(word), "{text}");
    }
    let output = tool(&["block", "48zz"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("try:"));
}

#[test]
fn the_json_document_has_what_its_schema_promises() {
    let Some(_) = profiler() else { return };
    let output = tool(&["block", "4801d8", "--quick", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "tdtool.block/1");
    assert_eq!(json["block"]["hex"], "4801d8");
    assert_eq!(json["block"]["instructions"][0]["text"], "add rax,rbx");
    for key in
        ["status", "reason", "throughput", "forms", "invariants", "bounds", "hierarchy", "samples"]
    {
        assert!(json.get(key).is_some(), "{key}");
    }
    let verdicts = ["held", "violated", "unchecked"];
    for invariant in json["invariants"].as_array().unwrap() {
        assert!(verdicts.contains(&invariant["verdict"].as_str().unwrap()), "{invariant}");
    }
}
