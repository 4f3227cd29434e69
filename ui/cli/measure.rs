//! Shared by `report` and `record`: the options of a live measurement, its exit status, and a note if there is no
//! tree.

use super::options::Invalid;
use crate::message;
use crate::settings::Settings;
use clap::Args;
use engine::topdown::{Ask, LiveAsk, Outcome};
use pmu::machine::parse_cpu_list;
use pmu::{Aggregate, Command, Control, Stdout, Target};
use report::documents::Report;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tma::{Error, Result};

/// Headings of the options in `--help`.
pub const TARGET: &str = "What to measure";
pub const NODES: &str = "Nodes";
pub const MEASUREMENT: &str = "Measurement";

#[derive(Args)]
pub struct MeasureArgs {
    /// Measure a running process
    #[arg(short, long, value_name = "PID", value_parser = pid, help_heading = TARGET)]
    pub pid: Option<i32>,
    /// Measure a running thread
    #[arg(short, long, value_name = "TID", value_parser = tid, help_heading = TARGET)]
    pub tid: Option<i32>,
    /// Measure all CPUs
    #[arg(short, long, help_heading = TARGET)]
    pub all: bool,
    /// Measure these CPUs, such as 0-3,8
    #[arg(short = 'C', long, value_name = "CPUS", help_heading = TARGET)]
    pub cpus: Option<String>,
    /// Measure the processes of a cgroup (path below the cgroup mount)
    #[arg(long, value_name = "PATH", help_heading = TARGET)]
    pub cgroup: Option<PathBuf>,

    /// Deepest level [default: as far as counters go without multiplexing]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = level, help_heading = NODES)]
    pub level: Option<u32>,
    /// Nodes: ids, wildcards, tags, Memory_Bound*/4 (below), L3_Bound^ (ancestors)
    #[arg(long, value_name = "LIST", help_heading = NODES)]
    pub nodes: Option<String>,
    /// Add the bottlenecks view
    #[arg(long, help_heading = NODES)]
    pub bottlenecks: bool,

    /// Start counting after MS milliseconds
    #[arg(long, value_name = "MS", default_value = "0", help_heading = MEASUREMENT)]
    pub delay: u64,
    /// Stop counting after S seconds
    #[arg(long, alias = "seconds", value_name = "S", help_heading = MEASUREMENT)]
    pub duration: Option<f64>,
    /// Count only while enabled through a named pipe, as perf's --control
    #[arg(long, value_name = "PATH[,ACK]|fd:N[,ACK]", value_parser = control, help_heading = MEASUREMENT)]
    pub control: Option<Control>,
    /// One tree per CPU (with -a, -C), or per thread that exists at the start
    #[arg(long, group = "by", help_heading = MEASUREMENT)]
    pub per_thread: bool,
    /// One tree per physical core (with -a, -C)
    #[arg(long, group = "by", help_heading = MEASUREMENT)]
    pub per_core: bool,
    /// One tree per socket (with -a, -C)
    #[arg(long, group = "by", help_heading = MEASUREMENT)]
    pub per_socket: bool,
    /// Do not count child processes and new threads
    #[arg(long, help_heading = MEASUREMENT)]
    pub no_inherit: bool,
    /// Count user mode only
    #[arg(long, help_heading = MEASUREMENT)]
    pub user: bool,
    /// Exit with status 3 if there is no core PMU to count with
    #[arg(long, help_heading = MEASUREMENT)]
    pub require_pmu: bool,
}

/// A value of `--level`.
fn level(text: &str) -> std::result::Result<u32, Invalid> {
    let number = text.parse().ok().filter(|n| (1..=9).contains(n));
    number.ok_or(Invalid::Level)
}

/// A value of `--pid`.
pub fn pid(text: &str) -> std::result::Result<i32, Invalid> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| Invalid::Process(text.to_owned()))
}

/// A value of `--tid`.
fn tid(text: &str) -> std::result::Result<i32, Invalid> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or(Invalid::Thread)
}

/// A value of `--control`: `[fifo:]PATH[,ACK]` or `fd:N[,ACK]`, as of `perf stat`.
fn control(text: &str) -> std::result::Result<Control, Invalid> {
    let (is_number, names) = match (text.strip_prefix("fd:"), text.strip_prefix("fifo:")) {
        (Some(names), _) => (true, names),
        (None, names) => (false, names.unwrap_or(text)),
    };
    let path = |name: &str| match (name, is_number) {
        ("", _) => Err(Invalid::NoPipe),
        (name, false) => Ok(PathBuf::from(name)),
        // A descriptor that we have inherited.
        (name, true) => match name.parse::<u32>() {
            Ok(number) => Ok(PathBuf::from(format!("/proc/self/fd/{number}"))),
            Err(_) => Err(Invalid::Descriptor(name.to_owned())),
        },
    };
    match names.split_once(',') {
        None => Ok(Control { commands: path(names)?, ack: None }),
        Some((commands, ack)) => Ok(Control { commands: path(commands)?, ack: Some(path(ack)?) }),
    }
}

impl MeasureArgs {
    /// Number of targets given, not counting a command.
    pub fn targets(&self) -> usize {
        let named = [
            self.pid.is_some(),
            self.tid.is_some(),
            self.all,
            self.cpus.is_some(),
            self.cgroup.is_some(),
        ];
        named.iter().filter(|t| **t).count()
    }

