//! Tests with blocks that know or find out where the harness is: protection of the next block.

#![allow(clippy::unwrap_used)]

use super::sandbox::layout as at;
use super::sandbox::layout::{context, mail};
use super::{BlockMeasurer, Measurement, Options, Status};
use crate::runner::MOST_STOPPED;
use isa::code::{Block, parse_hex};
use std::time::Duration;

fn measure(measurer: &mut BlockMeasurer, hex: &str) -> Measurement {
    let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
    measurer.measure(&block).unwrap()
}

/// `mov rax, address`, and then something.
fn at_address(address: u64, then: &str) -> String {
    let bytes: String = address.to_le_bytes().iter().map(|b| format!("{b:02x}")).collect();
    format!("48b8{bytes} {then}")
}

/// Offsets of what the worker writes.
const WRITABLE: [usize; 14] = [
    at::CONTEXT_PAGE,
    at::CONTEXT,
    at::CONTEXT + context::REGISTERS,
    at::CONTEXT + context::REPEAT,
    at::LINES,
    at::TRACE,
    at::STACK_TOP - 16,
    at::SIGNAL_STACK,
    at::SIGNAL_STACK + at::SIGNAL_STACK_SIZE - 64,
    at::MAIL,
    at::MAIL + mail::SEGMENTS,
    at::SCHEDULE,
    at::TICKS,
    at::PAGES,
];

fn blocks(region: u64) -> Vec<String> {
    let fill = "4889c7 b900200000 4831c0 48f7d0 f3aa"; // rdi=rax; 8192 bytes of ff
    let spot = |offset: usize, then: &str| at_address(region + offset as u64, then);
    let mut all = Vec::new();
    for offset in WRITABLE {
        for then in [
            "48c70000000000",         // mov qword [rax],0
            "31c9 48890831c9 488b09", // the same, then a fault
            fill,
            "4889c4 31c9 488b09", // rsp there, then a fault
            "4889c4 50 50 53",    // rsp there, and pushes
        ] {
            all.push(spot(offset, then));
        }
    }
    let pages = at::MAIL + mail::PAGE_COUNT;
    all.extend([
        spot(at::RUNTIME, "48c70000000000"),     // code, read-only to it
        spot(at::CODE, fill),                    // the clock
        spot(at::CODE + 0x3000, "c700909090cc"), // itself
        spot(at::PHYSICAL, fill),                // the pages behind its own
        // The list of pages made empty after a page was mapped, without and with a fault.
        spot(pages, "488b0b c70000000000"),
        spot(pages, "488b0b c70000000000 31c9 488b09"),
        spot(pages, "488b0b c700ffffffff"),
        // No physical page at all.
        spot(at::MAIL + mail::PHYSICAL_COUNT, "c70000000000 488b09"),
        // The state set to idle, as if done, and then a very long run.
        spot(at::MAIL, "c70000000000 4889e7 48c7c1ffffffff f3aa"),
        // Vector and implicit accesses.
        spot(at::MAIL, "c5f576c9 c4e2752e00"), // vmaskmovps [rax],ymm1,ymm0
        spot(at::MAIL, "4889c7 660f76c9 660ff7c1"), // maskmovdqu [rdi]
        spot(at::MAIL, "480fc318 660fe700 0f0d08"), // movnti, movntdq, prefetchw
        spot(at::MAIL, "4889c3 31c0 d7"),      // xlatb
        spot(at::MAIL, "4889c7 fd b908000000 f3aa fc"), // rep stosb downwards
        spot(at::MAIL - 0x1000, "bb00800000 480fab18"), // bts [rax],rbx: a bit in the mailbox
        spot(at::STACK_TOP - 128, "dd30"),     // fnsave
    ]);
    all
}

#[test]
fn a_block_that_overwrites_the_harness_is_not_reported_and_harms_no_other() {
    let mut measurer =
        BlockMeasurer::new(Options { budget: Duration::from_millis(20), ..Options::quick() });
    let healthy = "488b03 4801c1 48890b"; // mov rax,[rbx]; add rcx,rax; mov [rbx],rcx
    let before = measure(&mut measurer, healthy);
    let ran =
        |measurement: &Measurement| matches!(measurement.status, Status::Ok | Status::Unstable);
    assert!(ran(&before), "{:?}", before.reason);
    for index in 0..blocks(0).len() {
        let region = measurer.region();
        let hex = &blocks(region)[index];
        measure(&mut measurer, hex);
        assert_ne!(measurer.region(), region, "{hex}: its worker goes on");
        let after = measure(&mut measurer, healthy);
        assert!(ran(&after), "after {hex}: {:?}", after.reason);
        assert_eq!((&after.pages, &after.values), (&before.pages, &before.values), "after {hex}");
    }
}

