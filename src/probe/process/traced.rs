//! A traced command: its processes and threads and their entries of the block. At the end the command is killed, or
//! continues untraced.

use super::memory::{self, Image, mappings};
use super::seize::{TASKS, refused, seize};
use super::thread::{self, Kind, Process, Task, Trap, process_of};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::Exit;
use pmu::perf::{Child, Resume, Stop, stop};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tma::Result;

/// Most system calls traced in a process without a known loader, until the file is mapped.
const MOST_CALLS: u32 = 10_000;
/// Polls for a stop without sleeping in between: some milliseconds.
const BUSY_POLLS: u32 = 2_000;
/// Poll interval after them.
const POLL: Duration = Duration::from_micros(100);
/// Time limit for killed processes to end.
const ENDING: Duration = Duration::from_secs(2);

/// An event of a traced command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// This thread has stopped before the first instruction of the block.
    Hit(i32),
    /// The command and all that it started have ended.
    Ended,
    /// The deadline has passed.
    TimedOut,
}

/// A traced command.
pub struct Traced {
    pub(super) child: Child,
    image: Image,
    offset: u64,
    pub(super) kind: Kind,
    pub(super) tasks: BTreeMap<i32, Task>,
    pub(super) processes: BTreeMap<i32, Process>,
    pub(super) hits: VecDeque<i32>,
    was_mapped: bool,
}

/// How to treat a thread after a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handled {
    /// It continues.
    Resume(Resume),
    /// It is at the block.
    Hit,
    /// It has ended.
    Gone,
}

impl Traced {
    /// Starts a command that is to stop at `offset` of the file `image`.
    pub fn start(command: &pmu::Command, image: Image, offset: u64, kind: Kind) -> Result<Self> {
        let child = Child::prepare(command)?;
        let leader = child.pid;
        let options = TASKS.union(Options::PTRACE_O_EXITKILL);
        seize(leader, options).map_err(|errno| refused("the command", leader, errno))?;
        let mut traced = Self {
            child,
            image,
            offset,
            kind,
            tasks: BTreeMap::from([(leader, Task::new(leader))]),
            processes: BTreeMap::from([(leader, Process::default())]),
            hits: VecDeque::new(),
            was_mapped: false,
        };
        traced.child.start()?;
        Ok(traced)
    }

    /// Whether the file was ever mapped.
    pub fn was_mapped(&self) -> bool {
        self.was_mapped
    }

    /// The process of a thread, and the address of the block in it.
    pub fn place(&self, tid: i32) -> Option<(i32, u64)> {
        let id = self.tasks.get(&tid)?.process;
        Some((id, self.processes.get(&id)?.block?))
    }

