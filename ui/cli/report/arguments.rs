//! The options of `tdtool report`, and the measurement they ask for.

use super::code_options::CodeArgs;
use crate::cli::measure::{MEASUREMENT, MeasureArgs, TARGET, usage};
use crate::cli::options::Invalid;
use crate::settings::Settings;
use clap::{Args, ValueEnum};
use engine::topdown::LiveAsk;
use profile::counts::formats_of_tools;
use report::files::{as_command, is_command, is_stdout};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tma::shell::quoted;
use tma::{Error, Result};

const OUTPUT: &str = "Output";
/// Options of other measurements than that of regions.
const NOT_OF_REGIONS: [&str; 24] = [
    "import",
    "level",
    "nodes",
    "bottlenecks",
    "delay",
    "control",
    "per_thread",
    "no_inherit",
    "user",
    "require_pmu",
    "interval",
    "repeat",
    "no_multiplex",
    "drilldown",
    "counts",
    "measure",
    "locate",
    "folded",
    "flamegraph",
    "pprof",
    "callgrind",
    "firefox",
    "trace",
    "html",
];

#[derive(Args)]
#[command(after_help = "\
Examples:
  tdtool report -- ./program argument       a command's tree, or what can be counted here
  tdtool report --level 3 -p 4711 --duration 5
  tdtool report -a --interval 1000          the whole system, one report per second
  tdtool report --import stat.csv           counts recorded with perf stat -x,
  tdtool report perf.data --measure         hot code, its blocks measured in isolation
  tdtool report --estimate -- tdtool workload run pointer-chase --size 32M --seconds 1

The text report of a command is on standard error, as standard output is the
command's; of files, processes and the system it is on standard output. With
another --format the report is there, and the command's output on standard error.")]
pub struct ReportArgs {
    /// Recording to report on: a session, perf.data, or anything --import takes
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Command to run and measure; its text report goes to standard error
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,

    #[arg(long, value_name = "FILE", num_args = 1.., help = import_help(), help_heading = TARGET)]
    pub import: Vec<PathBuf>,
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Report every MS milliseconds; for imports, every recorded interval
    #[arg(short = 'I', long, value_name = "MS", num_args = 0..=1, default_missing_value = "1000", value_parser = milliseconds, help_heading = MEASUREMENT)]
    pub interval: Option<u64>,
    /// Run the command N times; ± is then over the runs
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = MEASUREMENT)]
    pub repeat: u32,
    /// Run the command once per group of events instead of multiplexing
    #[arg(long, help_heading = MEASUREMENT)]
    pub no_multiplex: bool,
    /// Measure level 1, then only below flagged nodes, down to a leaf
    #[arg(long, conflicts_with_all = ["level", "nodes", "no_multiplex"], help_heading = MEASUREMENT)]
    pub drilldown: bool,

    /// Regions that the command marks (tdtool.h): entries, times, a tree each
    #[arg(long, conflicts_with_all = NOT_OF_REGIONS, help_heading = MEASUREMENT)]
    pub regions: bool,
    /// Also a function, lib:start..lib:end (USDT probes) or FILE.c:10..20 (lines)
    #[arg(long, value_name = "WHAT", conflicts_with_all = NOT_OF_REGIONS, help_heading = MEASUREMENT)]
    pub region: Vec<String>,
    /// With --regions: ELF file with markers, repeatable [default: the program]
    #[arg(long, value_name = "FILE", help_heading = MEASUREMENT)]
    pub module: Vec<PathBuf>,

    #[command(flatten)]
    pub code: CodeArgs,

    /// Show all nodes and metrics, their counts, and why a ± is missing
    #[arg(short, long, help_heading = OUTPUT)]
    pub verbose: bool,
    /// Print the report only: no notes, progress or next steps
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text", help_heading = OUTPUT)]
    pub format: Format,
    /// Write the report to FILE (-: standard output)
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
    /// Write a page with tree, code, stacks and --interval chart to FILE; no report
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// Write samples and intervals to FILE for the Firefox Profiler; no report
    #[arg(long, value_name = "FILE", conflicts_with = "no_code", help_heading = OUTPUT)]
    pub firefox: Option<PathBuf>,
    /// Write --interval as counters to FILE for Perfetto, chrome://tracing; no report
    #[arg(long, value_name = "FILE", requires = "interval", help_heading = OUTPUT)]
    pub trace: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