    /// Options that only a live measurement has, and whether they are given.
    pub fn only_live(&self) -> [(&'static str, bool); 9] {
        [
            ("--control", self.control.is_some()),
            ("--per-thread", self.per_thread),
            ("--per-core", self.per_core),
            ("--per-socket", self.per_socket),
            ("--no-inherit", self.no_inherit),
            ("--user", self.user),
            ("--require-pmu", self.require_pmu),
            ("--delay", self.delay > 0),
            ("--duration", self.duration.is_some()),
        ]
    }

    /// The first option given that only a counted tree has.
    pub fn of_counts(&self) -> Option<&'static str> {
        let options = [
            ("--level", self.level.is_some()),
            ("--nodes", self.nodes.is_some()),
            ("--bottlenecks", self.bottlenecks),
        ];
        options.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// Refuses contradictory options.
    pub fn check(&self) -> Result<()> {
        if self.targets() > 1 {
            return Err(usage(
                "-p, -t, -a, -C and --cgroup exclude each other",
                "choose one of them; a command after -- then only sets how long to measure",
            ));
        }
        if self.control.is_some() && self.delay > 0 {
            return Err(usage(
                "--control and --delay exclude each other",
                "with --control counting begins when `enable` comes",
            ));
        }
        if let Some(seconds) = self.duration
            && !(seconds.is_finite() && seconds > 0.0 && seconds < 1e9)
        {
            return Err(usage("--duration takes seconds above 0", "for example --duration 2.5"));
        }
        Ok(())
    }

    /// The nodes they ask for.
    pub fn ask(&self) -> Ask {
        let (level, nodes) = (self.level, self.nodes.clone());
        Ask { level, nodes, bottlenecks: self.bottlenecks, ..Ask::default() }
    }

    fn target(&self) -> Result<Target> {
        if let Some(pid) = self.pid {
            return Ok(Target::Process(pid));
        }
        if let Some(tid) = self.tid {
            return Ok(Target::Thread(tid));
        }
        if let Some(path) = &self.cgroup {
            return Ok(Target::Cgroup(path.clone()));
        }
        if let Some(list) = &self.cpus {
            let cpus = parse_cpu_list(list).ok_or_else(|| {
                usage(&format!("`{list}` is not a list of CPUs"), "for example -C 0-3,8")
            })?;
            return Ok(Target::Cpus(cpus));
        }
        Ok(if self.all { Target::System } else { Target::Command })
    }

    /// The measurement they ask for, of `command` if that is not empty: one run, multiplexed.
    pub fn live(
        &self,
        settings: &Settings,
        command: &[OsString],
        stdout: Stdout,
    ) -> Result<LiveAsk> {
        let aggregate = match (self.per_thread, self.per_core, self.per_socket) {
            (true, ..) => Aggregate::Thread,
            (_, true, _) => Aggregate::Core,
            (.., true) => Aggregate::Socket,
            _ => Aggregate::All,
        };
        let run = || Command { argv: workload::resolve(command), stdout, ..Command::default() };
        Ok(LiveAsk {
            ask: self.ask(),
            uarch: settings.uarch.clone(),
            core: settings.core()?,
            target: self.target()?,
            command: (!command.is_empty()).then(run),
            typed: command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            aggregate,
            inherit: !self.no_inherit,
            user_only: self.user,
            multiplex: true,
            drilldown: false,
            repeats: 1,
            delay: Duration::from_millis(self.delay),
            duration: self.duration.map(Duration::from_secs_f64),
            interval: None,
            control: self.control.clone(),
            require_pmu: self.require_pmu,
        })
    }
}

/// A usage error with its remedy.
pub fn usage(what: &str, hint: &str) -> Error {
    Error::usage(what).hint(hint)
}

/// The command's own status; 128 + its number if a signal ended the measurement.
pub fn status(outcome: &Outcome) -> ExitCode {
    exit_code(match outcome.interrupted {
        Some(signal) => 128 + signal,
        None => outcome.exit.map_or(0, |e| e.code()),
    })
}

/// As a shell has it: the last eight bits of a status.
pub fn exit_code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status & 0xff).unwrap_or(1))
}

/// Notes once what becomes of an interrupted measurement: a further signal only ends the command sooner.
pub fn note_interrupted(is_noted: &mut bool, text: &str) {
    if !std::mem::replace(is_noted, true) {
        message::note(text);
    }
}

/// Prints why there is no tree, if there is none, and what to do; `tdtool doctor` has the rest.
pub fn note_blocked(outcome: &Outcome) {
    if let Some(finding) = &outcome.blocked {
        let remedy = finding.remedy.as_deref().map(shortened);
        message::print("note", &finding.what, None, remedy.as_deref());
    }
}

/// As [`note_blocked`], beside a text report: why there is no tree stands in place of the tree.
pub fn note_remedy(outcome: &Outcome) {
    match outcome.blocked.as_ref().and_then(|finding| finding.remedy.as_deref()) {
        Some(remedy) if outcome.report.nodes.iter().any(|node| node.no_pmu) => {
            message::note(&format!("for a measured tree: {}", shortened(remedy)));
        }
        _ => note_blocked(outcome),
    }
}

/// Notes an option that chooses among the nodes of a counted tree, where nothing was counted.
pub fn note_unused(measure: &MeasureArgs, report: &Report) {
    if let (Some(option), false) = (measure.of_counts(), report.is_counted()) {
        message::note(&format!("{option} has no effect: no node of the tree was counted"));
    }
}

/// A remedy of up to two lines, or the first of more and where the others are.
fn shortened(remedy: &str) -> String {
    let mut lines = remedy.lines();
    match (lines.next(), lines.count()) {
        (Some(first), 2..) => {
            format!("{} (`tdtool doctor -v` has the settings)", first.trim_end_matches(':'))
        }
        _ => remedy.to_owned(),
    }
}
