//! Makes system calls in a stopped thread, as if by its program; restarts those that a stop interrupted (`unsafe`:
//! ptrace requests missing in nix).
//!
//! The thread is single-stepped over a `syscall`, and its registers are restored. A system call in which it was stopped
//! is restarted by the kernel as after any stop: its result and number are in registers (`rax`, `orig_rax`), and the last
//! stop is again one at which the kernel checks for signals. System calls do not change vector registers.

use super::memory::{Memory, mappings};
use nix::Result;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Stop, stop};
use std::time::{Duration, Instant};

/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Most bytes of the vdso searched.
const LONGEST_VDSO: usize = 64 << 10;
/// Most steps of one call, including the end of the call in which the thread was stopped.
const MOST_STEPS: usize = 16;
/// Time limit of a step, after which the thread is interrupted.
pub(super) const STEP: Duration = Duration::from_secs(2);
/// Time limit for the interrupted thread to stop.
const STOPPING: Duration = Duration::from_secs(20);
/// Lowest result that is an error (Linux, `MAX_ERRNO`).
const ERRORS: u64 = 4095_u64.wrapping_neg();
/// Blocked signals: all but that of the step.
pub(super) const ALL_BUT_TRAP: u64 = !(1 << (libc::SIGTRAP - 1));
/// Code segment of 64-bit code (Linux, `__USER_CS`).
pub(super) const LONG_MODE: u64 = 0x33;

/// Makes a system call in a stopped thread, and restores its registers and blocked signals.
///
/// # Errors
/// The error of the call; `EIO` if it could not be made; `ENOSYS` in 32-bit code.
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
    // No call is restarted.
    registers.orig_rax = u64::MAX;
    [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] =
        arguments;
    let blocked = mask(tid)?;
    let mut stops = Vec::new();
    let result =
        set_mask(tid, ALL_BUT_TRAP).and_then(|()| step(tid, leader, registers, &mut stops));
    // All this also after an error.
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
    /// The replaced bytes.
    replaced: Option<Vec<u8>>,
}

impl Place {
    /// The instruction before the thread's next one, one of the vdso, or else a replacement of the
    /// next one.
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

/// Steps over the `syscall` to which the registers point; its result, after the SIGTRAP of the
/// step. `stops` gets signals that cannot be blocked, to be sent again.
fn step(
    tid: i32,
    leader: i32,
    registers: libc::user_regs_struct,
    stops: &mut Vec<Signal>,
) -> Result<u64> {
    let pid = Pid::from_raw(tid);
    let (mut next, mut result) = (registers, None);
    for _ in 0..MOST_STEPS {
        // Again after the first step: the end of execve(2) changes rax.
        ptrace::setregs(pid, next)?;
        ptrace::step(pid, None)?;
        let stopped = stopped(tid, leader, STEP)?;
        let now = ptrace::getregs(pid)?;
        if result.is_none() && now.rip == registers.rip + SYSCALL.len() as u64 {
            result = Some(now.rax);
            // Until the SIGTRAP, which would end the program, has come: a call without effect.
            next.rax = libc::SYS_getpid.cast_unsigned();
        }
        match stopped {
            Stop::Signal(libc::SIGTRAP) if result.is_some() => return result.ok_or(Errno::EIO),
            // System calls from here are sent to a handler (PR_SET_SYSCALL_USER_DISPATCH).
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

/// The next stop of a running thread, by interruption after `most`, since registers can be restored
/// only of a stopped thread.
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

/// `ERESTARTNOHAND` (linux/errno.h).
const RESTART: i64 = 514;

/// `io_pgetevents`, missing in libc (asm/unistd_64.h).
const IO_PGETEVENTS: libc::c_long = 333;

/// Calls that return EINTR without any effect and may be made again.
const CALLS: [libc::c_long; 23] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    IO_PGETEVENTS,
    libc::SYS_io_uring_enter,
    // Sockets with a timeout (socket(7), SO_RCVTIMEO and SO_SNDTIMEO).
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendfile,
];

/// Has the kernel restart the system call in which a thread was stopped.
///
/// The kernel restarts most of them. Some return EINTR after any interruption, even a stop by ptrace or an ignored
/// signal (signal(7), "Interruption of system calls and library functions by stop signals"). While a thread is stopped in
/// the check for signals, the kernel has not yet evaluated the result: with ERESTARTNOHAND in its place it makes the call
/// again, unless a handler runs: then it returns EINTR.
pub fn restart(tid: i32) {
    let pid = Pid::from_raw(tid);
    let Ok(mut registers) = ptrace::getregs(pid) else { return };
    let is_interrupted = registers.rax.cast_signed() == i64::from(-libc::EINTR);
    // Outside of system calls `orig_rax` is -1.
    if is_interrupted && CALLS.contains(&registers.orig_rax.cast_signed()) {
        registers.rax = (-RESTART).cast_unsigned();
        // If this fails, the thread was killed.
        let _ = ptrace::setregs(pid, registers);
    }
}

/// `PTRACE_GETSIGMASK`, `PTRACE_SETSIGMASK` and `PTRACE_GET_RSEQ_CONFIGURATION` (linux/ptrace.h).
const GET_MASK: libc::c_uint = 0x420a;
const SET_MASK: libc::c_uint = 0x420b;
const GET_RSEQ: libc::c_uint = 0x420f;
/// Offset of `rseq_cs` in `struct rseq` (linux/rseq.h).
const SEQUENCE: u64 = 8;

/// The blocked signals of a stopped thread; in sigsuspend(2) and the like those blocked otherwise.
pub fn mask(tid: i32) -> Result<u64> {
    let mut mask = 0_u64;
    // SAFETY: the kernel writes as many bytes as the third argument says to where the last one points.
    let got = unsafe { libc::ptrace(GET_MASK, tid, size_of::<u64>(), &raw mut mask) };
    Errno::result(got).map(|_| mask)
}

/// Blocks these signals, and no others, in a stopped thread.
pub fn set_mask(tid: i32, mask: u64) -> Result<()> {
    // SAFETY: the kernel reads as many bytes as the third argument says from where the last one points.
    let got = unsafe { libc::ptrace(SET_MASK, tid, size_of::<u64>(), &raw const mask) };
    Errno::result(got).map(drop)
}

/// Whether a stopped thread may be inside a restartable sequence (rseq(2)): moved away and back, it
/// would continue where it must restart.
pub fn may_restart(tid: i32, memory: &Memory) -> bool {
    // struct ptrace_rseq_configuration: address of struct rseq, its size, and more.
    let mut configuration = [0_u64; 3];
    let length = size_of_val(&configuration);
    // SAFETY: the kernel writes at most as many bytes as the third argument says to the array.
    let got = unsafe { libc::ptrace(GET_RSEQ, tid, length, configuration.as_mut_ptr()) };
    if got < 0 || configuration[0] == 0 {
        // Not registered, or a kernel before 5.13, on which few allocators use it.
        return false;
    }
    memory.read(configuration[0] + SEQUENCE, 8) != [0; 8]
}
