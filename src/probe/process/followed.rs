//! Follows a command through all its threads and children: executed programs, mapped files, created tasks, ends. Tasks
//! are stopped only as long as that takes, and continue untraced if this process dies.

use super::inject::restart;
use super::seize::{TASKS, refused, seize};
use super::thread::process_of;
use super::tracee::Tracee;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Child, Resume, Signals, Stop, resume, stop};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tma::Result;

/// Time after a stop in which the next one is awaited without sleeping.
const AWAKE: Duration = Duration::from_millis(5);
/// Poll interval after it.
const POLL: Duration = Duration::from_micros(100);
/// Signals that stop a process (signal(7)).
const STOPPING: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
/// Signals by which the processor interrupts an instruction (signal(7)).
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// Reactions to the events of a followed command.
pub trait Follower {
    /// A process may have mapped files. Whether further mappings are of interest.
    fn mapped(&mut self, tracee: &Tracee) -> bool;
    /// A task has created another one, of the same process or of a new one; both are stopped.
    fn created(&mut self, created: &Created);
    /// A task has stopped before its first instruction, or when it began to be traced.
    fn started(&mut self, _process: i32, _tid: i32) {}
    /// A process executes another program, which replaces the old one.
    fn executed(&mut self, process: i32);
    /// The processor has raised a signal, such as SIGFPE, at this instruction.
    fn faulted(&mut self, _process: i32, _at: u64, _signal: i32) {}
    /// A thread is about to end; `base` (fs) is that of its own memory.
    fn thread_ending(&mut self, _process: i32, _tid: i32, _base: u64) {}
    /// All threads of a process are about to end; its memory still exists.
    fn process_ending(&mut self, process: i32);
    /// Called every 100 µs or more often.
    fn tick(&mut self) {}
    /// A process has ended.
    fn ended(&mut self, process: i32);
}

/// A new task.
#[derive(Debug, Clone, Copy)]
pub struct Created {
    /// The process that created it.
    pub parent: i32,
    /// Its process.
    pub process: i32,
    /// Its number.
    pub tid: i32,
    /// The base of gs, inherited from its creator.
    pub gs_base: u64,
}

/// Outcome of a command.
#[derive(Debug, Clone, Copy)]
pub struct Followed {
    /// From its start to its end.
    pub wall: Duration,
    /// Exit of the command.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Threads and processes without the first.
    pub tasks: u32,
    /// Processes without the first.
    pub processes: u32,
}

/// Followed tasks and processes.
pub(super) struct Following<'a, F: Follower + ?Sized = dyn Follower + 'a> {
    /// The process whose end is awaited by its owner; 0 if there is none.
    pub leader: i32,
    /// Threads → their processes.
    pub tasks: BTreeMap<i32, i32>,
    /// Threads that will not return to their code.
    pub ending: BTreeSet<i32>,
    /// System calls of each process still to be traced.
    pub calls: BTreeMap<i32, Calls>,
    /// Whether programs that are executed are of interest.
    pub into_exec: bool,
    pub follower: &'a mut F,
    /// Number of created tasks, and of the processes among them.
    pub created: u32,
    pub forked: u32,
}

/// Traced events: created tasks, executed programs, ends.
pub(super) const OPTIONS: Options = TASKS.union(Options::PTRACE_O_TRACEEXIT);

/// Runs a command to its end; `before` is called with the process before it starts. It is not
/// started after a signal.
///
/// # Errors
/// It cannot be started or traced; those of `before`.
pub fn follow(
    command: &pmu::Command,
    follower: &mut dyn Follower,
    signals: &Signals,
    before: &mut dyn FnMut(i32) -> Result<()>,
) -> Result<Followed> {
    if let Some((signal, _)) = signals.next() {
        let (wall, interrupted) = (Duration::ZERO, Some(signal));
        return Ok(Followed { wall, exit: None, interrupted, tasks: 0, processes: 0 });
    }
    let mut child = Child::prepare(command)?;
    let leader = child.pid;
    seize(leader, OPTIONS).map_err(|errno| refused("the command", leader, errno))?;
    let mut following = Following::new(leader, BTreeMap::from([(leader, leader)]), follower);
    before(leader)?;
    let begin = Instant::now();
    child.start()?;
    let (mut interrupted, mut last) = (None, begin);
    while !child.has_ended() {
        interrupted = passed_on(signals, leader, interrupted);
        following.follower.tick();
        if following.poll() {
            last = Instant::now();
        } else {
            rest(last);
        }
    }
    let wall = begin.elapsed();
    following.leave();
    let (tasks, processes) = (following.created, following.forked);
    let exit = child.reap().map(|(exit, _)| exit);
    Ok(Followed { wall, exit, interrupted, tasks, processes })
}

