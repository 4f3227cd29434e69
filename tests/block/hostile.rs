//! Blocks that mean harm: each may lose its own measurement and nothing else.
//!
//! After every one of them a healthy block must have the same status and the same pages as before,
//! and the same throughput where the tool vouches for both.

use super::{command, measure, measured, sandbox};
use crate::support::files::Folder;
use crate::support::random::Random;
use crate::support::run::run;
use bench::{Measurement, Options, Profiler, Status};
use isa::code::Block;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gettid};
use proptest::prelude::*;
use std::cell::RefCell;
use std::fs;
use std::time::Duration;

const HEALTHY: &str = "488b03 4801c1 48890b"; // mov rax,[rbx]; add rcx,rax; mov [rbx],rcx

/// Screening that waits for nothing.
pub fn impatient() -> Profiler {
    Profiler::new(Options { budget: Duration::from_millis(20), ..Options::quick() })
}

/// The report of the healthy block before anything hostile.
pub fn healthy(profiler: &mut Profiler) -> Measurement {
    measured(profiler, HEALTHY)
}

/// What must be the same after a hostile block as before it. A busy machine may stop the search for
/// initial values early or make a time unstable: each is tried three times.
pub fn assert_healthy(profiler: &mut Profiler, before: &Measurement, hostile: &str) {
    let mut seen = Vec::new();
    let is_same = (0..3).any(|_| {
        let after = healthy(profiler);
        let same = (&after.pages, &after.values) == (&before.pages, &before.values);
        seen.push((after.pages, after.values));
        same
    });
    assert!(is_same, "after {hostile}: {seen:?}, before {:?}", (&before.pages, &before.values));
    // imul rax,rbx: 3 cycles on AMD Zen and on Intel since Haswell (uops.info).
    let times = (0..3).map(|_| measured(profiler, "480fafc3"));
    let times: Vec<f64> = times
        .filter(|known| known.status == Status::Ok)
        .filter_map(|known| known.throughput.map(|t| t.cycles))
        .collect();
    let is_right = times.iter().any(|cycles| (cycles / 3.0 - 1.0).abs() < 0.05);
    assert!(is_right || times.is_empty(), "after {hostile}: imul rax,rbx takes {times:?} cycles");
}

#[test]
fn a_hostile_block_loses_its_own_measurement_and_nothing_else() {
    let Some(_busy) = sandbox() else { return };
    let mut profiler = impatient();
    let before = healthy(&mut profiler);
    assert_eq!(before.pages.len(), 1);
    for hex in HOSTILE {
        let report = measure(&mut profiler, hex);
        eprintln!("{:8} {hex}: {:?}", report.status.word(), report.reason);
        assert_ne!(report.status, Status::Rejected, "{hex}: never ran");
        assert_healthy(&mut profiler, &before, hex);
    }
    // More than the harness has room for: twice, or at all.
    for size in [50_000, 90_000, 200_000, 300_000] {
        profiler.measure(&Block::decode(&vec![0x90; size]).unwrap()).unwrap();
        assert_healthy(&mut profiler, &before, "a very long block");
    }
}

