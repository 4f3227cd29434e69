//! The options of `tdtool report`, and what they mean to the engine.

use super::usage;
use crate::cli::Global;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tdtool::Result;
use tdtool::analysis::{Ask, LiveAsk};
use tdtool::collect::{Aggregate, Command, Target};
use tdtool::machine::parse_cpu_list;

#[derive(Args)]
#[command(after_help = "\
Examples:
  tdtool report -- ./program argument       the command's tree, or what can be counted here
  tdtool report --level 3 -p 4711 --duration 5
  tdtool report -a --interval 1000          the whole system, a report a second
  tdtool report --import stat.csv           counts recorded with perf stat -x,
  tdtool report -- tdtool workload run pointer-chase --seconds 2")]
pub struct ReportArgs {
    /// Recorded counts: a tdtool session, or anything --import takes
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The command to run and measure
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,

    /// Counts recorded with perf stat -x, or -j, toplev --valcsv, or event,value CSV
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "What to measure")]
    pub import: Vec<PathBuf>,
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
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9), help_heading = "What to show")]
    pub level: Option<u32>,
    /// Nodes: ids, wildcards, tags; Memory_Bound*/4 below a node, L3_Bound^ with its ancestors
    #[arg(long, value_name = "LIST", help_heading = "What to show")]
    pub nodes: Option<String>,
    /// Add the bottlenecks view
    #[arg(long, help_heading = "What to show")]
    pub bottlenecks: bool,
    /// Every node and metric, the counts behind them, why a ± is missing
    #[arg(short, long, help_heading = "What to show")]
    pub verbose: bool,
    /// How to print it
    #[arg(long, value_enum, default_value = "text", help_heading = "What to show")]
    pub format: Format,
    /// Write the report to FILE; the command's own output stays untouched
    #[arg(short, long, value_name = "FILE", help_heading = "What to show")]
    pub output: Option<PathBuf>,

    /// A report every MS milliseconds; of an import, one per recorded interval
    #[arg(short = 'I', long, value_name = "MS", num_args = 0..=1, default_missing_value = "1000", value_parser = clap::value_parser!(u64).range(10..), help_heading = "How to measure")]
    pub interval: Option<u64>,
    /// Wait MS milliseconds before counting
    #[arg(long, value_name = "MS", default_value = "0", help_heading = "How to measure")]
    pub delay: u64,
    /// Stop counting after S seconds
    #[arg(long, value_name = "S", help_heading = "How to measure")]
    pub duration: Option<f64>,
    /// Run the command N times; the ± is over the runs
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "How to measure")]
    pub repeat: u32,
    /// One run of the command per group of events instead of rotating them
    #[arg(long, help_heading = "How to measure")]
    pub no_multiplex: bool,
    /// Level 1 first, then only below what is flagged, until a leaf
    #[arg(long, conflicts_with_all = ["level", "nodes"], help_heading = "How to measure")]
    pub drilldown: bool,
    /// One tree per hardware thread (with -a, -C) or per thread of the program
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

impl ReportArgs {
    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<()> {
        let targets = [
            self.pid.is_some(),
            self.tid.is_some(),
            self.all,
            self.cpus.is_some(),
            self.cgroup.is_some(),
        ];
        let live = targets.iter().filter(|t| **t).count();
        let import = !self.files().is_empty();
        if live > 1 {
            return Err(usage(
                "-p, -t, -a, -C and --cgroup exclude one another",
                "choose one of them; a command behind -- then only says how long to measure",
            ));
        }
        if import && (live > 0 || !self.command.is_empty()) {
            return Err(usage(
                "recorded counts and a live measurement exclude one another",
                "leave out the file, or the command and its target",
            ));
        }
        if !import && live == 0 && self.command.is_empty() {
            return Err(usage(
                "nothing to report on",
                "tdtool report -- COMMAND, or -p PID, -a, FILE; `tdtool report --help` has examples",
            ));
        }
        if live > 0 && self.command.is_empty() && self.drilldown && self.duration.is_none() {
            return Err(usage(
                "--drilldown without a command needs --duration S",
                "each level is then measured for S seconds",
            ));
        }
        if let Some(seconds) = self.duration
            && !(seconds.is_finite() && seconds > 0.0 && seconds < 1e9)
        {
            return Err(usage("--duration takes seconds above 0", "for example --duration 2.5"));
        }
        Ok(())
    }

    /// The files to import.
    pub fn files(&self) -> Vec<PathBuf> {
        self.file.iter().chain(&self.import).cloned().collect()
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

    /// The live measurement they ask for.
    pub fn live(&self, global: &Global) -> Result<LiveAsk> {
        let aggregate = match (self.per_thread, self.per_core, self.per_socket) {
            (true, ..) => Aggregate::Thread,
            (_, true, _) => Aggregate::Core,
            (.., true) => Aggregate::Socket,
            _ => Aggregate::All,
        };
        let to_stdout = self.output.is_none() && self.format != Format::Text;
        let command = (!self.command.is_empty()).then(|| Command {
            argv: tdtool::workload::resolve(&self.command),
            stdout_to_stderr: to_stdout,
        });
        Ok(LiveAsk {
            ask: self.ask(),
            uarch: global.uarch.clone(),
            target: self.target()?,
            command,
            typed: self.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            aggregate,
            inherit: !self.no_inherit,
            user_only: self.user,
            multiplex: !self.no_multiplex,
            drilldown: self.drilldown,
            repeats: self.repeat,
            delay: Duration::from_millis(self.delay),
            duration: self.duration.map(Duration::from_secs_f64),
            interval: self.interval.map(Duration::from_millis),
            require_pmu: self.require_pmu,
        })
    }
}
