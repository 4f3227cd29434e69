//! A live process before it is traced, and the processes that share its memory (`unsafe`: kcmp(2), missing in nix);
//! the beginning of tracing, and why it is refused.

use super::memory::{Memory, signals, stat, status};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::{Pid, gettid};
use pmu::perf::Signals;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tma::{Error, Result};

/// Most polls of an ending thread, and poll interval.
const MOST_POLLS: usize = 200;
const POLL: Duration = Duration::from_millis(1);

/// Stops requested by every tracer: new tasks, executed programs, system calls.
pub const TASKS: Options = Options::PTRACE_O_TRACEEXEC
    .union(Options::PTRACE_O_TRACECLONE)
    .union(Options::PTRACE_O_TRACEFORK)
    .union(Options::PTRACE_O_TRACEVFORK)
    .union(Options::PTRACE_O_TRACESYSGOOD);

/// Begins to trace a thread without stopping it.
///
/// # Errors
/// As of ptrace(2): it has ended, is traced by another, or may not be traced.
pub fn seize(tid: i32, options: Options) -> nix::Result<()> {
    ptrace::seize(Pid::from_raw(tid), options)
}

/// The error that `what` cannot be traced.
pub fn refused(what: &str, tid: i32, errno: Errno) -> Error {
    let error = Error::not_possible(format!("cannot trace {what}"));
    match (tracer(tid), errno) {
        (Some(tracer), _) => error
            .because(format!("process {tracer} traces it: a debugger, strace or itself"))
            .hint("end that first"),
        (None, Errno::EPERM | Errno::EACCES) => error.because(errno.desc()).hint(remedy()),
        (None, _) => error.because(errno.desc()),
    }
}

/// The tracer of a thread.
pub fn tracer(tid: i32) -> Option<i32> {
    status(tid, "TracerPid:").filter(|pid| *pid != 0)
}

/// The tracer of a thread, after waiting for ending threads of our own, which then detach.
pub fn other_tracer(tid: i32) -> Option<i32> {
    let is_own = |tracer: &i32| Path::new(&format!("/proc/self/task/{tracer}")).exists();
    for _ in 0..MOST_POLLS {
        match tracer(tid).filter(|tracer| is_own(tracer) && *tracer != gettid().as_raw()) {
            Some(_) => std::thread::sleep(POLL),
            None => break,
        }
    }
    tracer(tid)
}

/// How to permit ptrace(2) here (ptrace(2), "/proc/sys/kernel/yama/ptrace_scope").
fn remedy() -> &'static str {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "3" => "kernel.yama.ptrace_scope is 3: no process may be traced until the next boot",
        "2" => "kernel.yama.ptrace_scope is 2: run as root, or sysctl kernel.yama.ptrace_scope=1",
        "1" => {
            "kernel.yama.ptrace_scope is 1: a process that runs already is traced by root only, or \
             after sysctl kernel.yama.ptrace_scope=0"
        }
        _ => {
            "ptrace(2) must be permitted: one's own process that is not setuid, and in a container \
             --cap-add SYS_PTRACE or a seccomp profile that allows it"
        }
    }
}

/// A live process.
#[derive(Debug, Clone, Copy)]
pub struct Living {
    /// Its number.
    pub pid: i32,
    /// Start time: the number may be reused.
    started: u64,
    /// Whether it is a child of this process, which awaits its end, and whose signals are for it, too.
    is_child: bool,
}

