//! Parses every command, and the options of `tdtool` without one; answers mistakes such as a mistyped command or an
//! option that belongs to another one.

use super::bench::BenchArgs;
use super::block::BlockArgs;
use super::branches::BranchesArgs;
use super::count::CountArgs;
use super::deps::DepsArgs;
use super::diff::DiffArgs;
use super::doctor::DoctorArgs;
use super::export::ExportArgs;
use super::loads::LoadsArgs;
use super::microbench::MicrobenchArgs;
use super::options::Global;
use super::pgo::PgoArgs;
use super::prefetch::PrefetchArgs;
use super::record::RecordArgs;
use super::recordings::SearchArgs;
use super::report::ReportArgs;
use super::serve::ServeArgs;
use super::tables::TablesArgs;
use super::workload::WorkloadArgs;
use crate::{message, terminal};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use report::format;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Two ways to call it: a command, or the drill-down of a recording or a program.
const USAGE: &str = "tdtool [OPTIONS] <COMMAND>\n       tdtool [OPTIONS] [FILE [FILE] | -p PID | -- CMD...]   (interactive)";

/// Top-down microarchitecture analysis, with or without a PMU
#[derive(Parser)]
#[command(version, propagate_version = true)]
#[command(override_usage = USAGE)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    /// Open a recording: a session, a perf.data file, or recorded counts
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Compare FILE with this one, or the report in one with that in the other
    #[arg(value_name = "OTHER")]
    pub against: Option<PathBuf>,
    /// Measure CMD interactively; without CMD and FILE, the whole system
    #[arg(last = true, value_name = "CMD")]
    pub run: Vec<OsString>,
    /// Measure a running process interactively
    #[arg(short, long, value_name = "PID", value_parser = super::measure::pid)]
    pub pid: Option<i32>,
    #[command(flatten)]
    pub samples: SampleArgs,
    /// Show the exact counts that `tdtool count --format json` wrote
    #[arg(long, value_name = "FILE", help_heading = "Samples")]
    pub counts: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Which samples the drill-down shows; `tdtool report` has the same options and more.
#[derive(Args, Clone)]
pub struct SampleArgs {
    /// Only samples of this thread or process (ID or thread name); repeatable
    #[arg(long, value_name = "ID|NAME", help_heading = "Samples")]
    pub thread: Vec<String>,
    #[command(flatten, next_help_heading = "Samples")]
    pub search: SearchArgs,
}

#[derive(Subcommand)]
pub enum Command {
    /// Top-down report of a command, a process, the system, or recorded counts
    Report(Box<ReportArgs>),
    /// Record counts and samples in a session file for later reports
    Record(RecordArgs),
    /// Compare reports, and fail if a change crosses a line
    Diff(DiffArgs),
    /// Run two commands alternately and compare them
    Bench(BenchArgs),
    /// Count blocks, branches and loops of a command exactly, without a PMU
    Count(CountArgs),
    /// Edges, straight code and loops of recorded branch stacks (LBR)
    Branches(BranchesArgs),
    /// Recorded load samples (PEBS, IBS): levels, latencies, false sharing
    Loads(LoadsArgs),
    /// Where a software prefetch helps, and how many iterations ahead
    Prefetch(PrefetchArgs),
    /// Profile for BOLT, clang or lld: exact counts without a PMU, or recordings
    Pgo(PgoArgs),
    /// Tables of windows of many hosts, for SQL engines (Parquet)
    Export(ExportArgs),
    /// Serve metrics of this host to Prometheus (OpenMetrics over HTTP)
    Serve(ServeArgs),
    /// List, show, validate and evaluate the event tables
    Tables(TablesArgs),
    /// List and run built-in programs with a known bottleneck
    Workload(WorkloadArgs),
    /// Measure basic-block throughput in isolation, singly or in batch
    Block(Box<BlockArgs>),
    /// Data dependencies and the loop-carried latency bound of a block
    Deps(DepsArgs),
    /// Microbenchmark instructions: throughput and latency
    #[command(alias = "kernel")]
    Microbench(MicrobenchArgs),
    /// Show what this machine can measure, what blocks the rest, and the remedy
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: Shell,
    },
    /// Print the manual page (troff)
    #[command(hide = true)]
    Man,
    /// Print the keys of the interactive drill-down (Markdown)
    #[command(hide = true)]
    Keys {
        /// As a config file with every setting commented out
        #[arg(long)]
        toml: bool,
    },
}

/// The tdtool command that `word` nearly is, if no file has that name, as it is to be written.
pub fn command_like(word: &Path) -> Option<String> {
    let word = word.to_str().filter(|_| !word.exists())?;
    let command = Arguments::command();
    let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
    let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
    let begun: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(word)).collect();
    let near = match begun.as_slice() {
        [only] if word.len() > 1 => only,
        _ => tma::error::nearest(word, names)?,
    };
    let measures = |c: &clap::Command| c.get_arguments().any(is_command);
    let program =
        if command.find_subcommand(near).is_some_and(measures) { " -- COMMAND" } else { "" };
    Some(format!("{near}{program}"))
}

/// Whether an argument is a command to measure, not the arguments of a block's program.
fn is_command(argument: &clap::Arg) -> bool {
    let names = argument.get_value_names().unwrap_or_default();
    argument.is_last_set() && names.iter().any(|name| name == "CMD")
}

