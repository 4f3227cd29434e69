//! Tracing threads: their stops, and how they go on (ptrace(2)).
//!
//! By the kernel's own numbers: a stop at a signal that a library does not know (those that C
//! libraries keep for themselves) must not be lost, or the thread stands for ever.

use nix::errno::Errno;

/// Why a traced thread has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Before this signal is delivered.
    Signal(i32),
    /// By a breakpoint's event, at this address.
    Breakpoint(u64),
    /// It has made a task with this id, which is traced, too.
    Born(i32),
    /// It runs another program now.
    Exec,
    /// It was just begun to be traced.
    Begun,
    /// It stands still with its process until SIGCONT.
    Group,
    /// At a system call.
    Call,
    /// It has ended.
    Ended,
}

/// How a stopped thread goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Until something happens; with this signal, if not 0.
    On(i32),
    /// The same, or until the next system call begins or ends.
    ToCall(i32),
    /// Stays as it is until its process is continued.
    Listen,
}

/// `si_code` of a SIGTRAP by a perf event (include/uapi/asm-generic/siginfo.h).
const TRAP_PERF: i32 = 6;
/// `PTRACE_EVENT_STOP` (linux/ptrace.h).
const EVENT_STOP: i32 = 128;
/// Where `struct user` of x86-64 has the instruction pointer: the 17th register (sys/user.h).
const POINTER: usize = 16 * 8;

/// Begins to trace a process without stopping it, and whatever it makes.
///
/// # Errors
/// What the kernel answers; `ENOSYS` on processors whose registers are not known here.
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

/// Lets a stopped thread go on. One that was killed meanwhile has gone.
pub fn go(tid: i32, how: Go) {
    let (request, signal) = match how {
        Go::On(signal) => (libc::PTRACE_CONT, signal),
        Go::ToCall(signal) => (libc::PTRACE_SYSCALL, signal),
        Go::Listen => (libc::PTRACE_LISTEN, 0),
    };
    // SAFETY: these requests take numbers only.
    unsafe { libc::ptrace(request, tid, 0, libc::c_long::from(signal)) };
}

/// The stop or end of traced thread `tid`, if there is one to tell. The end of `keep` is left for
/// whoever waits for that process.
pub fn stop(tid: i32, keep: i32) -> Option<Stop> {
    // SAFETY: an all-zero siginfo is a valid value for the kernel to overwrite.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let ends = if tid == keep { 0 } else { libc::WEXITED };
    let options = libc::WSTOPPED | libc::WNOHANG | libc::__WALL | ends;
    let id = libc::id_t::try_from(tid).ok()?;
    // SAFETY: the pointer is valid for the call.
    let got = unsafe { libc::waitid(libc::P_PID, id, &mut info, options) };
    if got != 0 {
        // Somebody else has waited for it, or it is no child of ours any more.
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
        EVENT_STOP if signal == libc::SIGTRAP => Stop::Begun,
        EVENT_STOP => Stop::Group,
        libc::PTRACE_EVENT_EXEC => Stop::Exec,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            message(tid).map_or(Stop::Begun, Stop::Born)
        }
        0 if signal == libc::SIGTRAP | 0x80 => Stop::Call,
        0 if signal == libc::SIGTRAP && is_event(tid) => Stop::Breakpoint(pointer(tid)),
        _ => Stop::Signal(signal),
    }
}

fn message(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word to where the pointer points.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message) };
    (got == 0).then(|| i32::try_from(message).ok()).flatten()
}

/// Whether the SIGTRAP that a thread has stopped at is a perf event's.
fn is_event(tid: i32) -> bool {
    // SAFETY: an all-zero siginfo is a valid value for the kernel to overwrite.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one siginfo to where the pointer points.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info) };
    got == 0 && info.si_code == TRAP_PERF
}

/// Where a stopped thread goes on; 0, which is no code, if that cannot be told.
fn pointer(tid: i32) -> u64 {
    Errno::clear();
    // SAFETY: reads a word of the tracee's registers; its address is a number here.
    let word = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, tid, POINTER, 0) };
    if Errno::last_raw() == 0 { word as u64 } else { 0 }
}

/// Traces a thread no longer; what it would have stopped for must have been taken away before.
pub fn release(tid: i32) {
    const MOST_LOOKS: u32 = 200;
    const LOOK: std::time::Duration = std::time::Duration::from_micros(500);
    // SAFETY: this request takes numbers only.
    unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0) };
    for _ in 0..MOST_LOOKS {
        let signal = match stop(tid, 0) {
            None => {
                std::thread::sleep(LOOK);
                continue;
            }
            Some(Stop::Ended) => return,
            Some(Stop::Signal(signal)) => signal,
            Some(_) => 0,
        };
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, 0, libc::c_long::from(signal)) };
        return;
    }
}
