//! `tdtool tables eval UARCH --counts FILE`: node values for counts from a file, as CSV; remarks on
//! standard error.

use crate::cli::global::Global;
use crate::cli::output::print;
use crate::message;
use clap::Args;
use engine::evaluated::evaluate;
use report::render::tables::{evaluation_csv, evaluation_remarks};
use std::path::PathBuf;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
#[command(after_help = "\
Rows:
  trial,event,value          an event by its name in the table, or by its encoding
  trial,CONSTANT,value       #SMT_ON, #DURATION_MS, #TSC_HZ, #SOCKETS, #CORES_PER_SOCKET

Output rows are trial,node,value,over. Without its counts a node has no value; an undefined
value (a division by a count of 0) is printed as 0, as perf and toplev do.")]
pub struct EvalArgs {
    /// Microarchitecture; `tdtool tables list` lists them
    #[arg(value_name = "UARCH")]
    name: String,
    /// CSV file with rows trial,event,value
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
}

pub fn run(global: &Global, args: &EvalArgs) -> Result<ExitCode> {
    let table = global.settings()?.library.load(&args.name)?;
    let evaluation = evaluate(&table, &args.counts)?;
    print(&evaluation_csv(&evaluation))?;
    message::plain(&evaluation_remarks(&evaluation));
    Ok(ExitCode::SUCCESS)
}