impl Living {
    /// Finds the process with this number, if it may be traced.
    ///
    /// # Errors
    /// There is none, or it may not be traced.
    pub fn find(pid: i32, is_child: bool) -> Result<Self> {
        let none = || Error::failed(format!("there is no process {pid}"));
        let living = Self { pid, started: started(pid).ok_or_else(none)?, is_child };
        let tid = living.thread().ok_or_else(none)?;
        let refused = |errno| refused(&format!("process {pid}"), tid, errno);
        if other_tracer(tid).is_some() {
            return Err(refused(Errno::EPERM));
        }
        // Access to its memory needs the same permission as tracing (proc_pid_mem(5)).
        match Memory::open(tid).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0))) {
            Err(errno @ (Errno::EPERM | Errno::EACCES)) => Err(refused(errno)),
            Err(_) => Err(none()),
            Ok(_) => Ok(living),
        }
    }

    /// The process whose end is awaited elsewhere; 0 if there is none.
    pub fn leader(&self) -> i32 {
        if self.is_child { self.pid } else { 0 }
    }

    /// A signal that ends a window, passed on to a child.
    pub fn signal(&self, signals: &Signals) -> Option<i32> {
        match self.is_child {
            true => signals.forward(self.pid),
            false => signals.next().map(|(signal, _)| signal),
        }
    }

    /// A thread that has not ended; the first may have.
    pub fn thread(&self) -> Option<i32> {
        if started(self.pid) != Some(self.started) {
            return None;
        }
        threads(self.pid).into_iter().find(|tid| !has_ended(*tid))
    }

    /// Waits until our tracing thread has left it.
    pub fn settle(&self) {
        for tid in threads(self.pid) {
            other_tracer(tid);
        }
    }

    /// The error when it has ended meanwhile.
    pub fn ended(&self, meanwhile: &str) -> Error {
        Error::failed(format!("process {} has ended {meanwhile}", self.pid))
            .because("nothing of it was counted")
    }
}

/// The threads of a process.
pub fn threads(pid: i32) -> Vec<i32> {
    let all = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The start time of a process.
fn started(pid: i32) -> Option<u64> {
    stat(pid, 22)?.parse().ok()
}

/// The state of a thread.
pub fn state(tid: i32) -> Option<char> {
    stat(tid, 3)?.chars().next()
}

/// Whether a thread is gone or a zombie.
pub fn has_ended(tid: i32) -> bool {
    matches!(state(tid), None | Some('Z' | 'X'))
}

/// The address to which a thread that waits in the kernel will return (proc_pid_syscall(5)).
pub fn pointer(tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    u64::from_str_radix(text.split_whitespace().last()?.strip_prefix("0x")?, 16).ok()
}

/// Signals by which programs take a processor from their own threads, as Go does, and go on with interrupted code long
/// after the handler: timers, SIGURG, SIGIO, SIGUSR1 and SIGUSR2, real-time signals but glibc's own two.
const SWITCHING: u64 =
    bit(10) | bit(12) | bit(14) | bit(23) | bit(26) | bit(27) | bit(29) | !0 << 33;

/// The bit of a signal in a mask of proc_pid_status(5).
const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Whether a thread may return to code that a signal interrupted: it catches one of [`SWITCHING`], or blocks one that is
/// caught, as during its handler (unless that has SA_NODEFER).
pub fn handles(tid: i32) -> bool {
    let masks = signals(tid, "SigBlk:").zip(signals(tid, "SigCgt:"));
    masks.is_none_or(|(blocked, caught)| caught & (blocked | SWITCHING) != 0)
}

/// `KCMP_VM` (linux/kcmp.h).
const KCMP_VM: libc::c_long = 1;

/// Other processes that share the memory of thread `tid` of `process` (`CLONE_VM` without
/// `CLONE_THREAD`).
pub fn sharers(tid: i32, process: i32) -> Vec<i32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Without kcmp(2), equal mappings may be shared.
    match shares(tid, tid) {
        true => others.filter(|other| *other != process && shares(tid, *other)).collect(),
        false => {
            let own = maps(tid);
            let might = |other: &i32| *other != process && maps(*other) == own;
            if own.is_empty() { Vec::new() } else { others.filter(might).collect() }
        }
    }
}

fn maps(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/maps")).unwrap_or_default()
}

/// Whether two processes share their memory; false if unknown.
pub fn shares(one: i32, other: i32) -> bool {
    // SAFETY: this system call takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) };
    order == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SigSet, Signal};

    /// Rust's runtime catches SIGBUS.
    #[test]
    fn a_thread_that_blocks_a_caught_signal_may_be_in_its_handler() {
        let blocked = std::thread::spawn(|| {
            let before = handles(gettid().as_raw());
            SigSet::from(Signal::SIGBUS).thread_block().unwrap();
            (before, handles(gettid().as_raw()))
        });
        assert_eq!(blocked.join().unwrap(), (false, true));
    }
}