    /// Waits for the next hit, the end, or `deadline`. A thread at the block stays stopped until
    /// [`Traced::pass`].
    pub fn next(&mut self, deadline: Instant) -> Event {
        let mut polls = 0;
        loop {
            while let Some(tid) = self.hits.pop_front() {
                if self.tasks.contains_key(&tid) {
                    return Event::Hit(tid);
                }
            }
            let any = self.poll();
            if !self.hits.is_empty() {
                continue;
            }
            if self.tasks.contains_key(&self.child.pid) && self.child.has_ended() {
                self.tasks.remove(&self.child.pid);
            }
            if self.tasks.is_empty() {
                return Event::Ended;
            }
            if Instant::now() > deadline {
                return Event::TimedOut;
            }
            polls = if any { 0 } else { polls + 1 };
            if polls > BUSY_POLLS {
                std::thread::sleep(POLL);
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Handles stops of all running threads; false if there were none.
    fn poll(&mut self) -> bool {
        let mut any = false;
        for tid in self.running(|_| true) {
            let Some(stop) = stop(tid, self.child.pid) else { continue };
            // Another thread may still execute a program under its id.
            if stop == Stop::Ended && tid == self.child.pid {
                continue;
            }
            any = true;
            match self.handle(tid, stop) {
                Handled::Resume(how) => self.go(tid, how),
                Handled::Hit => self.hits.push_back(tid),
                Handled::Gone => {}
            }
        }
        any
    }

    pub(super) fn running(&self, wanted: impl Fn(&Task) -> bool) -> Vec<i32> {
        let is_running =
            |(tid, task): (&i32, &Task)| (task.stopped.is_none() && wanted(task)).then_some(*tid);
        self.tasks.iter().filter_map(is_running).collect()
    }

    /// Handles one stop. The thread stays stopped, except at its end.
    pub(super) fn handle(&mut self, tid: i32, stop: Stop) -> Handled {
        let handled = match stop {
            Stop::Ended => {
                self.tasks.remove(&tid);
                return Handled::Gone;
            }
            Stop::Signal(signal) if signal != libc::SIGTRAP => {
                Handled::Resume(Resume::Continue(signal))
            }
            Stop::GroupStop => Handled::Resume(Resume::Listen),
            _ => Handled::Resume(Resume::Continue(0)),
        };
        let Some(task) = self.tasks.get_mut(&tid) else { return Handled::Gone };
        let Handled::Resume(how) = handled else { return handled };
        (task.stopped, task.interrupted) = (Some(how), false);
        match stop {
            Stop::Created(child) => self.adopt(child, tid),
            Stop::Exec => self.executed(tid),
            Stop::SystemCall => self.after_call(tid),
            Stop::Signal(libc::SIGTRAP) => return self.trapped(tid),
            _ => {}
        }
        handled
    }

    /// A SIGTRAP: at the block, at the loader's hook, or the program's own.
    fn trapped(&mut self, tid: i32) -> Handled {
        let own = Handled::Resume(Resume::Continue(libc::SIGTRAP));
        let Some(id) = self.tasks.get(&tid).map(|task| task.process) else { return own };
        let (Some(process), Ok(registers)) = (self.processes.get(&id), thread::registers(tid))
        else {
            return own;
        };
        let trap = thread::trap(tid);
        let address = match trap {
            Trap::Debug => registers.pointer,
            Trap::Int3 => registers.pointer.wrapping_sub(1),
            Trap::Sent => return own,
        };
        let is_patched = process.patched.iter().any(|(patched, _)| *patched == address);
        match trap {
            Trap::Int3 if !is_patched => return own,
            Trap::Int3 => drop(thread::change(tid, |registers| registers.rip = address)),
            _ => {}
        }
        if process.block == Some(address) {
            return Handled::Hit;
        }
        if process.hook == Some(address) {
            self.locate(id);
            if trap == Trap::Int3 {
                self.step_over(tid);
            }
        }
        // Otherwise a breakpoint that was just removed.
        Handled::Resume(Resume::Continue(0))
    }

    /// A new thread, or a new process with a copy of its parent's memory.
    fn adopt(&mut self, tid: i32, parent: i32) {
        let id = process_of(tid);
        let parent = self.tasks.get(&parent).map(|task| task.process);
        if let Some(copy) = parent.and_then(|parent| self.processes.get(&parent)).cloned() {
            self.processes.entry(id).or_insert(copy);
        }
        self.tasks.entry(tid).or_insert_with(|| Task::new(id));
    }

    /// A process executes another program, which replaces the old one.
    fn executed(&mut self, tid: i32) {
        let id = process_of(tid);
        self.tasks.retain(|other, task| *other == tid || task.process != id);
        let stopped = Some(Resume::Continue(0));
        self.tasks.insert(tid, Task { stopped, ..Task::new(id) });
        let hook = memory::hook(id, &mappings(id));
        let calls = if hook.is_none() { MOST_CALLS } else { 0 };
        self.processes.insert(id, Process { hook, calls, ..Process::default() });
        self.locate(id);
    }

    fn after_call(&mut self, tid: i32) {
        let Some(id) = self.tasks.get(&tid).map(|task| task.process) else { return };
        // Other calls map no file.
        let mmap = libc::SYS_mmap.cast_unsigned();
        let is_mmap = ptrace::getregs(Pid::from_raw(tid)).is_ok_and(|r| r.orig_rax == mmap);
        if let Some(process) = self.processes.get_mut(&id) {
            process.calls = process.calls.saturating_sub(1);
        }
        if is_mmap {
            self.locate(id);
        }
    }

    /// Finds the block in a process, and has all its threads stop there.
    fn locate(&mut self, id: i32) {
        let found = self.image.find(&mappings(id), self.offset);
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.block.is_some() || found.is_none() {
            return;
        }
        (process.block, process.calls) = (found, 0);
        self.was_mapped = true;
        for tid in self.running(|task| task.process == id) {
            self.interrupt(tid);
        }
    }

    /// Kills the command and all that it has started.
    pub fn kill(mut self) {
        for id in self.processes.keys() {
            let _ = kill(Pid::from_raw(*id), Signal::SIGKILL);
        }
        let begin = Instant::now();
        while !self.tasks.is_empty() && begin.elapsed() < ENDING {
            for tid in self.tasks.keys().copied().collect::<Vec<_>>() {
                match stop(tid, self.child.pid) {
                    Some(Stop::Ended) => drop(self.tasks.remove(&tid)),
                    Some(Stop::Created(child)) => {
                        let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
                        self.tasks.insert(child, Task::new(child));
                    }
                    _ if tid == self.child.pid && self.child.has_ended() => {
                        self.tasks.remove(&tid);
                    }
                    _ => {}
                }
            }
            std::thread::yield_now();
        }
        self.child.reap();
    }

    /// Lets the command continue untraced to its end.
    pub fn release(mut self) -> Option<Exit> {
        for tid in self.tasks.keys().copied().collect::<Vec<_>>() {
            if self.tasks.get(&tid).is_none_or(|task| task.stopped.is_none()) {
                self.halt(tid);
            }
            let how = self.tasks.get(&tid).and_then(|task| task.stopped);
            self.disarm(tid);
            let signal = match how {
                Some(Resume::Continue(signal)) => Signal::try_from(signal).ok(),
                _ => None,
            };
            let _ = ptrace::detach(Pid::from_raw(tid), signal);
        }
        self.exit()
    }

    /// Exit of the command.
    pub fn exit(mut self) -> Option<Exit> {
        self.child.reap().map(|(exit, _)| exit)
    }
}
