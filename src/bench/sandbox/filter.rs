//! The system-call filter, assembled by hand: which call, from which instruction, with which
//! arguments. Everything else kills the process.
//!
//! Addresses are compared in both halves. The instruction pointer is the one *after* `syscall`.
//! `rt_sigreturn` is not among the calls: handlers never return.

use super::layout::{self as at, PAGE, USER_TOP};
use super::runtime::{Entry, offset};

/// One instruction as the kernel takes it: code, jump if true, jump if false, constant.
pub type Instruction = (u16, u8, u8, u32);

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const KILL: u32 = 0x8000_0000; // SECCOMP_RET_KILL_PROCESS
const ALLOW: u32 = 0x7fff_0000;
const ARCH_X86_64: u32 = 0xc000_003e;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const INSTRUCTION_POINTER: u32 = 8;
const fn argument(n: u32) -> u32 {
    16 + 8 * n
}

/// The calls that the runtime makes.
const FUTEX: u32 = libc::SYS_futex as u32;
const MREMAP: u32 = libc::SYS_mremap as u32;
const MUNMAP: u32 = libc::SYS_munmap as u32;

/// A condition on one field.
enum Check {
    /// The 32-bit field has this value.
    Is(u32, u32),
    /// The 64-bit field has this value.
    Is64(u32, u64),
    /// The 64-bit field lies in this range, which crosses no multiple of 2³².
    Within(u32, u64, u64),
    /// The 64-bit field lies outside this range.
    Outside(u32, u64, u64),
}

/// The filter for a worker whose region starts at `base`.
pub fn program(base: u64) -> Vec<Instruction> {
    let region = (base, base + at::SIZE as u64);
    let mailbox = base + at::MAIL as u64;
    let physical = base + at::PHYSICAL as u64;
    let site = |entry| Check::Is64(INSTRUCTION_POINTER, base + offset(entry) as u64);
    let futex = |entry, operation| {
        vec![
            Check::Is(NUMBER, FUTEX),
            site(entry),
            Check::Is64(argument(0), mailbox),
            Check::Is64(argument(1), operation),
            Check::Is64(argument(3), 0),
        ]
    };
    let unmap_all = |entry, from: u64, to: u64| {
        vec![
            Check::Is(NUMBER, MUNMAP),
            site(entry),
            Check::Is64(argument(0), from),
            Check::Is64(argument(1), to - from),
        ]
    };
    let rules = [
        futex(Entry::AfterWait, 0),
        futex(Entry::AfterWake, 1),
        vec![
            Check::Is(NUMBER, MREMAP),
            site(Entry::AfterMap),
            Check::Within(argument(0), physical, base + at::SIZE as u64),
            Check::Is64(argument(1), 0),
            Check::Is64(argument(2), PAGE as u64),
            Check::Is64(argument(3), 3),
            Check::Outside(argument(4), region.0, region.1),
        ],
        vec![
            Check::Is(NUMBER, MUNMAP),
            site(Entry::AfterUnmap),
            Check::Outside(argument(0), region.0, region.1),
            Check::Is64(argument(1), PAGE as u64),
        ],
        unmap_all(Entry::AfterBelow, 0, region.0),
        unmap_all(Entry::AfterAbove, region.1, USER_TOP),
    ];
    let mut code = vec![(LOAD, 0, 0, ARCH), (JUMP_EQUAL, 1, 0, ARCH_X86_64), (RETURN, 0, 0, KILL)];
    for rule in &rules {
        code.extend(assembled(rule));
    }
    code.push((RETURN, 0, 0, KILL));
    code
}