/// A block that finds the harness, zeroes the initial memory of the next block, hides its own accesses from the
/// trace, and leaves everything else unchanged. `first` is the first word of the harness's code.
fn forger(first: u32) -> String {
    let word =
        |value: u32| -> String { value.to_le_bytes().iter().map(|b| format!("{b:02x}")).collect() };
    let at = |offset: usize| word(offset as u32);
    // mov eax,[rdx]; cmp eax,first; lea rcx,[rdx-0x1000]; cmovne rdx,rcx
    let page_before = format!("8b02 3d{} 488d8a00f0ffff 480f45d1 ", word(first));
    [
        "bb00000200",                             // mov ebx,0x20000: its own page
        "d9e1 d933",                              // fabs; fnstenv [rbx]: where fabs was, low half
        "488d0500000000",                         // lea rax,[rip]: high half
        "8b4b0c 48c1e820 48c1e020",               // mov ecx,[rbx+12]; shr rax,32; shl rax,32
        "488d1408 4881e200f0ffff", // lea rdx,[rax+rcx]; and rdx,-4096: a page of code
        "31c0 488903 48894308 48894310 48894318", // the environment overwritten: it differs between runs
        &page_before.repeat(64),                  // back to the first page
        &format!("c782{}01000000", at(at::IMAGE_COUNT)),
        &format!("48c782{}00503412", at(at::IMAGE_PAGES)), // 0x12345000
        &format!("488dba{} b800000200 b900100000 f348ab", at(at::TRACE)), // the trace: 0x20000
    ]
    .join(" ")
}

/// A hostile row of a batch has to find the harness itself.
#[test]
fn a_block_that_finds_the_harness_falsifies_no_later_block() {
    let mut measurer =
        BlockMeasurer::new(Options { budget: Duration::from_millis(20), ..Options::quick() });
    // mov rcx,[rbx]; mov rdx,[rcx]: needs the initial memory.
    let victim = "488b0b 488b11";
    let before = measure(&mut measurer, victim);
    assert!(matches!(before.status, Status::Ok | Status::Unstable), "{:?}", before.reason);
    for _ in 0..3 {
        let first = measurer.timer.runner.worker().unwrap().get32(at::RUNTIME);
        let own = measure(&mut measurer, &forger(first));
        eprintln!("the forger: {} {:?}", own.status.word(), own.reason);
        let after = measure(&mut measurer, victim);
        assert_eq!((&after.pages, &after.values), (&before.pages, &before.values));
        assert!(matches!(after.status, Status::Ok | Status::Unstable), "{:?}", after.reason);
    }
}

/// A block that can learn an address is its worker's last; the others share a worker, up to a limit.
#[test]
fn workers_are_shared_by_blocks_that_can_learn_nothing_and_not_for_ever() {
    // A worker that the watchdog stops, or that makes the self-test, is replaced, too.
    let budget = Duration::from_millis(1);
    let mut measurer = BlockMeasurer::new(Options { sentinel: false, budget, ..Options::quick() });
    let mut shares = |hex: &str, before: u32| {
        (0..5).any(|_| {
            measure(&mut measurer, "4801d8");
            measurer.timer.runner.blocks = before;
            let started = measurer.timer.runner.started;
            measure(&mut measurer, hex);
            measurer.region();
            measurer.timer.runner.started == started
        })
    };
    assert!(shares("4801d8", 1) && shares("488b03", 1));
    assert!(!shares("4801d8", 1000));
    for hex in ["0f31", "0f01f9", "d933", "488d0500000000"] {
        assert!(!shares(hex, 1), "{hex}");
    }
}

/// Other initial values may end a run that the watchdog stopped, but hundreds of them are not tried.
#[test]
fn a_block_that_does_not_end_costs_few_runs_and_one_whose_time_is_up_none() {
    let mut measurer =
        BlockMeasurer::new(Options { budget: Duration::from_millis(1), ..Options::quick() });
    for hex in ["48c7c1ffffffff f3ac", "fd 48c7c1ffffffff f3ac"] {
        let before = measurer.timer.runner.timeouts;
        let endless = measure(&mut measurer, hex); // rep lodsb, up and down
        assert_eq!(endless.status, Status::Failed, "{hex}");
        let stopped = measurer.timer.runner.timeouts - before;
        assert!(stopped <= 2 * MOST_STOPPED, "{hex}: {stopped} runs stopped");
    }
    measurer.set_end(Some(std::time::Instant::now()));
    let late = measure(&mut measurer, "4801d8");
    // Not for anything that it did.
    assert_eq!(late.status, Status::Unstable);
    assert!(late.reason.unwrap().contains("time was up"));
    measurer.set_end(None);
    assert!(matches!(measure(&mut measurer, "4801d8").status, Status::Ok | Status::Unstable));
}
