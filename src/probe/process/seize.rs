//! Begins tracing, and explains refusals.

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::{Pid, gettid};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tma::Error;

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
    let error = Error::not_possible(format!("cannot trace {what}")).because(errno.desc());
    if let Some(tracer) = tracer(tid) {
        return Error::not_possible(format!("cannot trace {what}"))
            .because(format!("process {tracer} traces it: a debugger, strace or itself"))
            .hint("end that first");
    }
    match errno {
        Errno::EPERM | Errno::EACCES => error.hint(remedy()),
        _ => error,
    }
}

/// The tracer of a thread.
pub fn tracer(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    tracer.trim().parse().ok().filter(|pid| *pid != 0)
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
