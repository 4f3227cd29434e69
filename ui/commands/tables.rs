//! `tdtool tables list|show|check|plan|eval`

mod plan;

use crate::cli::Global;
use clap::{Args, Subcommand};
use std::process::ExitCode;
use tdtool::Result;

#[derive(Args)]
pub struct TablesArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(plan::PlanArgs),
}

pub fn run(global: &Global, args: TablesArgs) -> Result<ExitCode> {
    match args.command {
        Command::Plan(args) => plan::run(global, &args),
    }
}