/// Passed by the decoder, and hostile all the same.
const HOSTILE: [&str; 49] = [
    "48b900ac682400000080 4829c1 488b11", // an address 2^63 away from any that may be
    "31c0 488b00",                        // null pointer
    "48b80000000000008000 488b00",        // not canonical
    "48c7c0ffffffff 488b00",              // the kernel's half
    "48b80000000000600000 488b00",        // the middle of nowhere
    "31c9 f7f9",                          // division by zero
    "48b80000000000000080 4899 48c7c1ffffffff 48f7f9", // the quotient overflows
    "48b9ffffffffffff0000 f3aa",          // rep stosb over all addresses
    "fd 48b9ffffffffffff0000 f3a4",       // backwards
    "48c7c1ffffffff f3ac",                // rep lodsb
    "48c7c1ffffffff 31c0 f3ae",           // repe scasb
    "31e4 50",                            // no stack
    "48bc0000000000008000 50",            // a stack that is not canonical
    "48c7c456341200 58 c9 c9",            // a stack at an odd place; leave twice
    "c8ffff1f",                           // enter with 31 frames
    "50 53 51 52 56 57 4881ec00100000",   // pushes, a page further each time
    "50505050505050505050505050505050",   // pushes
    "0fae10",                             // ldmxcsr: reserved bits or unmasked
    "c74424fc00000000 0fae5424fc 0f57c0 0f5ec0", // MXCSR unmasked, then 0/0
    "c74424fc00000000 0fae5424fc",        // MXCSR left unmasked
    "d928",                               // fldcw: unmasked
    "d92b dbe2 d9ee d9e8 def1 9b",        // unmasked x87 division by zero
    "66c74424fe4003 d96c24fe d9ee d9e8 d8f1", // the same, pending at the block's end
    "dd20 9b",                            // frstor of whatever is there
    "d920 d9e8 9b",                       // fldenv
    "dd30 488b480c 488b11",               // fnsave, then its pointer as an address
    "d9e8d9e8d9e8d9e8d9e8d9e8d9e8d9e8d9e8", // an x87 stack that overflows
    "0f77",                               // emms
    "62f17c48580500000000",               // AVX-512, which may be missing
    "c4e27d180500000000",                 // vbroadcastss ymm0,[rip]
    "9c 58 480d00000400 50",              // an alignment flag, never loaded
    "9c 810c2400010000",                  // a trap flag, never loaded
    "fd",                                 // direction flag left set
    "f00fc1433e",                         // lock xadd across a line
    "87433e",                             // xchg across a line
    "f0480fc74808",                       // lock cmpxchg16b, misaligned
    "6448890425000000006548890425f8ffffff 64488918", // around and far from fs and gs
    "64488b0425 00000080",                // below fs
    "b80f050000 48bb050f050f050f050f",    // system calls in immediate values
    "0f31 488b08",                        // an address out of the clock
    "480fab18 48bbffffffffffffff7f 480fab18", // bts far away
    "d7 48c7c3ffffffff d7",               // xlatb far away
    "c5fd76c0c5f576c9 c4e27590 14c0",     // a gather around its base
    "480f38f003 0f38f14302",              // movbe
    "678b0500000000 678b03",              // 32-bit addresses
    "488720 488b1c24",                    // xchg with rsp
    "b80f050000 ebfa",                    // jumps to one: goes to the next byte
    "48b80000000000700000 488900",        // some library's address
    "48b8000060ffffffffff 488b00",        // the vsyscall page
];

#[test]
fn a_worker_killed_from_outside_is_replaced() {
    let Some(_busy) = sandbox() else { return };
    let mut profiler = impatient();
    let before = healthy(&mut profiler);
    let thread = gettid();
    let list = format!("/proc/self/task/{thread}/children");
    let Ok(children) = fs::read_to_string(list) else { return };
    let mut killed = 0;
    for child in children.split_whitespace() {
        let child = Pid::from_raw(child.parse().unwrap());
        kill(child, Signal::SIGKILL).unwrap();
        killed += 1;
    }
    assert_eq!(killed, 1, "one worker a thread");
    // The block at hand may be lost; none after it is.
    measure(&mut profiler, HEALTHY);
    assert_healthy(&mut profiler, &before, "a kill");
}

#[test]
fn a_batch_of_random_bytes_leaves_no_trace_on_its_healthy_rows_or_its_folder() {
    let Some(_busy) = sandbox() else { return };
    let folder = Folder::new();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut rows = String::from("hex\n");
    for _ in 0..40 {
        let (bytes, size) = (random.next().to_le_bytes(), 2 + random.below(7) as usize);
        rows += &bytes[..size].iter().map(|b| format!("{b:02x}")).collect::<String>();
        rows += "\n488b034801c148890b\n";
    }
    folder.write("in.csv", rows);
    let batch = ["--quick", "--budget", "50", "--batch", "in.csv", "-o", "out.csv"];
    run(command(batch).current_dir(folder.path())).succeeded();
    let out = folder.read("out.csv");
    let healthy: Vec<_> = out.lines().filter(|l| l.starts_with("488b034801c148890b,")).collect();
    assert_eq!(healthy.len(), 40);
    for row in healthy {
        let status = row.split(',').nth(1).unwrap();
        assert!(matches!(status, "ok" | "unstable") && row.ends_with(",1"), "{row}");
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["in.csv", "out.csv"]);
}

/// Whatever the bytes are, the host process gets an answer, and so does the next block.
#[test]
fn random_bytes_never_harm_the_host_or_the_next_block() {
    let Some(_busy) = sandbox() else { return };
    let mut profiler = impatient();
    let before = healthy(&mut profiler);
    let profiler = RefCell::new(profiler);
    let bytes = proptest::collection::vec(any::<u8>(), 1..24);
    proptest!(ProptestConfig::with_cases(64), |(bytes in bytes)| {
        if let Ok(block) = Block::decode(&bytes) {
            let mut profiler = profiler.borrow_mut();
            profiler.measure(&block).unwrap();
            assert_healthy(&mut profiler, &before, &block.hex());
        }
    });
}
