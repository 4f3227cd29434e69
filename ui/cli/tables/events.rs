//! `tdtool tables events UARCH`: commands of `perf stat` that count a plan's groups.

use super::plan::PlanArgs;
use crate::cli::global::Global;
use crate::cli::output::print;
use clap::Args;
use report::documents::tables::table_plan;
use report::render::tables::{PerfStat, perf_stat};
use std::process::ExitCode;
use tma::Result;
use tma::tables::schema::CoreKind;

#[derive(Args)]
#[command(after_help = "\
The groups are those of `tdtool tables plan`. perf needs to know no events' names, unless
with --names.")]
pub struct EventsArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// Events by perf's names, for a perf that knows them all
    #[arg(long)]
    names: bool,
    /// A run of the command for each group instead of multiplexing
    #[arg(long)]
    no_multiplex: bool,
}

/// Prints the commands.
pub fn run(global: &Global, args: &EventsArgs) -> Result<ExitCode> {
    let library = global.settings()?.library;
    let (table, ask) = (library.load(&args.plan.name)?, args.plan.ask());
    // A hybrid's other kind of core counts in the same run.
    let other = format!("{}-e", table.name);
    let has_other = table.core == Some(CoreKind::P) && library.names().any(|name| name == other);
    let mut plans = vec![table_plan(table, &ask)?];
    if has_other {
        // It may not have the nodes that are asked for.
        plans.extend(table_plan(library.load(&other)?, &ask).ok());
    }
    print(&perf_stat(&plans, PerfStat { names: args.names, separate: args.no_multiplex }))?;
    Ok(ExitCode::SUCCESS)
}
