//! A request to count events of tasks or CPUs ([`Request`]), and the counts ([`Measurement`]).

use crate::Input;
use crate::machine::Machine;
use serde::{Deserialize, Serialize, Serializer};
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tma::counts::Counts;
use tma::quantity::{Measured, Missing};
use tma::tables::{EventId, Table};

/// The tasks or CPUs to count; sessions and reports have it by these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The request's command and, by default, its children.
    Command,
    /// A running process: all its threads, and children it starts from now on.
    Process(i32),
    /// One running thread.
    Thread(i32),
    /// Every online CPU.
    System,
    /// These CPUs.
    Cpus(Vec<u32>),
    /// The processes of a control group: a folder, absolute or below the cgroup mount.
    Cgroup(#[serde(serialize_with = "lossy")] PathBuf),
}

impl Target {
    /// Whether whole CPUs are counted (each with its own counters), not tasks.
    pub fn is_by_cpu(&self) -> bool {
        matches!(self, Target::System | Target::Cpus(_) | Target::Cgroup(_))
    }
}

/// A path as a text, whatever its bytes are.
fn lossy<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// How counts are aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregate {
    /// One set of counts.
    #[default]
    All,
    /// One for each CPU where whole CPUs are counted (`cpu3`), else for each thread (`tid 4711`).
    Thread,
    /// One for each physical core; whole CPUs only.
    Core,
    /// One for each socket; whole CPUs only.
    Socket,
}

/// A program to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments; the program is looked up in `PATH`.
    pub argv: Vec<OsString>,
    /// The file that is run in place of this program, under its name.
    pub file: Option<PathBuf>,
    /// Where its standard output goes.
    pub stdout: Stdout,
    /// Its standard input, if each run is to read the same ([`Command::run_again`]).
    pub stdin: Option<Input>,
}

impl Command {
    /// The same command, each run of which reads the same standard input.
    pub fn run_again(self) -> Self {
        Self { stdin: Input::own(), ..self }
    }
}

/// Where the standard output of a command goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stdout {
    /// Where ours goes.
    #[default]
    Ours,
    /// To standard error, as ours carries a document.
    Stderr,
    /// Nowhere, as it repeats that of an earlier run: it is read and dropped. `/dev/null` stays what it is; it is not
    /// used for others, as programs do less where nobody reads (GNU grep ends at the first match).
    Dropped,
    /// To this open file of ours.
    Into(RawFd),
}

impl Stdout {
    /// That of a command beside a document of ours, which `takes` standard output or not.
    pub fn beside(takes: bool) -> Self {
        if takes { Self::Stderr } else { Self::Ours }
    }
}

/// Named pipes that switch counting on and off, as of `perf stat --control`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Where commands come from, one a line.
    pub commands: PathBuf,
    /// Where `ack` goes when one was carried out.
    pub ack: Option<PathBuf>,
}

/// Events to count on one kind of core.
#[derive(Debug, Clone)]
pub struct CorePlan<'a> {
    /// The table the event ids belong to.
    pub table: &'a Table,
    /// The groups, most important first.
    pub groups: &'a [Vec<EventId>],
    /// Name of the PMU that counts them ([`crate::machine::TableMatch::pmu`]); `None`: there is
    /// none, and every group is missing for that reason.
    pub pmu: Option<String>,
}

/// A measurement to make.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The machine it is made on.
    pub machine: &'a Machine,
    /// Events to count, for each kind of core.
    pub cores: Vec<CorePlan<'a>>,
    /// The tasks or CPUs to count.
    pub target: Target,
    /// The program to run; required by [`Target::Command`]; for other targets, counting ends when it ends.
    pub command: Option<Command>,
    /// How counts are aggregated.
    pub aggregate: Aggregate,
    /// Count children and new threads as well.
    pub inherit: bool,
    /// Never count kernel mode.
    pub user_only: bool,
    /// Multiplex groups; otherwise the command runs once per group.
    pub multiplex: bool,
    /// How often to repeat all of it (at least 1); only with a command.
    pub repeats: u32,
    /// Time to let pass before counting starts.
    pub delay: Duration,
    /// Time after which counting ends, if the target does not end before.
    pub duration: Option<Duration>,
    /// Length of an interval for the stream of [`Interval`]s.
    pub interval: Option<Duration>,
    /// Pipes that switch counting on and off; it begins off then.
    pub control: Option<Control>,
}

impl<'a> Request<'a> {
    /// A request with the ordinary settings: children counted, groups multiplexed, one run.
    pub fn new(machine: &'a Machine, cores: Vec<CorePlan<'a>>, target: Target) -> Self {
        Self {
            machine,
            cores,
            target,
            command: None,
            aggregate: Aggregate::All,
            inherit: true,
            user_only: false,
            multiplex: true,
            repeats: 1,
            delay: Duration::ZERO,
            duration: None,
            interval: None,
            control: None,
        }
    }

