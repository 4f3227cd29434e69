//! Traces threads: their stops, and resuming them (ptrace(2)).
//!
//! Uses the kernel's numbers directly: a stop at a signal that a wrapper library does not know (those
//! reserved by C libraries) must not be lost, or the thread never continues.

use nix::errno::Errno;

/// Why a traced thread has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Before this signal is delivered.
    Signal(i32),
    /// It has created a task with this id, which is traced, too.
    Created(i32),
    /// It has executed another program.
    Exec,
    /// Tracing has begun.
    Attached,
    /// Its process is stopped until SIGCONT.
    GroupStop,
    /// At the entry or exit of a system call.
    SystemCall,
    /// It is about to end; its memory is still there. Only where asked for.
    Ending,
    /// It has ended.
    Ended,
}

/// How a stopped thread continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// To its next stop; with this signal if not 0.
    Continue(i32),
    /// To its next stop or system call; with this signal if not 0.
    ToSystemCall(i32),
    /// Not before its process is continued.
    Listen,
}

/// `PTRACE_EVENT_STOP` (linux/ptrace.h).
const EVENT_STOP: i32 = 128;

/// Begins to trace a process, without stopping it, and all tasks that it creates.
///
/// # Errors
/// The kernel's answer; `ENOSYS` on processors other than x86-64.
pub fn seize(pid: i32) -> Result<(), Errno> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(Errno::ENOSYS);
    }
    let options = libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACESYSGOOD;
    // SAFETY: this request takes numbers only.
    Errno::result(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, options) }).map(drop)
}

/// Resumes a stopped thread; does nothing if it was killed meanwhile.
pub fn resume(tid: i32, how: Resume) {
    let (request, signal) = match how {
        Resume::Continue(signal) => (libc::PTRACE_CONT, signal),
        Resume::ToSystemCall(signal) => (libc::PTRACE_SYSCALL, signal),
        Resume::Listen => (libc::PTRACE_LISTEN, 0),
    };
    // SAFETY: these requests take numbers only.
    unsafe { libc::ptrace(request, tid, 0, libc::c_long::from(signal)) };
}

/// The stop or end of traced thread `tid`, if it has not been reported yet. The end of `leader` is
/// left to the owner of that child process.
pub fn stop(tid: i32, leader: i32) -> Option<Stop> {
    // SAFETY: an all-zero siginfo is a valid value for the kernel to overwrite.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let ends = if tid == leader { 0 } else { libc::WEXITED };
    let options = libc::WSTOPPED | libc::WNOHANG | libc::__WALL | ends;
    let id = libc::id_t::try_from(tid).ok()?;
    // SAFETY: the pointer is valid for the call.
    let got = unsafe { libc::waitid(libc::P_PID, id, &mut info, options) };
    if got != 0 {
        // It has been waited for elsewhere, or is no child of this process.
        return (Errno::last() == Errno::ECHILD).then_some(Stop::Ended);
    }
    // SAFETY: waitid filled it, or left it zero.
    if unsafe { info.si_pid() } != tid {
        return None;
    }
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    match info.si_code {
        libc::CLD_TRAPPED | libc::CLD_STOPPED => Some(kind(tid, status)),
        _ => Some(Stop::Ended),
    }
}

fn kind(tid: i32, status: i32) -> Stop {
    let (signal, event) = (status & 0xff, status >> 8);
    match event {
        EVENT_STOP if signal == libc::SIGTRAP => Stop::Attached,
        EVENT_STOP => Stop::GroupStop,
        libc::PTRACE_EVENT_EXEC => Stop::Exec,
        libc::PTRACE_EVENT_EXIT => Stop::Ending,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            message(tid).map_or(Stop::Attached, Stop::Created)
        }
        0 if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
        _ => Stop::Signal(signal),
    }
}

fn message(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word to where the pointer points.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message) };
    (got == 0).then(|| i32::try_from(message).ok()).flatten()
}

/// Ends tracing a thread, and a task that it has just created; its breakpoints must have been removed
/// before; the end of `leader` is left to its owner. False if it has not stopped in 100 ms, and so is still traced.
pub fn release(tid: i32, leader: i32) -> bool {
    const MOST_POLLS: u32 = 200;
    const POLL: std::time::Duration = std::time::Duration::from_micros(500);
    // SAFETY: this request takes numbers only.
    unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0) };
    for _ in 0..MOST_POLLS {
        let (signal, child) = match stop(tid, leader) {
            None => {
                std::thread::sleep(POLL);
                continue;
            }
            Some(Stop::Ended) => return true,
            Some(Stop::Signal(signal)) => (signal, None),
            Some(Stop::Created(child)) => (0, Some(child)),
            Some(_) => (0, None),
        };
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, 0, libc::c_long::from(signal)) };
        // It is traced, too, and stops at its first instruction.
        return child.is_none_or(|child| release(child, leader));
    }
    false
}
