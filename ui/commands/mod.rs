//! One file a command: arguments → engine calls → output.

pub mod diff;
pub mod doctor;
pub mod report;
pub mod tables;
pub mod workload;

use crate::cli::{Cli, Command};
use std::process::ExitCode;
use tdtool::Result;

/// Runs the command that was asked for.
pub fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Command::Report(args) => report::run(&cli.global, args),
        Command::Diff(args) => diff::run(&cli.global, args),
        Command::Tables(args) => tables::run(&cli.global, args),
        Command::Workload(args) => workload::run(&cli.global, args),
        Command::Doctor(args) => doctor::run(&cli.global, args),
    }
}
