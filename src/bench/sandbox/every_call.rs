//! Tests every system call on the running kernel: from a block's code, in all three ways to call, and from each of
//! the harness's own instructions with the arguments that it uses.

use super::layout::{self as at, mail};
use super::runtime::{Entry, offset};
use super::{Ended, Worker, random, return_offset};
use std::time::Duration;

/// Numbers to test: of x86-64 (to 472 in Linux 6.19), and of x32 where they differ.
fn numbers() -> impl Iterator<Item = u32> {
    (0..480).chain(512..548)
}

/// Calls that would be worth most: files, memory, processes, signals, limits, other processes' memory, io_uring.
const WORTH_MOST: [u32; 40] = [
    0, 1, 2, 3, 9, 10, 11, 12, 13, 14, 15, 16, 25, 28, 35, 41, 56, 57, 58, 59, 60, 62, 101, 157,
    158, 160, 186, 202, 231, 234, 257, 272, 298, 310, 311, 317, 322, 329, 425, 462,
];
/// Bit that marks x32 numbers.
const X32: u32 = 0x4000_0000;
/// Where a block's code is.
const PLACE: usize = at::CODE + 0x3000;
/// Where the harness maps a page, say.
const PAGE: u64 = 0x1234_5000;
/// A call that passes goes on at once, or for ever; where a processor is shared, being killed takes long, too.
const LIMITS: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(2)];

const SYSCALL: [u8; 2] = [0x0f, 0x05];
const INT_80: [u8; 2] = [0xcd, 0x80];

/// Calls that the kernel itself exempts from every filter: `uretprobe` since Linux 6.14, `uprobe` since 6.18. Outside
/// the kernel's own trampoline the one raises SIGILL and the other returns an error (arch/x86/kernel/uprobes.c).
const EXEMPT: [u32; 2] = [335, 336];

/// The end of a worker that runs `code` in the place of a block, followed by a jump to the harness at offset `to`.
fn ends(code: &[u8], to: usize, limit: Duration, worker: &mut Worker) -> Ended {
    let behind = PLACE + code.len() + 5;
    let jump = (to as i64 - behind as i64) as i32;
    worker.write(PLACE, &[code, &[0xe9], &jump.to_le_bytes()].concat());
    worker.put64(at::MAIL + mail::SEGMENTS, worker.base() + PLACE as u64);
    worker.put32(at::SCHEDULE, 1 << 16);
    worker.put32(at::MAIL + mail::COUNT, 1);
    worker.command(mail::RUN, limit)
}

/// Runs `code`, made for the region's address, in a new worker; with a longer limit if it does not end.
fn ends_in_new_worker(code: &dyn Fn(u64) -> (Vec<u8>, usize)) -> (Ended, Worker) {
    let attempt = |limit| {
        let mut worker = Worker::start_with(false, None, false, random()).unwrap();
        let (code, to) = code(worker.base());
        (ends(&code, to, limit, &mut worker), worker)
    };
    match attempt(LIMITS[0]) {
        (Ended::TimedOut, _) => attempt(LIMITS[1]),
        other => other,
    }
}

/// Sets rax, rdi, rsi, rdx, r10, r8, r9, r12.
fn registers(number: u32, [rdi, rsi, rdx, r10, r8, r9]: [u64; 6], r12: u64) -> Vec<u8> {
    let set = [(0x48, 0xbf, rdi), (0x48, 0xbe, rsi), (0x48, 0xba, rdx), (0x49, 0xba, r10)];
    let more = [(0x49, 0xb8, r8), (0x49, 0xb9, r9), (0x49, 0xbc, r12)];
    let mut code = vec![0xb8];
    code.extend(number.to_le_bytes());
    for (rex, opcode, value) in set.into_iter().chain(more) {
        code.extend([rex, opcode]);
        code.extend(value.to_le_bytes());
    }
    code
}

fn is_killed(ended: &Ended) -> bool {
    matches!(ended, Ended::Died(how) if how == "stopped by the system-call filter")
}

/// Whether an exempt call was refused on its own: with SIGILL, or ENXIO.
fn does_nothing(ended: &Ended, worker: &Worker) -> bool {
    match ended {
        Ended::Fault(fault) => fault.signal == libc::SIGILL,
        Ended::Done => worker.get64(at::TRACE) as i64 == -i64::from(libc::ENXIO),
        _ => false,
    }
}

