//! The subcommands of `tdtool tables`.

use super::{check, eval, events, identify, list, plan, show};
use crate::cli::global::Global;
use clap::{Args, Subcommand};
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct TablesArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the microarchitectures: name, levels, nodes, processors
    List,
    /// Show a table's tree and metrics, or explain nodes
    Show(show::ShowArgs),
    /// Validate tables
    Check(check::CheckArgs),
    /// Identify the processor, with evidence and contradictions
    Identify(identify::IdentifyArgs),
    /// Show which events are counted together, and which nodes each group serves
    Plan(plan::PlanArgs),
    /// Print perf stat commands that count the groups on a machine without tdtool
    Events(events::EventsArgs),
    /// Compute node values from the counts in a file
    Eval(eval::EvalArgs),
}

pub fn run(global: &Global, args: TablesArgs) -> Result<ExitCode> {
    match args.command {
        Command::List => list::run(global),
        Command::Show(args) => show::run(global, &args),
        Command::Check(args) => check::run(global, &args),
        Command::Identify(args) => identify::run(global, &args),
        Command::Plan(args) => plan::run(global, &args),
        Command::Events(args) => events::run(global, &args),
        Command::Eval(args) => eval::run(global, &args),
    }
}