/// Exits as clap does; for arguments that no command or another command has, with a remedy instead.
pub fn exit_as_wrong(mut error: clap::Error) -> ! {
    if let Some((what, remedy)) = unknown(&error) {
        message::print("error", &what, None, Some(&remedy));
        std::process::exit(2);
    }
    if !error.use_stderr() {
        error.exit();
    }
    // clap repeats what was typed as it is, line ends, too.
    let typed: Vec<_> =
        error.context().filter_map(|(kind, value)| Some((kind, without_control(value)?))).collect();
    for (kind, value) in typed {
        error.insert(kind, value);
    }
    let text = error.render();
    let text = match std::io::stderr().is_terminal() && terminal::allows_color() {
        true => tma::text::coloured(&text.ansi().to_string()).to_string(),
        false => tma::text::lines(&text.to_string()).to_string(),
    };
    // clap ends with where to read on, without the command.
    let parts = text.trim_end().rsplit_once("\n\n");
    let what = parts.filter(|(_, end)| end.contains("--help")).map_or(&*text, |(what, _)| what);
    message::plain(&format!("{}\n", what.trim_end()));
    message::remedy(&format!("`tdtool {}--help` lists options and values", given_command()));
    std::process::exit(error.exit_code());
}

/// The command on the command line, with a blank after it.
fn given_command() -> String {
    let program = Arguments::command();
    let words = std::env::args_os().skip(1);
    let named = words.filter_map(|word| Some(program.find_subcommand(word)?.get_name().to_owned()));
    named.take(1).map(|name| name + " ").collect()
}

/// A text without control characters, if it has any.
fn without_control(value: &ContextValue) -> Option<ContextValue> {
    match value {
        ContextValue::String(typed) => match tma::text::name(typed) {
            Cow::Owned(shown) => Some(ContextValue::String(shown)),
            Cow::Borrowed(_) => None,
        },
        _ => None,
    }
}

/// Cause and remedy of an argument that clap does not know; `None` where clap says it as well.
fn unknown(error: &clap::Error) -> Option<(String, String)> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned()).collect();
    let first = words.first()?;
    let program = Arguments::command();
    let command = program.find_subcommand(first).filter(|c| !c.has_subcommands());
    match (command, unknown.starts_with('-')) {
        (Some(command), true) => {
            let what = format!("`tdtool {}` has no option `{unknown}`", command.get_name());
            Some((what, other_command(&program, command, unknown)))
        }
        (Some(command), false) => {
            command.get_arguments().any(is_command).then_some(())?;
            let mut at = words.iter().rposition(|w| w == unknown)?;
            // `tdtool report ./program 1`: the word before is the program, not a recording.
            let takes_file = command.get_positionals().any(|p| !p.is_last_set());
            at -= usize::from(takes_file && at > 1 && !words[at - 1].starts_with('-'));
            let (before, after) = (format::command(&words[..at]), format::command(&words[at..]));
            let what = format!("`tdtool {}` does not expect `{unknown}`", command.get_name());
            let remedy =
                format!("put `--` before the program to measure: `tdtool {before} -- {after}`");
            Some((what, remedy))
        }
        (None, true) if first.starts_with('-') && first.starts_with(unknown.as_str()) => {
            has(program.find_subcommand("report")?, unknown).then_some(())?;
            let what = format!("`{unknown}` is an option of a command, and no command is given");
            Some((what, format!("tdtool report {}", format::command(&words))))
        }
        (None, false) if !first.starts_with('-') && program.find_subcommand(first).is_none() => {
            let remedy =
                format!("to measure a program: `tdtool report -- {}`", format::command(&words));
            Some((format!("`{first}` is not a tdtool command"), remedy))
        }
        _ => None,
    }
}

/// The commands that have `option`, or where to read on.
fn other_command(program: &clap::Command, command: &clap::Command, option: &str) -> String {
    let others = program.get_subcommands().filter(|other| has(other, option));
    let others: Vec<String> = others.map(|o| format!("`tdtool {}`", o.get_name())).collect();
    let long = command.get_arguments().filter_map(clap::Arg::get_long);
    match (others.as_slice(), tma::error::nearest(option.trim_start_matches('-'), long)) {
        ([], Some(near)) => format!("did you mean `--{near}`?"),
        ([], None) => format!("`tdtool {} --help` lists its options", command.get_name()),
        (others, _) => format!("`{option}` is an option of {}", others.join(" and ")),
    }
}

/// Whether `command` has `option`.
fn has(command: &clap::Command, option: &str) -> bool {
    command.get_arguments().any(|argument| {
        argument.get_short().is_some_and(|short| option == format!("-{short}"))
            || argument.get_long().is_some_and(|long| option == format!("--{long}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with every command and option, and its help.
    fn each_help(command: &clap::Command, check: &mut dyn FnMut(String, String)) {
        let name = command.get_name().to_owned();
        check(name.clone(), command.get_about().unwrap_or_default().to_string());
        for argument in command.get_arguments() {
            let help = argument.get_help().unwrap_or_default().to_string();
            check(format!("{name} {}", argument.get_id()), help);
        }
        command.get_subcommands().for_each(|c| each_help(c, check));
    }

    #[test]
    fn every_help_text_is_one_line_of_at_most_80_characters() {
        each_help(&Arguments::command(), &mut |place, help| {
            assert!(!help.is_empty(), "{place} has no help");
            assert!(help.chars().count() <= 80 && !help.contains('\n'), "{place}: {help}");
        });
    }
}
