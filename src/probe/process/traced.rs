//! A traced command: its processes and threads, and when one of them enters the block.

use super::breakpoints::{self, Kind};
use super::loader;
use super::maps::{Image, mappings};
use super::task::{Process, Task, process_of};
use super::thread::{self, Trap};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Child, Resume, Stop, resume, stop};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// System calls of a process without a known loader that are traced until the file is mapped.
const MOST_CALLS: u32 = 10_000;
/// Polls for a stop before the tracer sleeps between them: some milliseconds.
const BUSY_POLLS: u32 = 2_000;
/// Time between polls after that.
const POLL: Duration = Duration::from_micros(100);

/// What happened next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// This thread has stopped before the first instruction of the block.
    Hit(i32),
    /// The command has ended, and all that it started.
    Ended,
    /// The time is over.
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

/// What becomes of a thread after one of its stops.
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
    ///
    /// # Errors
    /// It cannot be started or traced.
    pub fn start(command: &pmu::Command, image: Image, offset: u64, kind: Kind) -> Result<Self> {
        let child = Child::prepare(command)?;
        let options = Options::PTRACE_O_EXITKILL
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACESYSGOOD;
        ptrace::seize(Pid::from_raw(child.pid), options).map_err(refused)?;
        let leader = child.pid;
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

    /// The process of a thread, and where the block is in it.
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

    /// Handles the stops of all running threads; whether there were any.
    fn poll(&mut self) -> bool {
        let mut any = false;
        for tid in self.running(|_| true) {
            let Some(stop) = stop(tid, self.child.pid) else { continue };
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
            Stop::Breakpoint(_) | Stop::Signal(libc::SIGTRAP) => return self.trapped(tid),
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
            Trap::Int3 => drop(thread::set_pointer(tid, address)),
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
        // Otherwise a breakpoint that was removed meanwhile.
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

    /// A process executes another program: nothing of the old one is left.
    fn executed(&mut self, tid: i32) {
        let id = process_of(tid);
        self.tasks.retain(|other, task| *other == tid || task.process != id);
        let stopped = Some(Resume::Continue(0));
        self.tasks.insert(tid, Task { stopped, ..Task::new(id) });
        let hook = loader::hook(id, &mappings(id));
        let calls = if hook.is_none() { MOST_CALLS } else { 0 };
        self.processes.insert(id, Process { hook, calls, ..Process::default() });
        self.locate(id);
    }

    fn after_call(&mut self, tid: i32) {
        let Some(id) = self.tasks.get(&tid).map(|task| task.process) else { return };
        // mmap(2) is number 9 (asm/unistd_64.h); other calls map no file.
        let is_mmap = ptrace::getregs(Pid::from_raw(tid)).is_ok_and(|r| r.orig_rax == 9);
        if let Some(process) = self.processes.get_mut(&id) {
            process.calls = process.calls.saturating_sub(1);
        }
        if is_mmap {
            self.locate(id);
        }
    }

    /// Looks for the block in a process, and has its other threads stop there, too.
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

    pub(super) fn interrupt(&mut self, tid: i32) {
        if let Some(task) = self.tasks.get_mut(&tid)
            && !task.interrupted
        {
            task.interrupted = ptrace::interrupt(Pid::from_raw(tid)).is_ok();
        }
    }

    /// Sets the breakpoints of a stopped thread, and resumes it.
    pub(super) fn go(&mut self, tid: i32, how: Resume) {
        self.arm(tid);
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        task.stopped = None;
        let how = match (task.deferred.take(), how) {
            (Some(signal), Resume::Continue(0)) => Resume::Continue(signal),
            (Some(signal), _) => {
                // Only one signal can be delivered as it is.
                if let Ok(signal) = Signal::try_from(signal) {
                    let _ = kill(Pid::from_raw(task.process), signal);
                }
                how
            }
            (None, _) => how,
        };
        let traces_calls = self.processes.get(&task.process).is_some_and(|p| p.calls > 0);
        resume(
            tid,
            match how {
                Resume::Continue(signal) if traces_calls => Resume::ToSystemCall(signal),
                other => other,
            },
        );
    }

    pub(super) fn arm(&mut self, tid: i32) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        let stops = process.stops();
        if self.kind == Kind::Debug {
            match breakpoints::set(tid, task, stops) {
                Ok(()) | Err(Errno::ESRCH) => return,
                Err(_) => self.kind = Kind::Int3,
            }
        }
        // A process that cannot be written is not counted: its block is then never reached.
        let _ =
            breakpoints::patch(task.process, process, &Vec::from_iter(stops.into_iter().flatten()));
    }

    /// Puts `int3` at these addresses of a stopped process, whose threads are all stopped, until
    /// [`Traced::disarm`]. Where one is reached, [`Traced::run_to`] ends there and is false.
    pub fn plant(&mut self, tid: i32, addresses: &[u64]) -> bool {
        let Some(task) = self.tasks.get(&tid) else { return false };
        let Some(process) = self.processes.get_mut(&task.process) else { return false };
        breakpoints::patch(task.process, process, addresses).is_ok()
    }

    /// Removes the breakpoints of a stopped thread, whose process is stopped.
    pub fn disarm(&mut self, tid: i32) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let _ = breakpoints::set(tid, task, [None; 4]);
        if let Some(process) = self.processes.get_mut(&task.process) {
            let _ = breakpoints::patch(task.process, process, &[]);
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