/// Passes a signal on to a command: the first is for the command, which may have data to save; the second ends it. The
/// number of the last one.
pub(super) fn passed_on(signals: &Signals, leader: i32, before: Option<i32>) -> Option<i32> {
    if before.is_none() {
        return signals.forward(leader);
    }
    let killed = signals.next().map(|(signal, _)| signal);
    if killed.is_some() {
        let _ = kill(Pid::from_raw(leader), Signal::SIGKILL);
    }
    killed.or(before)
}

/// The instruction of a stopped thread, if the processor, not another process, raised the signal.
fn fault(tid: i32, signal: i32) -> Option<u64> {
    let pid = Pid::from_raw(tid);
    // Signals sent by a process have codes of at most 0 (sigaction(2)).
    let is_raised = || ptrace::getsiginfo(pid).is_ok_and(|info| info.si_code > 0);
    let is_fault = FAULTS.contains(&signal) && is_raised();
    is_fault.then(|| ptrace::getregs(pid).ok().map(|registers| registers.rip)).flatten()
}

/// Whether these arguments of mmap(2) map code of a file: the third is the protection, the fifth a
/// descriptor or -1.
fn maps_code(registers: &libc::user_regs_struct) -> bool {
    let executes = registers.rdx & libc::PROT_EXEC.cast_unsigned() as u64 != 0;
    executes && (registers.r8 as i32) >= 0
}

/// Waits a little, if the `last` stop was some time ago.
pub(super) fn rest(last: Instant) {
    if last.elapsed() > AWAKE {
        std::thread::sleep(POLL);
    } else {
        std::thread::yield_now();
    }
}

impl<'a, F: Follower + ?Sized> Following<'a, F> {
    /// Starts following tasks.
    pub fn new(leader: i32, tasks: BTreeMap<i32, i32>, follower: &'a mut F) -> Self {
        let (ending, calls) = (BTreeSet::new(), BTreeMap::new());
        let (created, forked) = (0, 0);
        Self { leader, tasks, ending, calls, into_exec: leader != 0, follower, created, forked }
    }

    /// Handles stops of all threads; false if there were none.
    pub fn poll(&mut self) -> bool {
        let mut any = false;
        for tid in self.tasks.keys().copied().collect::<Vec<_>>() {
            let Some(stop) = stop(tid, self.leader) else { continue };
            // Not the end while threads are left: one of them may execute a program under its id.
            let is_left = |(other, owner): (&i32, &i32)| *owner == tid && *other != tid;
            if stop == Stop::Ended && tid == self.leader && self.tasks.iter().any(is_left) {
                continue;
            }
            any = true;
            self.handle(tid, stop);
        }
        any
    }

    fn handle(&mut self, tid: i32, stop: Stop) {
        let Some(how) = self.handled(tid, stop) else { return };
        let process = self.tasks.get(&tid).copied().unwrap_or(tid);
        let traces = self.calls.get(&process).is_some_and(|calls| calls.are_left());
        match how {
            Resume::Continue(signal) if traces => resume(tid, Resume::ToSystemCall(signal)),
            how => resume(tid, how),
        }
    }

    /// Handles a stop and leaves the thread stopped; how to resume it, or `None` if it has ended.
    pub fn handled(&mut self, tid: i32, stop: Stop) -> Option<Resume> {
        let process = self.tasks.get(&tid).copied().unwrap_or(tid);
        match stop {
            // The kernel preserves its siginfo if the number is the same.
            Stop::Signal(signal) => {
                // Stopping signals also interrupt without a tracer.
                if !STOPPING.contains(&signal) {
                    restart(tid);
                }
                if let Some(at) = fault(tid, signal) {
                    self.follower.faulted(process, at, signal);
                }
                return Some(Resume::Continue(signal));
            }
            Stop::GroupStop => return Some(Resume::Listen),
            Stop::Created(child) => self.adopt(child, tid, process),
            Stop::Exec => self.executed(tid),
            Stop::SystemCall => self.after_call(tid, process),
            Stop::Ending => self.ending(tid, process),
            Stop::Attached => {
                restart(tid);
                self.follower.started(process, tid);
            }
            Stop::Ended => {
                self.tasks.remove(&tid);
                self.ending.remove(&tid);
                if !self.tasks.values().any(|owner| *owner == process) {
                    self.calls.remove(&process);
                    self.follower.ended(process);
                }
                return None;
            }
        }
        Some(Resume::Continue(0))
    }

