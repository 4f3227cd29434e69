//! System calls in a stopped thread, as if its program had made them.

use super::memory::Memory;
use nix::Result;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Stop, stop};
use std::time::{Duration, Instant};

/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Steps that one call may take: the end of the call it is stopped in, and itself.
const MOST_STEPS: usize = 16;
/// So long a step may take.
const STEP: Duration = Duration::from_secs(2);
/// Results from here on are errors (Linux, `MAX_ERRNO`).
const ERRORS: u64 = 4095_u64.wrapping_neg();

/// Makes a system call in a thread that is stopped after its own call or after exec, and leaves its
/// registers as they were.
pub fn call(tid: i32, leader: i32, number: u64, arguments: [u64; 6]) -> Result<u64> {
    let pid = Pid::from_raw(tid);
    let before = ptrace::getregs(pid)?;
    let memory = Memory::open(tid).map_err(|_| Errno::EIO)?;
    // The thread's own `syscall`, if it is after one; else one in the place of what comes next.
    let own = before.rip.wrapping_sub(2);
    let place = if memory.read(own, 2) == SYSCALL { own } else { before.rip };
    let replaced = memory.read(place, 2);
    if place != own {
        memory.write_all(place, &SYSCALL).map_err(|_| Errno::EIO)?;
    }
    let mut registers = before;
    registers.rip = place;
    registers.rax = number;
    // No call to be restarted.
    registers.orig_rax = u64::MAX;
    [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] =
        arguments;
    let result = step(tid, leader, registers);
    if place != own {
        memory.write_all(place, &replaced).map_err(|_| Errno::EIO)?;
    }
    ptrace::setregs(pid, before)?;
    match result? {
        error if error >= ERRORS => Err(Errno::from_raw(error.wrapping_neg() as i32)),
        value => Ok(value),
    }
}

/// Steps over the `syscall` at which the registers point; its result. Other signals come later.
fn step(tid: i32, leader: i32, registers: libc::user_regs_struct) -> Result<u64> {
    let pid = Pid::from_raw(tid);
    for _ in 0..MOST_STEPS {
        // Again after the first step: the end of exec puts its own result into rax.
        ptrace::setregs(pid, registers)?;
        ptrace::step(pid, None)?;
        let begin = Instant::now();
        let stopped = loop {
            match stop(tid, leader) {
                Some(stopped) => break stopped,
                None if begin.elapsed() > STEP => return Err(Errno::ETIMEDOUT),
                None => std::thread::yield_now(),
            }
        };
        match stopped {
            Stop::Ended => return Err(Errno::ESRCH),
            Stop::Signal(signal) if signal != libc::SIGTRAP => {
                if let Ok(signal) = Signal::try_from(signal) {
                    kill(pid, signal)?;
                }
            }
            _ => {}
        }
        let now = ptrace::getregs(pid)?;
        if now.rip == registers.rip + SYSCALL.len() as u64 {
            return Ok(now.rax);
        }
    }
    Err(Errno::EIO)
}
