//! Starts a command in two steps: fork and wait, so that its events can be opened, then exec.
//!
//! A failed exec is reported through a pipe that a successful exec closes, so "not found" and "not
//! executable" are errors of their own and not exit status 127 of the command.

use super::signals::ENDING;
use crate::kernel::Usage;
use crate::{Command, Exit, Input, Stdout};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};
use nix::unistd::{Pid, pipe2};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tma::error::{Error, ErrorKind, Result};

/// A child process: waiting, running or ended.
pub struct Child {
    /// Its process id.
    pub pid: i32,
    /// Becomes readable when it ends; `None` before Linux 5.3.
    pub pidfd: Option<OwnedFd>,
    go: Option<OwnedFd>,
    failure: OwnedFd,
    name: OsString,
    ended: Option<Ending>,
    /// The previous action of SIGCHLD, if it was changed.
    sigchld: Option<SigAction>,
}

/// Why the program `name` cannot be executed, as execvp(3) reports it.
pub fn cannot_start(name: &OsStr, errno: Errno) -> Error {
    let is_path = name.as_bytes().contains(&b'/');
    let kind = match errno {
        Errno::ENOENT => ErrorKind::CommandNotFound,
        _ => ErrorKind::CommandNotExecutable,
    };
    let error = Error::failed(format!("cannot start {}", name.display())).because(errno.desc());
    let error = match errno {
        Errno::ENOENT if is_path => {
            error.hint("check the path, and the interpreter named in the first line of a script")
        }
        Errno::ENOENT => error.hint("no such program in PATH; give its path, as in ./program"),
        // execvp(3): some folder of PATH cannot be searched, and no other has it.
        Errno::EACCES if !is_path => error
            .because("no program of this name that may be run is in PATH")
            .hint("give its path, as in ./program; some folders of PATH cannot be searched"),
        Errno::EACCES if Path::new(name).is_dir() => {
            error.because("it is a directory").hint("give a program")
        }
        Errno::EACCES => error.hint("chmod +x makes a file executable"),
        Errno::ENOEXEC => error.hint("a script needs a first line such as #!/bin/sh"),
        _ => error,
    };
    error.of_kind(kind)
}

/// How a child ended and its usage; `None` if another thread has waited for it.
type Ending = Option<(Exit, Usage)>;

impl Child {
    /// Forks; the child waits for [`Child::start`].
    pub fn prepare(command: &Command) -> Result<Self> {
        let name = command.argv.first().cloned().unwrap_or_default();
        let failed =
            |e: Errno| Error::failed(format!("cannot start {}", name.display())).because(e.desc());
        let (wait, go) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
        let (failure, report) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
        let argv: std::result::Result<Vec<CString>, _> =
            command.argv.iter().map(|a| CString::new(a.as_bytes())).collect();
        let argv =
            argv.map_err(|_| Error::usage("an argument of the command contains a zero byte"))?;
        let file = command.file.as_deref().map(Path::as_os_str).unwrap_or(&name);
        let file = CString::new(file.as_bytes())
            .map_err(|_| Error::usage("the path of the program contains a zero byte"))?;
        let mut pointers: Vec<*const libc::c_char> = argv.iter().map(|a| a.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let stdin = command.stdin.as_ref().map(Input::next).transpose()?.flatten();
        let dropped = (command.stdout == Stdout::Dropped && !is_null(libc::STDOUT_FILENO))
            .then(discarding)
            .transpose()
            .map_err(|e| Error::failed(format!("cannot start {}", name.display())).because(e))?;
        let sigchld = default_sigchld();
        // Until exec the child has this process's signal handlers and their pipe: signals are blocked.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed)?;
        let mut mask_of_command = mask;
        // The program blocks these: a file at its size limit is an error, and stopping gives the terminal back before.
        for own in [Signal::SIGXFSZ, Signal::SIGTSTP, Signal::SIGCONT] {
            mask_of_command.remove(own);
        }
        let plan = Plan {
            file: file.as_ptr(),
            argv: &pointers,
            wait: wait.as_raw_fd(),
            go: go.as_raw_fd(),
            report: report.as_raw_fd(),
            stdin: stdin.as_ref().map(AsRawFd::as_raw_fd),
            stdout: match (command.stdout, &dropped) {
                (Stdout::Stderr, _) => libc::STDERR_FILENO,
                (Stdout::Into(file), _) => file,
                (_, Some(into)) => into.as_raw_fd(),
                (_, None) => libc::STDOUT_FILENO,
            },
            ignore_sigchld: sigchld.as_ref().is_some_and(is_ignored),
            mask: *mask_of_command.as_ref(),
        };
        // SAFETY: the child calls async-signal-safe functions only (see `become_command`) and
        // never returns; everything it reads was made before the fork.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            become_command(&plan);
        }
        let forked = Errno::result(pid);
        let _ = mask.thread_set_mask();
        forked.map_err(failed)?;
        let pidfd = pidfd(pid);
        Ok(Self { pid, pidfd, go: Some(go), failure, name, ended: None, sigchld })
    }

