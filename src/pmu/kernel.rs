//! The collector's interface to the kernel: events, time, and the measured command.
//!
//! [`super::perf::Live`] is the real one; [`super::scripted::Scripted`] is simulated, so that all
//! decisions of the collector are tested without a PMU, without sleeping, and reproducibly.

use super::{Command, Control, Exit};
use crate::machine::Encoding;
use nix::errno::Errno;
use std::path::Path;
use std::time::Duration;
use tma::error::Result;

/// An open event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub usize);

/// The tasks whose events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// One thread, on any CPU.
    Task(i32),
    /// All tasks on the CPU.
    AllTasks,
    /// Members of an opened control group.
    Cgroup(Handle),
}

/// An event to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Event and modifiers.
    pub encoding: Encoding,
    /// Tasks or CPUs to count.
    pub subject: Subject,
    /// The CPU; `None`: all.
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

/// A command through the control pipe, in perf's words (`perf stat --control`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Events count and sample from now on.
    Enable,
    /// Events neither count nor sample from now on.
    Disable,
    /// Only an acknowledgement is asked for.
    Ping,
    /// Another word.
    Unknown,
}

/// Event that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The deadline has passed.
    Time,
    /// The command has ended.
    Exited,
    /// The watched process has ended.
    TargetEnded,
    /// A command came through the control pipe.
    Control(Order),
    /// A signal to this process; from a terminal the command has received it as well.
    Signal {
        /// Its number.
        number: i32,
        /// Sent by the terminal's driver to the whole foreground group.
        from_terminal: bool,
    },
}

/// Resource usage of the command, by wait4.
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
    /// Of its first thread, if it could be read: seconds that it ran, and that it was ready but did not run.
    pub scheduled: Option<(f64, f64)>,
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
    /// Runs this thread on a CPU, where reading its events causes no interrupt; `None`: wherever it ran before.
    fn visit(&mut self, _cpu: Option<u32>) {}
    /// The CPU this thread runs on, if known.
    fn here(&mut self) -> Option<u32> {
        None
    }
    /// Whether a group opened on this process or on a CPU gets counters within `timeout` after it is
    /// enabled; this process then runs on one of `cpus` (any if `None`). `None`: that cannot be tested.
    fn runs(&mut self, leader: Handle, cpus: Option<&[u32]>, timeout: Duration) -> Option<bool>;
    /// Opens a control group by its folder.
    fn open_cgroup(&mut self, folder: &Path) -> Result<Handle>;
    /// Raises the limit on open files; whether it was raised.
    fn raise_file_limit(&mut self) -> bool;
    /// The threads of a process.
    fn threads(&mut self, process: i32) -> std::result::Result<Vec<i32>, Errno>;
    /// Context switches so far of each thread of the processes of `tasks`.
    fn switches(&mut self, _tasks: &[i32]) -> Vec<(i32, u64)> {
        Vec::new()
    }
    /// Total non-idle time of `cpus` since a fixed moment; `None` if unknown.
    fn busy(&mut self, cpus: &[u32]) -> Option<Duration>;

    /// Time since a fixed moment.
    fn now(&mut self) -> Duration;
    /// A random number.
    fn seed(&mut self) -> u64 {
        let now = self.now().as_nanos() as u64;
        (now ^ u64::from(std::process::id()) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    /// Forks the command; the child waits before exec. Returns its process id.
    fn prepare(&mut self, command: &Command) -> Result<i32>;
    /// Lets the child exec; errors are those of exec.
    fn start(&mut self) -> Result<()>;
    /// Makes waits end when a command comes through this pipe.
    fn listen(&mut self, control: &Control) -> Result<()>;
    /// Acknowledges a command of the control pipe that was carried out, if that is asked for.
    fn acknowledge(&mut self);
    /// Makes waits end when this process has ended.
    fn watch(&mut self, process: i32) -> Result<()>;
    /// Waits for an event of [`Wake`], at most until `until`.
    fn wait(&mut self, until: Option<Duration>) -> Wake;
    /// Sends a signal to the command.
    fn signal(&mut self, number: i32);
    /// Waits for the command to end; its exit and usage. `None` if unknown, or none ran.
    fn reap(&mut self) -> Option<(Exit, Usage)>;
}
