//! Every command and the options all of them share.

use crate::commands::{block, deps, diff, doctor, kernel, record, report, shell, tables, workload};
use clap::{Args, Parser, Subcommand};
use engine::known::Known;
use pmu::machine::Machine;
use std::ffi::OsString;
use std::path::PathBuf;
use tma::tables::Library;

/// Top-down microarchitecture analysis, with or without a PMU.
#[derive(Parser)]
#[command(version, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    /// Look into a recording interactively: a session, a perf.data file, recorded counts
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Measure this command and look on interactively; without it and FILE, the whole system
    #[arg(last = true, value_name = "CMD")]
    pub run: Vec<OsString>,
    #[command(flatten)]
    pub samples: SampleOptions,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Which samples are looked at; `tdtool report` has the same options and more.
#[derive(Args, Clone)]
pub struct SampleOptions {
    /// Samples of this thread or process alone, by number or by a thread's name; repeatable
    #[arg(long, value_name = "ID|NAME", help_heading = "Where the time goes")]
    pub thread: Vec<String>,
    /// Look for the recorded programs below this folder first; repeatable
    #[arg(long, value_name = "DIR", help_heading = "Where the time goes")]
    pub symfs: Vec<PathBuf>,
}

/// Options that every command takes.
#[derive(Args, Clone)]
pub struct Global {
    /// Use this microarchitecture's table instead of the detected one
    #[arg(long, global = true, value_name = "NAME", help_heading = "Everywhere")]
    pub uarch: Option<String>,
    /// Add or override tables with the *.toml files of DIR
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub tables: Option<PathBuf>,
    /// Draw with ASCII characters only
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub ascii: bool,
    /// Keys and theme of the interactive screens, instead of ~/.config/tdtool/config.toml
    #[arg(long, global = true, value_name = "FILE", help_heading = "Everywhere")]
    pub config: Option<PathBuf>,
}

impl Global {
    /// The core that is meant: that of `--uarch`, else this machine's.
    pub fn known(&self) -> tma::Result<Known> {
        let cache = crate::commands::cache_folder();
        let machine = Machine::detect();
        Known::new(&machine, &self.library()?, self.uarch.as_deref(), cache.as_deref())
    }

    /// The tables this run knows.
    pub fn library(&self) -> tma::Result<Library> {
        match &self.tables {
            Some(folder) => engine::library().with_folder(folder),
            None => Ok(engine::library()),
        }
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Measure a command, a process or the system, or evaluate recorded counts
    Report(report::ReportArgs),
    /// Measure and keep the counts in a session file for later reports
    Record(record::RecordArgs),
    /// Put two reports side by side
    Diff(diff::DiffArgs),
    /// Look into the event tables
    Tables(tables::TablesArgs),
    /// Built-in programs with a known bottleneck
    Workload(workload::WorkloadArgs),
    /// Measure a basic block by itself, or thousands of them
    Block(block::BlockArgs),
    /// Dependencies of a block, through memory too, and the bound of its recurrences
    Deps(deps::DepsArgs),
    /// Measure instructions by themselves: throughput and latency
    Kernel(kernel::KernelArgs),
    /// What this machine can measure, what blocks the rest, and the remedy
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions(shell::CompletionsArgs),
    /// Print the manual page (troff)
    #[command(hide = true)]
    Man,
    /// Print the keys of the interactive drill-down (Markdown)
    #[command(hide = true)]
    Keys {
        /// As a config file, with everything that can be chosen
        #[arg(long)]
        toml: bool,
    },
}
