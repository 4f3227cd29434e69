//! A command followed through all its threads and children: who executes what, maps files, creates
//! tasks and ends. Nothing of it is stopped longer than that takes, and it goes on untraced if this
//! process dies.

use super::inject;
use super::maps::{Mapping, mappings};
use super::memory::Memory;
use super::task::process_of;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;
use pmu::perf::{Child, Resume, Signals, Stop, resume, stop};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// System calls of a process that are traced for files that it maps.
pub const MOST_CALLS: u32 = 20_000;
/// `mmap` (asm/unistd_64.h).
const MMAP: u64 = 9;
/// So long after a stop the next one is waited for without sleeping.
const AWAKE: Duration = Duration::from_millis(5);
/// Time between polls after that.
const POLL: Duration = Duration::from_micros(100);

/// A process with one thread stopped where it can make system calls for us.
pub struct Stopped {
    tid: i32,
    leader: i32,
    /// The process.
    pub process: i32,
}

impl Stopped {
    /// Its mappings.
    pub fn mappings(&self) -> Vec<Mapping> {
        mappings(self.tid)
    }

    /// Its memory.
    pub fn memory(&self) -> std::io::Result<Memory> {
        Memory::open(self.tid)
    }

    /// Makes a system call in it.
    pub fn call(&self, number: libc::c_long, arguments: [u64; 6]) -> nix::Result<u64> {
        inject::call(self.tid, self.leader, number.cast_unsigned(), arguments)
    }
}

/// What is done at the events of a followed command.
pub trait Follower {
    /// A process may have mapped files. Whether it is of interest which other ones it maps.
    fn mapped(&mut self, stopped: &Stopped) -> bool;
    /// A task of `parent` has created a task, of the same process or of a new one; both are stopped.
    fn created(&mut self, parent: i32, process: i32);
    /// A process executes another program: nothing of the old one is left.
    fn executed(&mut self, process: i32);
    /// A process is about to end; its memory is still there.
    fn ending(&mut self, process: i32);
    /// Called every 100 µs or more often.
    fn tick(&mut self) {}
}

/// How the command went.
#[derive(Debug, Clone, Copy)]
pub struct Followed {
    /// From its start to its end.
    pub wall: Duration,
    /// How it ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Threads and processes, beside the first.
    pub tasks: u32,
}

struct Following<'a> {
    leader: i32,
    /// Threads → their processes.
    tasks: BTreeMap<i32, i32>,
    /// System calls of each process that are still traced.
    calls: BTreeMap<i32, u32>,
    follower: &'a mut dyn Follower,
    created: u32,
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started or traced.
pub fn follow(
    command: &pmu::Command,
    follower: &mut dyn Follower,
    signals: &Signals,
) -> Result<Followed> {
    let mut child = Child::prepare(command)?;
    let options = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXIT
        | Options::PTRACE_O_TRACESYSGOOD;
    ptrace::seize(Pid::from_raw(child.pid), options).map_err(refused)?;
    let leader = child.pid;
    let mut following = Following {
        leader,
        tasks: BTreeMap::from([(leader, leader)]),
        calls: BTreeMap::new(),
        follower,
        created: 0,
    };
    let begin = Instant::now();
    child.start()?;
    let (mut interrupted, mut last) = (None, begin);
    while !child.has_ended() {
        interrupted = signals.forward(leader).or(interrupted);
        following.follower.tick();
        if following.poll() {
            last = Instant::now();
        } else if last.elapsed() > AWAKE {
            std::thread::sleep(POLL);
        } else {
            std::thread::yield_now();
        }
    }
    let wall = begin.elapsed();
    following.leave();
    let tasks = following.created;
    let exit = child.reap().map(|(exit, _)| exit);
    Ok(Followed { wall, exit, interrupted, tasks })
}

impl Following<'_> {
    /// Handles the stops of all threads; whether there were any.
    fn poll(&mut self) -> bool {
        let mut any = false;
        for tid in self.tasks.keys().copied().collect::<Vec<_>>() {
            if let Some(stop) = stop(tid, self.leader) {
                any = true;
                self.handle(tid, stop);
            }
        }
        any
    }

    fn handle(&mut self, tid: i32, stop: Stop) {
        let process = self.tasks.get(&tid).copied().unwrap_or(tid);
        let mut how = Resume::Continue(0);
        match stop {
            Stop::Signal(signal) => how = Resume::Continue(signal),
            Stop::Breakpoint(_) => how = Resume::Continue(libc::SIGTRAP),
            Stop::GroupStop => how = Resume::Listen,
            Stop::Created(child) => {
                let of = process_of(child);
                self.created += 1;
                self.tasks.insert(child, of);
                if let Some(calls) = self.calls.get(&process).copied() {
                    self.calls.entry(of).or_insert(calls);
                }
                self.follower.created(process, of);
            }
            Stop::Exec => {
                let process = process_of(tid);
                self.tasks.retain(|other, of| *of != process || *other == tid);
                self.tasks.insert(tid, process);
                self.follower.executed(process);
                self.calls.insert(process, MOST_CALLS);
                self.mapped(tid, process);
            }
            Stop::SystemCall => self.after_call(tid, process),
            Stop::Ending if tid == process => self.follower.ending(process),
            Stop::Ending | Stop::Attached => {}
            Stop::Ended => {
                self.tasks.remove(&tid);
                return;
            }
        }
        let traces = self.calls.get(&process).is_some_and(|calls| *calls > 0);
        match how {
            Resume::Continue(signal) if traces => resume(tid, Resume::ToSystemCall(signal)),
            how => resume(tid, how),
        }
    }

    fn mapped(&mut self, tid: i32, process: i32) {
        let stopped = Stopped { tid, leader: self.leader, process };
        if !self.follower.mapped(&stopped) {
            self.calls.insert(process, 0);
        }
    }

    fn after_call(&mut self, tid: i32, process: i32) {
        // At its start the result is ENOSYS.
        let start = libc::c_long::from(-libc::ENOSYS).cast_unsigned();
        let ended = ptrace::getregs(Pid::from_raw(tid)).ok().filter(|r| r.rax != start);
        if let (Some(calls), Some(_)) = (self.calls.get_mut(&process), &ended) {
            *calls = calls.saturating_sub(1);
        }
        if ended.is_some_and(|r| r.orig_rax == MMAP) {
            self.mapped(tid, process);
        }
    }

    /// Lets what the command has left behind go on untraced.
    fn leave(&mut self) {
        for tid in self.tasks.keys().copied().filter(|tid| *tid != self.leader) {
            pmu::perf::release(tid);
        }
    }
}

fn refused(errno: Errno) -> Error {
    let error = Error::not_possible("cannot trace the command").because(errno.desc());
    match errno {
        Errno::EPERM | Errno::EACCES => error.hint(
            "ptrace(2) must be permitted: kernel.yama.ptrace_scope below 3, and in a container \
             --cap-add SYS_PTRACE or a seccomp profile that allows it",
        ),
        _ => error,
    }
}