    /// How often the command will run.
    pub fn runs(&self) -> u32 {
        let groups: usize = self.cores.iter().map(|c| c.groups.len()).sum();
        let each = if self.multiplex { 1 } else { groups.max(1) };
        self.repeats.max(1).saturating_mul(u32::try_from(each).unwrap_or(u32::MAX))
    }
}

/// Counts that the kernel has without a PMU.
#[derive(Debug, Clone, PartialEq)]
pub struct Software {
    /// Wall time from the first to the last moment counted.
    pub wall: Duration,
    /// CPU time in seconds; for whole CPUs their non-idle time by /proc/stat, in steps of 10 ms each.
    pub task_clock: Measured,
    /// Half width of its 95 % confidence interval in seconds, if it is not exact.
    pub task_clock_error: Option<f64>,
    /// Context switches.
    pub context_switches: Measured,
    /// Migrations of a task to another CPU.
    pub migrations: Measured,
    /// Page faults, minor and major.
    pub page_faults: Measured,
    /// Page faults that needed I/O.
    pub major_faults: Measured,
    /// Seconds that a program of one thread was ready but did not run.
    pub queued: Measured,
}

impl Software {
    /// All missing for this reason.
    pub fn missing(why: &Missing) -> Self {
        let none = || Err(why.clone());
        Self {
            wall: Duration::ZERO,
            task_clock: none(),
            task_clock_error: None,
            context_switches: none(),
            migrations: none(),
            page_faults: none(),
            major_faults: none(),
            queued: none(),
        }
    }

    /// CPU seconds per second of wall time.
    pub fn cpus_used(&self) -> Measured {
        let wall = self.wall.as_secs_f64();
        if wall <= 0.0 {
            return Err(Missing::Undefined("no time passed".into()));
        }
        self.task_clock.clone().map(|t| t / wall)
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Exit {
    /// The exit status of a shell: the status, or 128 + the signal.
    pub fn code(self) -> i32 {
        match self {
            Exit::Status(status) => status,
            Exit::Signal(signal) => 128 + signal,
        }
    }
}

/// One interval of a running measurement.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Which run of the command, from 0.
    pub run: u32,
    /// Begin and end since counting started.
    pub span: (Duration, Duration),
    /// Counts of the interval, as in [`Measurement::counts`].
    pub counts: Vec<Counts>,
    /// Software counts of the interval.
    pub software: Software,
}

/// Progress of a measurement.
#[derive(Debug, Clone)]
pub enum Progress {
    /// An interval is complete.
    Interval(Box<Interval>),
    /// A signal ends the measurement: the command has received it, and its end is awaited.
    Interrupted {
        /// The signal's number.
        signal: i32,
    },
}

/// A finished measurement.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Counts for each kind of core and scope, over all runs.
    pub counts: Vec<Counts>,
    /// With several repeats, the same for each of them.
    pub repeats: Vec<Vec<Counts>>,
    /// Software counts: the mean of all runs of the command.
    pub software: Software,
    /// Software counts of each run.
    pub runs: Vec<Software>,
    /// How the command ended: the first unsuccessful run, otherwise the last.
    pub exit: Option<Exit>,
    /// The signal that ended the measurement early.
    pub interrupted: Option<i32>,
    /// Whether only user mode was counted.
    pub user_only: bool,
    /// CPU time spent on each kind of core of a hybrid, by table name, where tasks were counted.
    pub core_time: Vec<(String, Duration)>,
    /// Facts that a report must state, each once.
    pub notes: Vec<String>,
    /// Notes in `notes` on the control pipe: times and counts are not of the whole run.
    pub of_control: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    /// Sessions and reports have these names.
    #[test]
    fn targets_have_fixed_names() {
        for (target, text) in [
            (Target::Command, r#""command""#),
            (Target::Process(7), r#"{"process":7}"#),
            (Target::Thread(8), r#"{"thread":8}"#),
            (Target::System, r#""system""#),
            (Target::Cpus(vec![0, 2]), r#"{"cpus":[0,2]}"#),
            (Target::Cgroup("a b".into()), r#"{"cgroup":"a b"}"#),
        ] {
            assert_eq!(serde_json::to_string(&target).unwrap(), text);
            assert_eq!(serde_json::from_str::<Target>(text).unwrap(), target);
        }
        let odd = Target::Cgroup(OsString::from_vec(b"a\xff".to_vec()).into());
        assert_eq!(serde_json::to_string(&odd).unwrap(), "{\"cgroup\":\"a\u{fffd}\"}");
    }
}
