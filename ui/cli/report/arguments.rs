//! The options of `tdtool report`, and what they mean to the engine.

use super::code::CodeArgs;
use crate::cli::Global;
use crate::commands::measure::{MeasureArgs, usage};
use clap::{Args, ValueEnum};
use engine::topdown::LiveAsk;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tma::Result;

#[derive(Args)]
#[command(after_help = "\
Examples:
  tdtool report -- ./program argument       the command's tree, or what can be counted here
  tdtool report --level 3 -p 4711 --duration 5
  tdtool report -a --interval 1000          the whole system, a report a second
  tdtool report --import stat.csv           counts recorded with perf stat -x,
  tdtool report perf.data --measure         hot code, and what its blocks cost by themselves
  tdtool report -- tdtool workload run pointer-chase --seconds 2")]
pub struct ReportArgs {
    /// A recording: a tdtool session, perf.data, or anything --import takes
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The command to run and measure
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,

    /// Counts recorded with perf stat -x, or -j, toplev --valcsv, event,value CSV; or perf.data
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "What to measure")]
    pub import: Vec<PathBuf>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// A report every MS milliseconds; of an import, one per recorded interval
    #[arg(short = 'I', long, value_name = "MS", num_args = 0..=1, default_missing_value = "1000", value_parser = milliseconds, help_heading = "How to measure")]
    pub interval: Option<u64>,
    /// Run the command N times; the ± is over the runs
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "How to measure")]
    pub repeat: u32,
    /// One run of the command per group of events instead of rotating them
    #[arg(long, help_heading = "How to measure")]
    pub no_multiplex: bool,
    /// Level 1 first, then only below what is flagged, until a leaf
    #[arg(long, conflicts_with_all = ["level", "nodes", "no_multiplex"], help_heading = "How to measure")]
    pub drilldown: bool,

    #[command(flatten)]
    pub code: CodeArgs,

    /// Every node and metric, the counts behind them, why a ± is missing
    #[arg(short, long, help_heading = "How to show it")]
    pub verbose: bool,
    /// How to print it
    #[arg(long, value_enum, default_value = "text", help_heading = "How to show it")]
    pub format: Format,
    /// Write the report to FILE; the command's own output stays untouched
    #[arg(short, long, value_name = "FILE", help_heading = "How to show it")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

/// Shorter intervals cost more than what they measure.
const SHORTEST_INTERVAL: u64 = 10;

/// `--interval`, with the remedy in the message.
fn milliseconds(text: &str) -> std::result::Result<u64, String> {
    let number: u64 = text.parse().map_err(|_| {
        "it is given in milliseconds, as a whole number; try --interval 1000".to_owned()
    })?;
    if number < SHORTEST_INTERVAL {
        return Err(format!(
            "an interval has at least {SHORTEST_INTERVAL} ms: reading the counters would take up most \
             of a shorter one; try --interval 1000, a report a second"
        ));
    }
    Ok(number)
}

impl ReportArgs {
    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<()> {
        self.measure.check()?;
        let live = self.measure.targets() > 0;
        let import = !self.files().is_empty();
        if import && (live || !self.command.is_empty()) {
            return Err(usage(
                "recorded counts and a live measurement exclude one another",
                "leave out the file, or the command and its target",
            ));
        }
        if import && self.code.counts {
            return Err(usage(
                "--counts needs the program itself: a recording cannot be run",
                "tdtool report --counts -- COMMAND, or -p PID; --measure works on recordings",
            ));
        }
        let only_live = [
            ("--repeat", self.repeat > 1),
            ("--no-multiplex", self.no_multiplex),
            ("--drilldown", self.drilldown),
        ];
        let only_live = only_live.into_iter().chain(self.measure.only_live());
        if let (true, Some((option, _))) = (import, only_live.into_iter().find(|(_, given)| *given))
        {
            return Err(usage(
                &format!("{option} has no meaning for recorded counts"),
                "leave it out; --level, --nodes, --interval and --format work on recordings",
            ));
        }
        if !import && !live && self.command.is_empty() {
            return Err(usage(
                "nothing to report on",
                "tdtool report -- COMMAND, or -p PID, -a, FILE; `tdtool report --help` has examples",
            ));
        }
        if live && self.command.is_empty() && self.drilldown && self.measure.duration.is_none() {
            return Err(usage(
                "--drilldown without a command needs --duration S",
                "each level is then measured for S seconds",
            ));
        }
        Ok(())
    }

    /// Whether folded stacks are wanted and nothing else: no other answer was asked for.
    pub fn stacks_only(&self) -> bool {
        let code = &self.code;
        code.folded.is_some()
            && code.callers.is_none()
            && !code.measure
            && self.output.is_none()
            && self.format == Format::Text
            && self.interval.is_none()
            && !self.verbose
    }

    /// The files to import.
    pub fn files(&self) -> Vec<PathBuf> {
        self.file.iter().chain(&self.import).cloned().collect()
    }

    /// The live measurement they ask for.
    pub fn live(&self, global: &Global) -> Result<LiveAsk> {
        let document = self.output.is_none() && self.format != Format::Text;
        let to_stdout = document || self.code.folds_to_stdout();
        Ok(LiveAsk {
            multiplex: !self.no_multiplex,
            drilldown: self.drilldown,
            repeats: self.repeat,
            interval: self.interval.map(Duration::from_millis),
            ..self.measure.live(global, &self.command, to_stdout)?
        })
    }
}