    /// A new thread, or a new process with a copy of its parent's memory.
    fn adopt(&mut self, child: i32, creator: i32, parent: i32) {
        let process = process_of(child);
        self.created += 1;
        self.forked += u32::from(process != parent);
        self.tasks.insert(child, process);
        if let Some(calls) = self.calls.get(&parent).copied() {
            self.calls.entry(process).or_insert(calls);
        }
        // 0 if the creator has ended, and counts no more.
        let gs_base = ptrace::getregs(Pid::from_raw(creator)).map_or(0, |r| r.gs_base);
        self.follower.created(&Created { parent, process, tid: child, gs_base });
    }

    fn executed(&mut self, tid: i32) {
        let process = process_of(tid);
        self.tasks.retain(|other, owner| *owner != process || *other == tid);
        self.tasks.insert(tid, process);
        let tasks = &self.tasks;
        self.ending.retain(|other| tasks.contains_key(other) && *other != tid);
        self.follower.executed(process);
        if self.into_exec {
            self.calls.insert(process, Calls::FIRST);
            self.mapped(tid, process);
        }
    }

    fn ending(&mut self, tid: i32, process: i32) {
        self.ending.insert(tid);
        if let Ok(registers) = ptrace::getregs(Pid::from_raw(tid)) {
            self.follower.thread_ending(process, tid, registers.fs_base);
        }
        let mut own = self.tasks.iter().filter(|(_, owner)| **owner == process);
        if own.all(|(tid, _)| self.ending.contains(tid)) {
            self.follower.process_ending(process);
        }
    }

    fn mapped(&mut self, tid: i32, process: i32) {
        let tracee = Tracee { tid, leader: self.leader, process, is_live: false };
        if !self.follower.mapped(&tracee) {
            self.calls.insert(process, Calls::NONE);
        }
    }

    fn after_call(&mut self, tid: i32, process: i32) {
        // At the start of a call its result is ENOSYS.
        let start = libc::c_long::from(-libc::ENOSYS).cast_unsigned();
        let ended = ptrace::getregs(Pid::from_raw(tid)).ok().filter(|r| r.rax != start);
        let Some(registers) = ended else { return };
        let is_mapping = registers.orig_rax == libc::SYS_mmap.cast_unsigned();
        if let Some(calls) = self.calls.get_mut(&process) {
            *calls = calls.after(is_mapping && maps_code(&registers));
        }
        if is_mapping {
            self.mapped(tid, process);
        }
    }

    /// Lets remaining tasks continue untraced.
    fn leave(&mut self) {
        for tid in self.tasks.keys().copied().filter(|tid| *tid != self.leader) {
            pmu::perf::release(tid, self.leader);
        }
    }
}

/// Most system calls traced.
pub const MOST_CALLS: u32 = 20_000;
/// Most system calls traced without a mapping of code: loaders make few between two mappings.
pub const MOST_APART: u32 = 4_000;

/// System calls still to be traced: in all, and until one maps code.
///
/// Each call traced to see the files that a process maps costs some ten microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    all: u32,
    until_next: u32,
}

impl Calls {
    /// Limits for a new program.
    pub const FIRST: Self = Self { all: MOST_CALLS, until_next: MOST_APART };
    /// No tracing.
    pub const NONE: Self = Self { all: 0, until_next: 0 };

    /// Whether the next call is traced.
    pub fn are_left(self) -> bool {
        self.all > 0 && self.until_next > 0
    }

    /// Limits after a call.
    pub fn after(self, maps_code: bool) -> Self {
        let until_next = if maps_code { MOST_APART } else { self.until_next.saturating_sub(1) };
        Self { all: self.all.saturating_sub(1), until_next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_traced_until_no_code_is_mapped_for_long() {
        let after = |calls: Calls, n: u32| (0..n).fold(calls, |calls, _| calls.after(false));
        let almost = after(Calls::FIRST, MOST_APART - 1);
        assert!(almost.are_left());
        assert!(!almost.after(false).are_left());
        assert!(after(almost.after(true), MOST_APART - 1).are_left());
        let mapping = (0..MOST_CALLS).fold(Calls::FIRST, |calls, _| calls.after(true));
        assert!(!mapping.are_left());
        assert!(!Calls::NONE.are_left());
    }
}