/// One rule: allows if every check holds, else falls through to the next.
fn assembled(rule: &[Check]) -> Vec<Instruction> {
    /// Stands for the distance to the rule's end until that is known.
    const FAIL: u8 = 255;
    let mut code = Vec::new();
    let halves = |v: u64| (v as u32, (v >> 32) as u32);
    for check in rule {
        match *check {
            Check::Is(field, value) => {
                code.extend([(LOAD, 0, 0, field), (JUMP_EQUAL, 0, FAIL, value)]);
            }
            Check::Is64(field, value) => {
                let (low, high) = halves(value);
                code.extend([(LOAD, 0, 0, field), (JUMP_EQUAL, 0, FAIL, low)]);
                code.extend([(LOAD, 0, 0, field + 4), (JUMP_EQUAL, 0, FAIL, high)]);
            }
            Check::Within(field, from, to) => {
                let ((from, high), (to, _)) = (halves(from), halves(to));
                code.extend([(LOAD, 0, 0, field + 4), (JUMP_EQUAL, 0, FAIL, high)]);
                code.extend([(LOAD, 0, 0, field), (JUMP_AT_LEAST, 0, FAIL, from)]);
                code.push((JUMP_AT_LEAST, FAIL, 0, to));
            }
            Check::Outside(field, from, to) => {
                let ((from, high), (to, _)) = (halves(from), halves(to));
                code.extend([(LOAD, 0, 0, field + 4), (JUMP_EQUAL, 0, 3, high)]);
                code.extend([(LOAD, 0, 0, field), (JUMP_AT_LEAST, 1, 0, to)]);
                code.push((JUMP_AT_LEAST, FAIL, 0, from));
            }
        }
    }
    code.push((RETURN, 0, 0, ALLOW));
    let end = code.len();
    for (i, (_, yes, no, _)) in code.iter_mut().enumerate() {
        for target in [yes, no] {
            if *target == FAIL {
                *target = (end - i - 1) as u8;
            }
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x2345_6000_0000;

    /// The kernel's decision, by an interpreter of the four instructions used.
    fn verdict(number: u32, pointer: u64, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(ARCH_X86_64.to_le_bytes());
        data.extend(pointer.to_le_bytes());
        arguments.iter().for_each(|a| data.extend(a.to_le_bytes()));
        let (mut at, mut value) = (0, 0);
        let program = program(BASE);
        loop {
            let (code, yes, no, k) = program[at];
            at += 1;
            let jump = match code {
                LOAD => {
                    let k = k as usize;
                    value = u32::from_le_bytes(data[k..k + 4].try_into().unwrap());
                    0
                }
                JUMP_EQUAL => [no, yes][usize::from(value == k)],
                JUMP_AT_LEAST => [no, yes][usize::from(value >= k)],
                _ => return k,
            };
            at += usize::from(jump);
        }
    }

    #[test]
    fn only_the_harness_s_own_calls_with_their_own_arguments_pass() {
        let mailbox = BASE + at::MAIL as u64;
        let site = |entry| BASE + offset(entry) as u64;
        let wait = site(Entry::AfterWait);
        assert_eq!(verdict(202, wait, [mailbox, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(verdict(202, wait - 2, [mailbox, 0, 0, 0, 0, 0]), KILL);
        assert_eq!(verdict(202, wait + (1 << 32), [mailbox, 0, 0, 0, 0, 0]), KILL);
        assert_eq!(verdict(202, wait, [mailbox + (1 << 32), 0, 0, 0, 0, 0]), KILL);
        assert_eq!(verdict(202, wait, [mailbox, 5, 0, 0, 0, 0]), KILL);
        let map = site(Entry::AfterMap);
        let physical = BASE + at::PHYSICAL as u64;
        assert_eq!(verdict(25, map, [physical, 0, 4096, 3, 0x1234_5000, 0]), ALLOW);
        assert_eq!(verdict(25, map, [physical, 4096, 4096, 3, 0x1234_5000, 0]), KILL);
        assert_eq!(verdict(25, map, [physical, 0, 4096, 3, BASE + 0x1000, 0]), KILL);
        assert_eq!(verdict(25, map, [BASE, 0, 4096, 3, 0x1234_5000, 0]), KILL);
        let unmap = site(Entry::AfterUnmap);
        assert_eq!(verdict(11, unmap, [0x1234_5000, 4096, 0, 0, 0, 0]), ALLOW);
        assert_eq!(verdict(11, unmap, [BASE, 4096, 0, 0, 0, 0]), KILL);
        let below = site(Entry::AfterBelow);
        assert_eq!(verdict(11, below, [0, BASE, 0, 0, 0, 0]), ALLOW);
        assert_eq!(verdict(11, below, [0, BASE + 4096, 0, 0, 0, 0]), KILL);
        let (above, end) = (site(Entry::AfterAbove), BASE + at::SIZE as u64);
        assert_eq!(verdict(11, above, [end, USER_TOP - end, 0, 0, 0, 0]), ALLOW);
        assert_eq!(verdict(11, above, [BASE, USER_TOP - end, 0, 0, 0, 0]), KILL);
        assert_eq!(verdict(11, unmap, [0, BASE, 0, 0, 0, 0]), KILL);
        for number in [0, 1, 2, 15, 39, 57, 59, 60, 62, 231, 0x4000_0000 + 202] {
            assert_eq!(verdict(number, wait, [mailbox, 0, 0, 0, 0, 0]), KILL, "{number}");
        }
    }

    #[test]
    fn the_filter_fits_its_room() {
        assert!(program(BASE).len() <= at::mail::FILTER_MAX);
    }
}
