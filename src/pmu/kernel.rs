//! The collector's view of the kernel: events, time, and the command that is measured.
//!
//! [`super::perf::Live`] is the real one; [`super::scripted::Scripted`] follows a script, so all
//! the collector's decisions are tested without a PMU, without sleeping, and the same every time.

use super::{Command, Exit};
use crate::machine::Encoding;
use nix::errno::Errno;
use std::path::Path;
use std::time::Duration;
use tma::error::Result;

/// An open event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub usize);

/// Whose events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// One thread, wherever it runs.
    Task(i32),
    /// Whatever runs on the CPU.
    Everyone,
    /// Members of an opened control group.
    Cgroup(Handle),
}

/// An event to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What it counts.
    pub encoding: Encoding,
    /// Whose.
    pub subject: Subject,
    /// On which CPU; `None`: on all.
    pub cpu: Option<u32>,
    /// Children and new threads too.
    pub inherit: bool,
    /// Not in kernel mode.
    pub exclude_kernel: bool,
    /// Starts counting when the task calls exec.
    pub enable_on_exec: bool,
    /// Reads of this leader give the whole group.
    pub group_read: bool,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The time asked for has come.
    Time,
    /// The command has ended.
    Exited,
    /// The process that is watched has gone.
    Gone,
    /// A signal for us. From a terminal the command has it as well.
    Signal {
        /// Its number.
        number: i32,
        /// Sent by the terminal's driver to the whole foreground group.
        from_terminal: bool,
    },
}

/// What the command used by itself, as wait4 tells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// User and system time in seconds.
    pub cpu_seconds: f64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Minor and major page faults.
    pub page_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
}

/// The kernel, as far as the collector needs it.
pub trait Kernel {
    /// Opens an event; a leader starts disabled, a member follows its leader.
    fn open(&mut self, event: &Event, leader: Option<Handle>)
    -> std::result::Result<Handle, Errno>;
    /// Closes an event.
    fn close(&mut self, event: Handle);
    /// Starts a group.
    fn enable(&mut self, leader: Handle) -> std::result::Result<(), Errno>;
    /// Stops a group.
    fn disable(&mut self, leader: Handle) -> std::result::Result<(), Errno>;
    /// Reads what `read_format` gives, as words: with `group_read` nr, enabled, running and the
    /// values; else value, enabled, running.
    fn read(&mut self, leader: Handle, words: &mut Vec<u64>) -> std::result::Result<(), Errno>;
    /// Whether a group opened on ourselves gets counters when enabled on one of `cpus` (any, if
    /// `None`), waiting for at most `patience`. `None`: that cannot be tried here.
    fn runs(&mut self, leader: Handle, cpus: Option<&[u32]>, patience: Duration) -> Option<bool>;
    /// Opens a control group by its folder.
    fn open_cgroup(&mut self, folder: &Path) -> Result<Handle>;
    /// Allows more open files; whether that changed anything.
    fn raise_file_limit(&mut self) -> bool;
    /// The threads of a process.
    fn threads(&mut self, process: i32) -> std::result::Result<Vec<i32>, Errno>;
    /// Context switches so far of each thread of the processes that `tasks` are of.
    fn switches(&mut self, _tasks: &[i32]) -> Vec<(i32, u64)> {
        Vec::new()
    }
    /// Time that `cpus` have not idled, together, since some fixed moment. `None`: not known.
    fn busy(&mut self, cpus: &[u32]) -> Option<Duration>;

    /// Time since some fixed moment.
    fn now(&mut self) -> Duration;
    /// Forks the command; the child waits before exec. Returns its process id.
    fn prepare(&mut self, command: &Command) -> Result<i32>;
    /// Lets the child exec; errors are those of exec.
    fn start(&mut self) -> Result<()>;
    /// Wakes when this process has gone.
    fn watch(&mut self, process: i32) -> Result<()>;
    /// Waits until something happens or `until` has come.
    fn wait(&mut self, until: Option<Duration>) -> Wake;
    /// Sends a signal to the command.
    fn signal(&mut self, number: i32);
    /// Waits for the command to end: how, and what it used. `None`: not to be known (or none ran).
    fn reap(&mut self) -> Option<(Exit, Usage)>;
}
