//! The options that say what to measure: `report` and `record` share them.

use crate::cli::Global;
use clap::Args;
use engine::topdown::{Ask, LiveAsk};
use pmu::machine::parse_cpu_list;
use pmu::{Aggregate, Command, Target};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tma::{Error, Result};

#[derive(Args)]
pub struct MeasureArgs {
    /// A running process
    #[arg(short, long, value_name = "PID", help_heading = "What to measure")]
    pub pid: Option<i32>,
    /// One running thread
    #[arg(short, long, value_name = "TID", help_heading = "What to measure")]
    pub tid: Option<i32>,
    /// All CPUs
    #[arg(short, long, help_heading = "What to measure")]
    pub all: bool,
    /// These CPUs, such as 0-3,8
    #[arg(short = 'C', long, value_name = "CPUS", help_heading = "What to measure")]
    pub cpus: Option<String>,
    /// The processes of a control group (path below the cgroup mount)
    #[arg(long, value_name = "PATH", help_heading = "What to measure")]
    pub cgroup: Option<PathBuf>,

    /// Deepest level [default: the deepest that needs no multiplexing; of an import, the deepest complete one]
    #[arg(short, long, value_name = "N", value_parser = level, help_heading = "Which nodes")]
    pub level: Option<u32>,
    /// Nodes: ids, wildcards, tags; Memory_Bound*/4 below a node, L3_Bound^ with its ancestors
    #[arg(long, value_name = "LIST", help_heading = "Which nodes")]
    pub nodes: Option<String>,
    /// Add the bottlenecks view
    #[arg(long, help_heading = "Which nodes")]
    pub bottlenecks: bool,

    /// Wait MS milliseconds before counting
    #[arg(long, value_name = "MS", default_value = "0", help_heading = "How to measure")]
    pub delay: u64,
    /// Stop counting after S seconds
    #[arg(long, value_name = "S", help_heading = "How to measure")]
    pub duration: Option<f64>,
    /// One tree per hardware thread (with -a, -C) or per thread that exists when counting starts
    #[arg(long, group = "by", help_heading = "How to measure")]
    pub per_thread: bool,
    /// One tree per physical core (with -a, -C)
    #[arg(long, group = "by", help_heading = "How to measure")]
    pub per_core: bool,
    /// One tree per socket (with -a, -C)
    #[arg(long, group = "by", help_heading = "How to measure")]
    pub per_socket: bool,
    /// Do not count children and new threads
    #[arg(long, help_heading = "How to measure")]
    pub no_inherit: bool,
    /// Count user mode only
    #[arg(long, help_heading = "How to measure")]
    pub user: bool,
    /// Fail with status 3 where there is no core PMU to count with
    #[arg(long, help_heading = "How to measure")]
    pub require_pmu: bool,
}

/// `--level`, with the remedy in the message.
fn level(text: &str) -> std::result::Result<u32, String> {
    let number = text.parse().ok().filter(|n| (1..=9).contains(n));
    number.ok_or_else(|| {
        "levels count from 1; no tree is deeper than 9 and most end at 6 or before; `tdtool tables show` \
         lists them, and without --level the depth that needs no multiplexing is chosen"
            .to_owned()
    })
}

impl MeasureArgs {
    /// How many targets are named, a command aside.
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
    pub fn only_live(&self) -> [(&'static str, bool); 8] {
        [
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

    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<()> {
        if self.targets() > 1 {
            return Err(usage(
                "-p, -t, -a, -C and --cgroup exclude one another",
                "choose one of them; a command behind -- then only says how long to measure",
            ));
        }
        if let Some(seconds) = self.duration
            && !(seconds.is_finite() && seconds > 0.0 && seconds < 1e9)
        {
            return Err(usage("--duration takes seconds above 0", "for example --duration 2.5"));
        }
        Ok(())
    }

    /// Which nodes.
    pub fn ask(&self) -> Ask {
        Ask { level: self.level, nodes: self.nodes.clone(), bottlenecks: self.bottlenecks }
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
                usage(&format!("`{list}` is no list of CPUs"), "for example -C 0-3,8")
            })?;
            return Ok(Target::Cpus(cpus));
        }
        Ok(if self.all { Target::System } else { Target::Command })
    }

    /// The measurement they ask for, of `command` if it is not empty: one run, groups rotated.
    pub fn live(
        &self,
        global: &Global,
        command: &[OsString],
        stdout_to_stderr: bool,
    ) -> Result<LiveAsk> {
        let aggregate = match (self.per_thread, self.per_core, self.per_socket) {
            (true, ..) => Aggregate::Thread,
            (_, true, _) => Aggregate::Core,
            (.., true) => Aggregate::Socket,
            _ => Aggregate::All,
        };
        let run = || Command { argv: workload::resolve(command), stdout_to_stderr };
        Ok(LiveAsk {
            ask: self.ask(),
            uarch: global.uarch.clone(),
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
            require_pmu: self.require_pmu,
        })
    }
}

/// A usage error with its remedy.
pub fn usage(what: &str, hint: &str) -> Error {
    Error::usage(what).hint(hint)
}

/// That there is no tree and what to do, once and shortly, on standard error; `doctor` has the rest.
pub fn tell_blocked(outcome: &engine::topdown::Outcome) {
    if let Some(finding) = &outcome.blocked {
        let remedy = finding.remedy.as_deref().map(shortly);
        crate::failure::tell("note", &finding.what, None, remedy.as_deref());
    }
}

/// A remedy of up to two lines, or the first of more and where the others are.
fn shortly(remedy: &str) -> String {
    let mut lines = remedy.lines();
    match (lines.next(), lines.count()) {
        (Some(first), 2..) => {
            format!("{} (`tdtool doctor` has the settings)", first.trim_end_matches(':'))
        }
        _ => remedy.to_owned(),
    }
}

/// The command's own status; 128 + its number where a signal ended the measurement.
pub fn status(outcome: &engine::topdown::Outcome) -> u8 {
    let code = match outcome.interrupted {
        Some(signal) => 128 + signal,
        None => outcome.exit.map_or(0, |e| e.code()),
    };
    u8::try_from(code & 0xff).unwrap_or(1)
}
