//! Restraints that a worker puts on itself before its own code, and the raw system calls for them. Each restraint
//! is set, read back, and entered in the mailbox, where the runner reads it before any block runs. Between the fork
//! and the worker's own code nothing else may be called.

use super::layout::{self as at, mail};
use crate::layers::Layer::{self, Limit, Other};
use Restraint as R;
use std::arch::asm;

/// Resource limits: no files, no processes, no cores, no locked memory, and little memory at all.
const LIMITS: [(Restraint, u32, u64); 7] = [
    // 1, not 0: that also keeps the kernel from starting a core handler (Linux, fs/coredump.c).
    (R::CoreFiles, libc::RLIMIT_CORE, 1),
    (R::FileSizes, libc::RLIMIT_FSIZE, 0),
    (R::OpenFiles, libc::RLIMIT_NOFILE, 0),
    (R::Processes, libc::RLIMIT_NPROC, 0),
    (R::LockedMemory, libc::RLIMIT_MEMLOCK, 0),
    (R::Stack, libc::RLIMIT_STACK, 0),
    (R::AddressSpace, libc::RLIMIT_AS, (at::SIZE + 2 * at::PAGES_MAX * at::PAGE) as u64),
];

/// The exceptions that a block can raise.
pub const EXCEPTIONS: [i32; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// A restraint, in the order of the mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restraint {
    Session,
    EndsWithParent,
    NoNewPrivileges,
    NotInspectable,
    CoreFiles,
    FileSizes,
    OpenFiles,
    Processes,
    LockedMemory,
    Stack,
    AddressSpace,
    Signals,
    Descriptors,
}

impl Restraint {
    /// All restraints, with the layers that users read.
    pub const ALL: [(Self, Layer); 13] = [
        (R::Session, Other("session of its own")),
        (R::EndsWithParent, Other("end with tdtool")),
        (R::NoNewPrivileges, Other("no new privileges")),
        (R::NotInspectable, Other("not inspectable by other processes")),
        (R::CoreFiles, Limit("core files")),
        (R::FileSizes, Limit("file sizes")),
        (R::OpenFiles, Limit("open files")),
        (R::Processes, Limit("processes")),
        (R::LockedMemory, Limit("locked memory")),
        (R::Stack, Limit("the stack")),
        (R::AddressSpace, Limit("memory")),
        (R::Signals, Other("signals blocked")),
        (R::Descriptors, Other("no descriptors")),
    ];

    /// Its place in the mailbox.
    pub fn place(self) -> usize {
        at::MAIL + mail::RESTRAINTS + 4 * self as usize
    }
}

/// Enters how it went: `held`, an error of the kernel, or that it reads back otherwise.
///
/// # Safety
/// Only in the worker, whose region lies at `base`.
unsafe fn enter(base: u64, restraint: Restraint, held: bool, result: i64) {
    let outcome = match (held, result) {
        (true, _) => mail::HELD,
        (false, error) if error < 0 => error as i32,
        (false, _) => mail::READS_OTHERWISE,
    };
    // SAFETY: inside the region's data, which is mapped by then, and aligned.
    unsafe { ((base as usize + restraint.place()) as *mut i32).write_volatile(outcome) };
}

/// Restrains the process as far as that takes no descriptor away; blocks all signals but exceptions.
///
/// # Safety
/// Only in the worker, whose region lies at `base`.
pub unsafe fn restrain(base: u64, inspect: bool) {
    // SAFETY: this process is ours alone; pointers are to live locals of the kernel's layout.
    unsafe {
        let session = call(libc::SYS_setsid, [0; 6]);
        enter(base, R::Session, call(libc::SYS_getsid, [0; 6]) == session, session);
        let set = prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
        let mut signal = 0i32;
        prctl(libc::PR_GET_PDEATHSIG, &raw mut signal as u64);
        enter(base, R::EndsWithParent, signal == libc::SIGKILL, set);
        let set = prctl(libc::PR_SET_NO_NEW_PRIVS, 1);
        enter(base, R::NoNewPrivileges, prctl(libc::PR_GET_NO_NEW_PRIVS, 0) == 1, set);
        // perf_event_open(2) asks for the right to inspect, which takes a dumpable process. No core is
        // written all the same.
        let set = prctl(libc::PR_SET_DUMPABLE, u64::from(inspect));
        enter(base, R::NotInspectable, prctl(libc::PR_GET_DUMPABLE, 0) == 0, set);
        for (restraint, what, most) in LIMITS {
            let (limit, mut now) = ([most, most], [u64::MAX; 2]);
            let (limit, read) = (limit.as_ptr() as u64, now.as_mut_ptr() as u64);
            let set = call(libc::SYS_setrlimit, [u64::from(what), limit, 0, 0, 0, 0]);
            call(libc::SYS_getrlimit, [u64::from(what), read, 0, 0, 0, 0]);
            // A limit of the user's that is lower stays, and holds.
            enter(base, restraint, now[1] <= most, set);
        }
        let (blocked, mut now) = (blocked(), 0u64);
        let (mask, read) = (&raw const blocked as u64, &raw mut now as u64);
        let how = libc::SIG_SETMASK as u64;
        let set = call(libc::SYS_rt_sigprocmask, [how, mask, 0, 8, 0, 0]);
        call(libc::SYS_rt_sigprocmask, [how, 0, read, 8, 0, 0]);
        // The kernel never blocks these two.
        let never = bit(libc::SIGKILL) | bit(libc::SIGSTOP);
        enter(base, R::Signals, now | never == blocked | never, set);
    }
}

/// Every signal but exceptions.
fn blocked() -> u64 {
    EXCEPTIONS.iter().fold(!0, |all, signal| all & !bit(*signal))
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Closes every descriptor, the `region`'s too.
///
/// # Safety
/// Only in the worker, whose region lies at `base`.
pub unsafe fn close_all(base: u64, region: i32) {
    // SAFETY: this process is ours alone and uses no descriptor any more.
    unsafe {
        let set = call(libc::SYS_close_range, [0, u64::from(u32::MAX), 0, 0, 0, 0]);
        if set != 0 {
            for descriptor in 0..65536 {
                call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]);
            }
        }
        let open =
            |file: i32| call(libc::SYS_fcntl, [file as u64, libc::F_GETFD as u64, 0, 0, 0, 0]) >= 0;
        enter(base, R::Descriptors, ![0, 1, 2, region].into_iter().any(open), set);
    }
}

/// A system call as the kernel takes it; the result is negative on an error.
///
/// # Safety
/// As dangerous as the call itself: pointers must be valid for what the kernel does with them.
pub unsafe fn call(number: i64, arguments: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the register interface of the kernel; rcx and r11 are the ones it clobbers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0], in("rsi") arguments[1], in("rdx") arguments[2],
            in("r10") arguments[3], in("r8") arguments[4], in("r9") arguments[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// # Safety
/// Only with options that take a plain number, or the address of a live `i32` to write to.
pub unsafe fn prctl(option: i32, value: u64) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { call(libc::SYS_prctl, [option as u64, value, 0, 0, 0, 0]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_restraint_has_a_place_of_its_own_and_a_name() {
        for (i, (restraint, name)) in Restraint::ALL.iter().enumerate() {
            assert_eq!(restraint.place(), at::MAIL + mail::RESTRAINTS + 4 * i, "{name}");
            assert!(restraint.place() + 4 <= at::MAIL + mail::SEGMENTS, "{name}");
        }
    }
}
