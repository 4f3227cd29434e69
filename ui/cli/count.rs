//! `tdtool count`: exact counts of chosen functions of a command or a live process, by probes.

use super::files::{error_page, page, print};
use super::measure::exit_code;
use super::options::{Global, Invalid};
use super::progress::{self, Progress};
use crate::message;
use crate::settings::Settings;
use clap::{Args, ValueEnum};
use engine::count::{CountAsk, counted};
use engine::hot::hottest::hottest;
use engine::steps::Callback;
use engine::topdown::{Ask, LiveAsk};
use pmu::{Command, Target};
use report::files::{check_place, write_whole};
use report::render::{count, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tma::{Error, Result};

#[derive(Args)]
pub struct CountArgs {
    /// Functions by name or address (0x4327), separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    functions: Vec<String>,
    /// ELF file with the functions, repeatable [default: the program's own]
    #[arg(long, value_name = "FILE")]
    module: Vec<PathBuf>,
    /// Model mispredicted branches: a further run (output repeated) or window
    #[arg(long)]
    branches: bool,
    /// Count the functions that hold most samples of a run before; output repeated
    #[arg(long, conflicts_with_all = ["functions", "module"])]
    hot: bool,
    /// With --hot: the share of the samples, in percent
    #[arg(long, value_name = "PERCENT", default_value = "90", requires = "hot", value_parser = percent)]
    share: f64,
    /// Also run the command without probes, for the cost; its output is repeated
    #[arg(long)]
    plain: bool,
    /// Registers at entries of functions, loops, blocks at ADDRESS: one run more
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', num_args = 0.., require_equals = true, value_parser = address)]
    values: Option<Vec<u64>>,
    /// Patterns and cache levels of hot loads: two runs more (output repeated)
    #[arg(long)]
    loads: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Show blocks and branches with few executions, and what the model rests on
    #[arg(short, long)]
    verbose: bool,
    /// Write to FILE instead
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Count a running process for a while instead of a command
    #[arg(short, long, value_name = "PID", value_parser = super::measure::pid, conflicts_with = "command")]
    pid: Option<i32>,
    /// With -p: seconds of each window: sampled (--hot), counted, … [default: 1]
    #[arg(long, alias = "duration", value_name = "N", value_parser = seconds)]
    seconds: Option<Duration>,
    /// The command; text about it goes to standard error, about -p to standard output
    #[arg(last = true, required_unless_present = "pid", value_name = "CMD")]
    command: Vec<OsString>,
}

/// How long a process is counted.
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Callgrind,
}

pub fn seconds(text: &str) -> std::result::Result<Duration, Invalid> {
    let seconds = text.parse::<f64>().ok().filter(|s| *s > 0.0 && *s <= 86400.0);
    seconds.map(Duration::from_secs_f64).ok_or(Invalid::Seconds)
}

/// An address in a file (p_vaddr).
fn address(text: &str) -> std::result::Result<u64, Invalid> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| Invalid::Address)
}

/// A share in percent, as 0 to 1.
fn percent(text: &str) -> std::result::Result<f64, Invalid> {
    let share = text.trim_end_matches('%').parse::<f64>().ok().map(|percent| percent / 100.0);
    share.filter(|s| *s > 0.0 && *s <= 1.0).ok_or(Invalid::Percent)
}

impl CountArgs {
    /// Refuses what a live process, or a command, cannot be counted with.
    pub fn check(&self) -> Result<()> {
        if self.pid.is_none() && self.seconds.is_some() {
            return Err(Error::usage("--seconds is for a process that runs already (-p)")
                .because("a command is counted to its end")
                .hint(
                    "to count a part of a run: start it, then `tdtool count -p PID --seconds N`",
                ));
        }
        if self.pid.is_some() && self.plain {
            return Err(Error::usage("--plain needs a command to run again")
                .because("a process that runs already has no run without probes")
                .hint("`tdtool count --plain -- COMMAND`"));
        }
        Ok(())
    }
}

/// The command, or a window of a process, as it is measured first for its hot functions.
pub(super) fn live(
    settings: &Settings,
    command: &Command,
    process: Option<(i32, Duration)>,
) -> Result<LiveAsk> {
    Ok(LiveAsk {
        // One level needs no counters that others wait for.
        ask: Ask { level: Some(1), ..Ask::default() },
        uarch: settings.uarch.clone(),
        target: process.map_or(Target::Command, |(pid, _)| Target::Process(pid)),
        command: process.is_none().then(|| command.clone()),
        typed: command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        duration: process.map(|(_, window)| window),
        ..LiveAsk::of(settings.core()?)
    })
}

pub fn run(global: &Global, args: CountArgs) -> Result<ExitCode> {
    let process = args.pid.map(|pid| (pid, args.seconds.unwrap_or(WINDOW)));
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    file.map_or(Ok(()), |path| check_place(path, &[], "--output"))?;
    // As with `tdtool report`: a text leaves standard output to the command, a document takes it. A process has its own.
    let is_text = args.output.is_none() && args.format == Format::Text;
    let beside = is_text && process.is_none();
    let stdout = pmu::Stdout::beside(file.is_none() && !beside);
    let command = Command { argv: args.command, stdout, ..Command::default() }.run_again();
    let mut ask = CountAsk {
        command,
        process,
        windows: false,
        modules: args.module,
        functions: args.functions,
        hot: None,
        plain: args.plain,
        loads: args.loads,
        loads_of: None,
        branches_of: None,
        rarest: 0.0,
        values: args.values,
        branches: if args.branches { Some(global.settings()?.core()?) } else { None },
        only: None,
        watch: Some(Callback::new(|step| _ = progress::step(&step))),
    };
    if args.hot {
        let settings = global.settings()?;
        let live = live(&settings, &ask.command, process)?;
        ask.begin_sampling();
        ask.hot = Some(hottest(settings.machine(), settings.library, &live, args.share)?);
    }
    let mut progress = Progress::new("analysing the code");
    let (document, code) = counted(&ask, &mut |done, all| progress.show(done, all))?;
    progress.end();
    if is_text && document.interrupted.is_some() && document.blocks.is_empty() {
        // Nothing to make a table of.
        document.notes.iter().for_each(|text| message::note(text));
        return Ok(exit_code(code));
    }
    let text = match args.format {
        Format::Text if beside => count::text(&document, error_page(), args.verbose),
        Format::Text => count::text(&document, page(args.output.as_deref()), args.verbose),
        Format::Json => json::pretty(&document)?,
        Format::Callgrind => count::callgrind(&document),
    };
    match file {
        Some(path) => write_whole(path, text.as_bytes(), &[], "--output")?,
        None if beside => message::plain(&tma::text::lines(&text)),
        None => print(&text)?,
    }
    Ok(exit_code(code))
}
