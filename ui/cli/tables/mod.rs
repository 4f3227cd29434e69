//! `tdtool tables list|show|check|plan|eval`

mod check;
mod eval;
mod list;
mod plan;
mod show;

use crate::cli::Global;
use clap::{Args, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct TablesArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every microarchitecture: its name, processors, levels and source
    List,
    /// A table's tree and metrics, or what is known of some nodes
    Show(show::ShowArgs),
    /// Everything that is wrong with tables
    Check(check::CheckArgs),
    Plan(plan::PlanArgs),
    /// Node values for counts in a file
    Eval(eval::EvalArgs),
}

pub fn run(global: &Global, args: TablesArgs) -> Result<ExitCode> {
    match args.command {
        Command::List => list::run(global),
        Command::Show(args) => show::run(global, &args),
        Command::Check(args) => check::run(global, &args),
        Command::Plan(args) => plan::run(global, &args),
        Command::Eval(args) => eval::run(global, &args),
    }
}

/// Writes to standard output. A reader that went away (`| head`) ends the output quietly.
fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(tma::Error::failed("cannot write to standard output").because(e))
        }
        _ => Ok(()),
    }
}
