//! Tests with blocks that know where the harness is, which a block is never told: what protects
//! the next block then.

#![allow(clippy::unwrap_used)]

use super::sandbox::layout::{self as at, context, mail};
use super::{Measurement, Options, Profiler, Status};
use isa::code::{Block, parse_hex};
use std::time::Duration;

fn measure(profiler: &mut Profiler, hex: &str) -> Measurement {
    let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
    profiler.measure(&block).unwrap()
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
    let mut profiler =
        Profiler::new(Options { budget: Duration::from_millis(20), ..Options::quick() });
    let healthy = "488b03 4801c1 48890b"; // mov rax,[rbx]; add rcx,rax; mov [rbx],rcx
    let before = measure(&mut profiler, healthy);
    let ran =
        |measurement: &Measurement| matches!(measurement.status, Status::Ok | Status::Unstable);
    assert!(ran(&before), "{:?}", before.reason);
    for index in 0..blocks(0).len() {
        let region = profiler.region();
        let hex = &blocks(region)[index];
        measure(&mut profiler, hex);
        assert_ne!(profiler.region(), region, "{hex}: its worker goes on");
        let after = measure(&mut profiler, healthy);
        assert!(ran(&after), "after {hex}: {:?}", after.reason);
        assert_eq!((&after.pages, &after.values), (&before.pages, &before.values), "after {hex}");
    }
}