    /// Lets the child exec and waits until it has, or has failed to.
    pub fn start(&mut self) -> Result<()> {
        let name = self.name.clone();
        let failed =
            |e: Errno| Error::failed(format!("cannot start {}", name.display())).because(e.desc());
        let go = self.go.take();
        if let Some(go) = &go {
            nix::unistd::write(go, b"g").map_err(failed)?;
        }
        let mut errno = [0; 4];
        let read = loop {
            match nix::unistd::read(&self.failure, &mut errno) {
                Err(Errno::EINTR) => {}
                other => break other.map_err(failed)?,
            }
        };
        if read == 0 {
            return Ok(());
        }
        self.reap();
        Err(cannot_start(&name, Errno::from_raw(i32::from_ne_bytes(errno))))
    }

    /// Waits for its end. `None`: how it ended is unknown.
    pub fn reap(&mut self) -> Ending {
        if let Some(ended) = self.ended {
            return ended;
        }
        let mut status = 0;
        let scheduled = self.has_ended().then(|| scheduled(self.pid)).flatten();
        // SAFETY: an all-zero rusage is a valid value for the kernel to overwrite.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let ended = loop {
            // SAFETY: both pointers are valid for the call.
            let got = unsafe { libc::wait4(self.pid, &mut status, 0, &mut usage) };
            if got == self.pid && libc::WIFSTOPPED(status) {
                // A traced child that stops, also at its exit, must be resumed.
                let is_event = status >> 16 != 0;
                let signal = Signal::try_from(libc::WSTOPSIG(status)).ok();
                let signal = signal.filter(|one| !is_event && *one != Signal::SIGTRAP);
                let _ = nix::sys::ptrace::cont(Pid::from_raw(self.pid), signal);
                continue;
            }
            if got == self.pid {
                break Some((exit(status), Usage { scheduled, ..used(&usage) }));
            }
            if Errno::last() != Errno::EINTR {
                // Another thread has waited for it.
                break None;
            }
        };
        self.ended = Some(ended);
        ended
    }

    /// Whether it has ended, without waiting.
    pub fn has_ended(&self) -> bool {
        if self.ended.is_some() {
            return true;
        }
        // SAFETY: an all-zero siginfo is a valid value for the kernel to overwrite.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the pointer is valid for the call; WNOWAIT leaves the child to be reaped.
        let got = unsafe { libc::waitid(libc::P_PID, self.pid as libc::id_t, &mut info, options) };
        // SAFETY: waitid filled it, or left it zero.
        let reported = unsafe { info.si_pid() } == self.pid;
        // For a traced child, stops are reported even if not asked for.
        let ended = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
        got != 0 || (reported && ended.contains(&info.si_code))
    }
}

impl Drop for Child {
    /// A child that was never started exits when the pipe is closed.
    fn drop(&mut self) {
        if self.go.take().is_some() {
            self.reap();
        }
        if let Some(old) = &self.sigchld {
            // SAFETY: restores the previous action.
            let _ = unsafe { sigaction(Signal::SIGCHLD, old) };
        }
    }
}

/// Sets SIGCHLD to its default action: children of a process that ignores it leave no exit status
/// (wait4(2), notes). `Some`: the previous action, to be restored.
fn default_sigchld() -> Option<SigAction> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of this program.
    let old = unsafe { sigaction(Signal::SIGCHLD, &default) }.ok()?;
    let lost = is_ignored(&old) || old.flags().contains(SaFlags::SA_NOCLDWAIT);
    if !lost {
        // SAFETY: restores the previous action.
        let _ = unsafe { sigaction(Signal::SIGCHLD, &old) };
    }
    lost.then_some(old)
}