/// The help of `--import`.
fn import_help() -> String {
    format!("Import counts: {}", formats_of_tools())
}

/// Shortest interval in milliseconds: reading the counters would dominate shorter ones.
const SHORTEST_INTERVAL: u64 = 10;

/// A value of `--interval`.
fn milliseconds(text: &str) -> std::result::Result<u64, Invalid> {
    match text.parse() {
        Ok(number) if number < SHORTEST_INTERVAL => Err(Invalid::Short(SHORTEST_INTERVAL)),
        Ok(number) => Ok(number),
        Err(_) => Err(Invalid::Interval),
    }
}

/// Refuses two outputs of one name, and an output over the program to be run.
fn outputs_are_apart(outputs: &[&Option<PathBuf>], program: Option<&OsString>) -> Result<()> {
    let to_stdout = outputs.iter().filter(|path| path.as_deref().is_some_and(is_stdout)).count();
    if to_stdout > 1 {
        return Err(usage(
            "standard output is named for two outputs",
            "write one of them to a file",
        ));
    }
    let named = |path: &&PathBuf| !is_stdout(path);
    let written: Vec<&PathBuf> =
        outputs.iter().filter_map(|path| path.as_ref()).filter(named).collect();
    // Links and other spellings are the same file.
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    };
    for (number, path) in written.iter().enumerate() {
        if program.is_some_and(|program| same(Path::new(program), path)) {
            let what = format!("{} is the command", path.display());
            return Err(usage(&what, "write to another file"));
        }
        if written[..number].iter().any(|other| same(other, path)) {
            let what = format!("{} is named for two outputs", path.display());
            return Err(usage(&what, "write each to a file of its own"));
        }
    }
    Ok(())
}

impl ReportArgs {
    /// Whether regions are asked for, and nothing else.
    pub fn is_of_regions(&self) -> bool {
        self.regions || !self.region.is_empty()
    }

