//! System calls in a stopped thread, as if its program had made them.
//!
//! The thread is single-stepped over a `syscall` and given back all of its registers. If it was stopped
//! inside a system call of its own, that one is restarted by the kernel as after any stop: result and
//! number of the call are among the registers (`rax`, `orig_rax`), and the last stop is again one at
//! which the kernel looks for signals. Vector registers are not touched by system calls.

use super::maps::mappings;
use super::memory::Memory;
use super::signals::{mask, set_mask};
use nix::Result;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Stop, stop};
use std::time::{Duration, Instant};

/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Longest vdso that is searched.
const LONGEST_VDSO: usize = 64 << 10;
/// Steps that one call may take: the end of the call it is stopped in, and itself.
const MOST_STEPS: usize = 16;
/// So long a step may take before the thread is asked to stop.
pub(super) const STEP: Duration = Duration::from_secs(2);
/// So long it may take to stop then.
const STOPPING: Duration = Duration::from_secs(20);
/// Results from here on are errors (Linux, `MAX_ERRNO`).
const ERRORS: u64 = 4095_u64.wrapping_neg();
/// Signals come later, but for the one of the step.
pub(super) const ALL_BUT_TRAP: u64 = !(1 << (libc::SIGTRAP - 1));
/// Code segment of 64-bit code (Linux, `__USER_CS`).
pub(super) const LONG_MODE: u64 = 0x33;

/// Makes a system call in a stopped thread, and leaves its registers and blocked signals as they were.
///
/// # Errors
/// That of the call; `EIO` if it could not be made; `ENOSYS` in 32-bit code.
pub fn call(
    tid: i32,
    leader: i32,
    memory: &Memory,
    number: u64,
    arguments: [u64; 6],
) -> Result<u64> {
    let pid = Pid::from_raw(tid);
    let before = ptrace::getregs(pid)?;
    if before.cs != LONG_MODE {
        return Err(Errno::ENOSYS);
    }
    let place = Place::find(tid, memory, before.rip)?;
    let mut registers = before;
    registers.rip = place.address;
    registers.rax = number;
    // No call to be restarted.
    registers.orig_rax = u64::MAX;
    [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] =
        arguments;
    let blocked = mask(tid)?;
    let mut stops = Vec::new();
    let result =
        set_mask(tid, ALL_BUT_TRAP).and_then(|()| step(tid, leader, registers, &mut stops));
    // All of this also after an error.
    let code = place.restore(memory);
    let restored = ptrace::setregs(pid, before);
    let unblocked = set_mask(tid, blocked);
    for signal in stops {
        let _ = kill(pid, signal);
    }
    let result = result?;
    code.and(restored).and(unblocked)?;
    match result {
        error if error >= ERRORS => Err(Errno::from_raw(error.wrapping_neg() as i32)),
        value => Ok(value),
    }
}

/// A `syscall` instruction.
struct Place {
    address: u64,
    /// What was there before.
    replaced: Option<Vec<u8>>,
}

impl Place {
    /// The thread's own, if it is after one; one of the vdso; else one in the place of what comes next.
    fn find(tid: i32, memory: &Memory, pointer: u64) -> Result<Self> {
        let own = pointer.wrapping_sub(SYSCALL.len() as u64);
        if memory.read(own, SYSCALL.len()) == SYSCALL {
            return Ok(Self { address: own, replaced: None });
        }
        if let Some(vdso) = mappings(tid).iter().find(|m| m.path == "[vdso]") {
            let bytes = memory.read(vdso.start, LONGEST_VDSO.min((vdso.end - vdso.start) as usize));
            if let Some(at) = bytes.windows(SYSCALL.len()).position(|two| two == SYSCALL) {
                return Ok(Self { address: vdso.start + at as u64, replaced: None });
            }
        }
        let replaced = memory.read(pointer, SYSCALL.len());
        if replaced.len() != SYSCALL.len() {
            return Err(Errno::EIO);
        }
        memory.write_all(pointer, &SYSCALL).map_err(|_| Errno::EIO)?;
        Ok(Self { address: pointer, replaced: Some(replaced) })
    }

    fn restore(&self, memory: &Memory) -> Result<()> {
        let Some(replaced) = &self.replaced else { return Ok(()) };
        memory.write_all(self.address, replaced).map_err(|_| Errno::EIO)
    }
}

/// Steps over the `syscall` at which the registers point; its result, after the SIGTRAP of the step.
/// `stops` are signals that cannot be blocked, to be sent again.
fn step(
    tid: i32,
    leader: i32,
    registers: libc::user_regs_struct,
    stops: &mut Vec<Signal>,
) -> Result<u64> {
    let pid = Pid::from_raw(tid);
    let (mut next, mut result) = (registers, None);
    for _ in 0..MOST_STEPS {
        // Again after the first step: the end of exec puts its own result into rax.
        ptrace::setregs(pid, next)?;
        ptrace::step(pid, None)?;
        let stopped = stopped(tid, leader, STEP)?;
        let now = ptrace::getregs(pid)?;
        if result.is_none() && now.rip == registers.rip + SYSCALL.len() as u64 {
            result = Some(now.rax);
            // Until the SIGTRAP has come, which would end the program: a call without effect.
            next.rax = libc::SYS_getpid.cast_unsigned();
        }
        match stopped {
            Stop::Signal(libc::SIGTRAP) if result.is_some() => return result.ok_or(Errno::EIO),
            // System calls of this place go to a handler (PR_SET_SYSCALL_USER_DISPATCH).
            Stop::Signal(libc::SIGSYS) => return Err(Errno::EPERM),
            Stop::Signal(libc::SIGSEGV | libc::SIGBUS | libc::SIGILL) => return Err(Errno::EIO),
            Stop::Signal(signal) if signal != libc::SIGTRAP => {
                stops.extend(Signal::try_from(signal).ok());
            }
            _ => {}
        }
    }
    Err(Errno::EIO)
}

/// The next stop of a thread that runs: one that it is asked for if there is none for so long, since only of a
/// stopped thread registers can be put back.
pub(super) fn stopped(tid: i32, leader: i32, most: Duration) -> Result<Stop> {
    let begin = Instant::now();
    let mut is_asked = false;
    loop {
        match stop(tid, leader) {
            Some(Stop::Ended) => return Err(Errno::ESRCH),
            Some(stopped) => return Ok(stopped),
            None if begin.elapsed() > most + STOPPING => return Err(Errno::ETIMEDOUT),
            None if begin.elapsed() > most && !is_asked => {
                is_asked = true;
                ptrace::interrupt(Pid::from_raw(tid))?;
            }
            None => std::thread::yield_now(),
        }
    }
}
