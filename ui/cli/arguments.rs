//! Every command, and the options of `tdtool` without one.

use super::bench::BenchArgs;
use super::block::BlockArgs;
use super::branches::BranchesArgs;
use super::count::CountArgs;
use super::deps::DepsArgs;
use super::diff::DiffArgs;
use super::doctor::DoctorArgs;
use super::global::Global;
use super::loads::LoadsArgs;
use super::microbench::MicrobenchArgs;
use super::prefetch::PrefetchArgs;
use super::record::RecordArgs;
use super::report::ReportArgs;
use super::search::SearchArgs;
use super::tables::TablesArgs;
use super::workload::WorkloadArgs;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

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