/// Whether a descriptor is `/dev/null`.
fn is_null(fd: RawFd) -> bool {
    let device = |stat: libc::stat| (stat.st_mode & libc::S_IFMT, stat.st_rdev);
    // SAFETY: the descriptor is one of the three standard ones, which this process never closes.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let null = nix::sys::stat::stat("/dev/null").map(device);
    null.is_ok() && nix::sys::stat::fstat(fd).map(device) == null
}

/// A device that discards what is written, also after this process has ended, as daemons may; and other than `/dev/null`,
/// where some programs write nothing (GNU grep, tar).
fn discarding() -> std::io::Result<OwnedFd> {
    Ok(std::fs::File::options().write(true).open("/dev/zero")?.into())
}

fn is_ignored(action: &SigAction) -> bool {
    matches!(action.handler(), SigHandler::SigIgn)
}

/// Data that the child needs, prepared before the fork.
struct Plan<'a> {
    /// The program: `argv`'s first word, or a file in its place.
    file: *const libc::c_char,
    argv: &'a [*const libc::c_char],
    wait: RawFd,
    go: RawFd,
    report: RawFd,
    /// Standard input, if not that of this process.
    stdin: Option<RawFd>,
    /// What becomes standard output.
    stdout: RawFd,
    /// SIGCHLD was ignored when this process started, so it is for the command.
    ignore_sigchld: bool,
    /// Signals blocked before the fork.
    mask: libc::sigset_t,
}

/// The child's side, between fork and exec.
fn become_command(plan: &Plan<'_>) -> ! {
    // SAFETY: only async-signal-safe calls on memory made before the fork. execvp allocates
    // nothing in glibc and musl. Signal dispositions changed by Rust or this program are
    // restored: exec preserves ignored signals and the mask.
    unsafe {
        libc::close(plan.go);
        let mut byte = 0u8;
        loop {
            let got = libc::read(plan.wait, (&raw mut byte).cast(), 1);
            if got == 1 {
                break;
            }
            if got == 0 || *libc::__errno_location() != libc::EINTR {
                libc::_exit(127);
            }
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if plan.ignore_sigchld {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        // As exec does, but before a blocked signal can reach the handlers.
        for signal in ENDING {
            let mut now: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal as libc::c_int, std::ptr::null(), &mut now);
            if now.sa_sigaction != libc::SIG_IGN {
                libc::signal(signal as libc::c_int, libc::SIG_DFL);
            }
        }
        libc::sigprocmask(libc::SIG_SETMASK, &plan.mask, std::ptr::null_mut());
        if let Some(stdin) = plan.stdin {
            libc::dup2(stdin, libc::STDIN_FILENO);
        }
        libc::dup2(plan.stdout, libc::STDOUT_FILENO);
        libc::execvp(plan.file, plan.argv.as_ptr());
        let errno = *libc::__errno_location();
        libc::write(plan.report, (&raw const errno).cast(), size_of::<libc::c_int>());
        libc::_exit(if errno == libc::ENOENT { 127 } else { 126 })
    }
}

/// Seconds that the first thread of a process ran, and that it was ready but did not run (`/proc/PID/schedstat`).
fn scheduled(pid: i32) -> Option<(f64, f64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut words = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let mut seconds = || Some(words.next()?? as f64 * 1e-9);
    Some((seconds()?, seconds()?))
}

/// A descriptor that becomes readable when `pid` ends.
pub fn pidfd(pid: i32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the kernel has just created this descriptor; nothing else owns it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn exit(status: libc::c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Status(libc::WEXITSTATUS(status))
    }
}

fn used(usage: &libc::rusage) -> Usage {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Usage {
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        context_switches: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
        page_faults: count(usage.ru_minflt) + count(usage.ru_majflt),
        major_faults: count(usage.ru_majflt),
        scheduled: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::signals::Signals;
    use super::*;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    #[test]
    fn a_signal_before_exec_is_the_commands_and_not_ours() {
        let signals = Signals::catch().expect("signals");
        let argv = ["sleep", "60"].map(OsString::from).to_vec();
        let command = Command { argv, ..Command::default() };
        let mut child = Child::prepare(&command).expect("forked");
        // Not SIGINT: jobs in the background of a script ignore it, and so do their commands.
        kill(Pid::from_raw(child.pid), Signal::SIGTERM).expect("sent");
        child.start().expect("started");
        assert_eq!(child.reap().map(|(exit, _)| exit), Some(Exit::Signal(libc::SIGTERM)));
        assert_eq!(signals.next(), None);
    }
}