    /// Refuses contradictory options.
    pub fn check(&self) -> Result<()> {
        if !self.module.is_empty() {
            return Err(usage(
                "--module names files with markers",
                "`tdtool report --regions --module FILE -- COMMAND`",
            ));
        }
        self.measure.check()?;
        if self.code.budget.is_some_and(|seconds| !(0.0..1e9).contains(&seconds)) {
            return Err(usage("--budget takes seconds, 0 or more", "for example --budget 30"));
        }
        let live = self.measure.targets() > 0;
        let import = !self.files().is_empty();
        if import && (live || !self.command.is_empty()) {
            return Err(usage(
                "recorded counts and a live measurement exclude each other",
                "leave out the file, or the command and its target",
            ));
        }
        if let Some(error) = self.not_a_recording() {
            return Err(error);
        }
        let runs_again = [
            (
                "--counts",
                self.code.counts,
                "`tdtool report --counts -- COMMAND` or `tdtool report --counts -p PID`",
            ),
            ("--estimate", self.code.estimate, "`tdtool report --estimate -- COMMAND`"),
        ];
        if let Some((option, _, instead)) = runs_again.iter().find(|(_, given, _)| import && *given)
        {
            return Err(usage(
                &format!("{option} runs the program again, which a recording does not allow"),
                &format!("{instead}; --measure works with recordings"),
            ));
        }
        let outputs = self.outputs().map(|(path, _)| path);
        outputs_are_apart(&outputs, self.command.first())?;
        if self.exports_to_stdout() && self.output.is_none() && self.format != Format::Text {
            return Err(usage(
                "the report and another output would both be on standard output",
                "write the report to a file with --output, or leave out --format",
            ));
        }
        let only_live = [
            ("--repeat", self.repeat > 1),
            ("--no-multiplex", self.no_multiplex),
            ("--drilldown", self.drilldown),
            ("--locate", self.code.locate),
        ];
        let only_live = only_live.into_iter().chain(self.measure.only_live());
        if let (true, Some((option, _))) = (import, only_live.into_iter().find(|(_, given)| *given))
        {
            return Err(usage(
                &format!("{option} does not apply to recorded counts"),
                "leave it out; --level, --nodes, --interval and --format work with recordings",
            ));
        }
        let runs = [
            ("-r", self.repeat > 1),
            ("--no-multiplex", self.no_multiplex),
            ("--drilldown", self.drilldown),
            ("--counts", self.code.counts),
            ("--estimate", self.code.estimate),
            ("--measure", self.code.measure),
        ];
        if let (true, Some((option, _))) =
            (self.measure.control.is_some(), runs.into_iter().find(|(_, given)| *given))
        {
            return Err(usage(
                &format!("--control is of one run, and {option} needs several"),
                &format!("leave out {option}"),
            ));
        }
        if !import && !live && self.command.is_empty() {
            return Err(usage(
                "nothing to report on",
                &format!(
                    "`tdtool report {}-- COMMAND`; also a recording, or -p PID; `tdtool report --help` has examples",
                    self.of_code()
                ),
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

    /// Error where a program is given in place of a recording.
    fn not_a_recording(&self) -> Option<Error> {
        let file = self.file.as_ref().filter(|file| is_command(file))?;
        let what = format!("{}: this is a program, not a recording", file.display());
        let (options, words) = (self.of_code(), quoted(&[as_command(file)]));
        Some(usage(&what, &format!("to measure it: `tdtool report {options}-- {words}`")))
    }

    /// The options given that ask more of the code of a command, each with a blank after it.
    fn of_code(&self) -> String {
        let options = [
            ("--measure ", self.code.measure),
            ("--counts ", self.code.counts),
            ("--estimate ", self.code.estimate),
        ];
        options.into_iter().filter_map(|(option, given)| given.then_some(option)).collect()
    }

    /// The files to write, and their options.
    pub fn outputs(&self) -> [(&Option<PathBuf>, &'static str); 9] {
        let code = &self.code;
        [
            (&self.output, "--output"),
            (&self.html, "--html"),
            (&self.firefox, "--firefox"),
            (&self.trace, "--trace"),
            (&code.folded, "--folded"),
            (&code.flamegraph, "--flamegraph"),
            (&code.pprof, "--pprof"),
            (&code.callgrind, "--callgrind"),
            (&code.evidence, "--evidence"),
        ]
    }

    /// Whether something else than the report goes to standard output.
    fn exports_to_stdout(&self) -> bool {
        let [_, exports @ ..] = self.outputs();
        exports.iter().any(|(path, _)| path.as_deref().is_some_and(is_stdout))
    }

    /// Whether files are written when all documents of the measurement are there.
    pub fn collects(&self) -> bool {
        self.html.is_some() || self.firefox.is_some() || self.trace.is_some()
    }

    /// Whether the output has the counts behind each node.
    pub fn shows_counts(&self) -> bool {
        self.format == Format::Json || self.verbose || self.collects()
    }

    /// Whether folded stacks or a flame graph are the only output asked for.
    pub fn stacks_only(&self) -> bool {
        let code = &self.code;
        let files = [&code.folded, &code.flamegraph, &code.pprof, &code.callgrind];
        files.iter().any(|path| path.is_some())
            && !self.collects()
            && code.callers.is_none()
            && code.callees.is_none()
            && code.annotate.is_none()
            && !code.measure
            && self.output.is_none()
            && self.format == Format::Text
            && self.interval.is_none()
            && !self.verbose
    }

    /// Whether a page, or a file for another tool, is all that is asked for.
    pub fn page_only(&self) -> bool {
        self.collects() && self.output.is_none() && self.format == Format::Text && !self.verbose
    }

    /// The recordings to read.
    pub fn files(&self) -> Vec<PathBuf> {
        self.file.iter().chain(&self.import).cloned().collect()
    }

    /// The live measurement they ask for.
    pub fn live(&self, settings: &Settings) -> Result<LiveAsk> {
        let document = self.output.is_none() && self.format != Format::Text;
        let to_stdout = document || self.exports_to_stdout();
        let live = self.measure.live(settings, &self.command, pmu::Stdout::beside(to_stdout))?;
        let code = &self.code;
        let several = self.repeat > 1
            || self.no_multiplex
            || self.drilldown
            || code.measure
            || code.counts
            || code.estimate;
        let command = live.command.map(|of| if several { of.run_again() } else { of });
        Ok(LiveAsk {
            command,
            multiplex: !self.no_multiplex,
            drilldown: self.drilldown,
            repeats: self.repeat,
            interval: self.interval.map(Duration::from_millis),
            ..live
        })
    }
}