/// From a block, nothing passes: no number, way to call or argument.
#[test]
fn no_call_passes_from_where_blocks_are() {
    let mut passed = Vec::new();
    let mut attempt = |what: String, number: u32, arguments: [u64; 6], call: &[u8]| {
        let mut code = [registers(number, arguments, 0), call.to_vec()].concat();
        let result = at::TRACE as i64 - (PLACE + code.len() + 7) as i64;
        code.extend([0x48, 0x89, 0x05]); // mov [rip+x],rax
        code.extend((result as i32).to_le_bytes());
        let (ended, worker) = ends_in_new_worker(&|_| (code.clone(), return_offset()));
        // A kernel without 32-bit emulation has no such gate.
        let is_no_gate = call == INT_80 && matches!(ended, Ended::Fault(_));
        let is_exempt =
            call == SYSCALL && EXEMPT.contains(&number) && does_nothing(&ended, &worker);
        if !is_killed(&ended) && !is_no_gate && !is_exempt {
            passed.push(format!("{what} {number:#x}: {ended:?}"));
        }
    };
    for number in numbers().chain([u32::MAX, u32::MAX - 37]) {
        attempt("syscall".to_owned(), number, [0; 6], &SYSCALL);
        attempt("syscall, x32".to_owned(), number | X32, [0; 6], &SYSCALL);
        attempt("int 0x80".to_owned(), number, [0; 6], &INT_80);
    }
    // The page of old system calls, which some kernels emulate: gettimeofday, time, getcpu.
    for entry in [0x00, 0x400, 0x800] {
        let mut code = vec![0x48, 0xb8];
        code.extend((0xffff_ffff_ff60_0000_u64 + entry).to_le_bytes());
        code.extend([0xff, 0xd0]); // call rax
        let (ended, _) = ends_in_new_worker(&|_| (code.clone(), return_offset()));
        if !is_killed(&ended) && !matches!(ended, Ended::Fault(_)) {
            passed.push(format!("vsyscall {entry:#x}: {ended:?}"));
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
}

/// A call of the harness: where, its number, its arguments, and r12 for what follows.
type Site = (Entry, u32, [u64; 6], u64);

/// The design: four calls from six instructions. By hand, not from the filter.
fn design(base: u64) -> [Site; 6] {
    let (mailbox, end) = (base + at::MAIL as u64, base + at::SIZE as u64);
    let top = 0x7fff_ffff_f000;
    [
        (Entry::AfterWait, 202, [mailbox, 0, 7, 0, 0, 0], 0), // futex, not equal: returns at once
        (Entry::AfterWake, 202, [mailbox, 1, 1, 0, 0, 0], 0),
        (Entry::AfterMap, 25, [base + at::PHYSICAL as u64, 0, 4096, 3, PAGE, 0], PAGE),
        (Entry::AfterUnmap, 11, [PAGE, 4096, 0, 0, 0, 0], 0),
        (Entry::AfterBelow, 11, [0, base, 0, 0, 0, 0], 0),
        (Entry::AfterAbove, 11, [end, top - end, 0, 0, 0, 0], 0),
    ]
}

/// From the harness's own instructions, which a block might jump to, only its own calls pass, with its own
/// arguments.
#[test]
fn from_the_harness_s_instructions_only_its_own_calls_pass() {
    let attempt = |site: usize, change: &dyn Fn(&mut Site)| {
        let code = |base: u64| {
            let mut call = design(base)[site];
            change(&mut call);
            let (entry, number, arguments, r12) = call;
            // The instruction before that address.
            (registers(number, arguments, r12), offset(entry) - 2)
        };
        !is_killed(&ends_in_new_worker(&code).0)
    };
    for site in 0..6 {
        let (entry, own, ..) = design(0)[site];
        let all: Vec<u32> =
            if entry == Entry::AfterMap { numbers().collect() } else { WORTH_MOST.into() };
        let passed: Vec<u32> = all
            .into_iter()
            .chain([X32 + 11, X32 + 25, X32 + 202])
            .filter(|number| !EXEMPT.contains(number))
            .filter(|number| attempt(site, &|call| call.1 = *number))
            .collect();
        assert_eq!(passed, [own], "{entry:?}");
    }
    // The calls for other memory: the word after the mailbox's, code, the region, a page of its own.
    assert!(!attempt(0, &|call| call.2[0] += 4));
    assert!(!attempt(1, &|call| call.2[1] = 5)); // FUTEX_WAKE_OP writes a second word
    assert!(!attempt(2, &|call| call.2[0] -= at::PHYSICAL as u64)); // the code, mapped a second time
    assert!(!attempt(2, &|call| call.2[4] = call.2[0])); // over the region
    assert!(!attempt(3, &|call| call.2[1] = 8192)); // two pages
    assert!(!attempt(4, &|call| call.2[1] += 4096));
    assert!(!attempt(5, &|call| call.2[0] -= 4096));
}
