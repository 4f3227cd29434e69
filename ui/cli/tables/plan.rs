//! `tdtool tables plan UARCH`: the groups of events that serve a table's nodes.

use crate::cli::global::Global;
use crate::cli::output::print;
use clap::{Args, ValueEnum};
use report::documents::tables::{PlanAsk, table_plan};
use report::render::tables;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct PlanArgs {
    /// Microarchitecture; `tdtool tables list` lists them
    #[arg(value_name = "UARCH")]
    pub(super) name: String,
    /// Deepest level of the tree to plan [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9))]
    level: Option<u32>,
    /// Nodes: ids, wildcards, Memory_Bound*/2, L3_Bound^, tags [default: all]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    nodes: Option<String>,
    /// Include the bottlenecks view and info metrics
    #[arg(long)]
    all: bool,
    /// General counters per thread [default: as in the table]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    counters: Option<u32>,
    /// Whether two threads share a core
    #[arg(long, value_enum, default_value_t = Smt::Off)]
    smt: Smt,
    /// Leave out the counter that the NMI watchdog uses
    #[arg(long)]
    watchdog: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Smt {
    On,
    Off,
}

impl PlanArgs {
    /// The plan asked for.
    pub(super) fn ask(&self) -> PlanAsk {
        PlanAsk {
            level: self.level,
            nodes: self.nodes.clone(),
            all: self.all,
            counters: self.counters,
            smt: self.smt == Smt::On,
            watchdog: self.watchdog,
        }
    }
}

/// Prints the plan.
pub fn run(global: &Global, args: &PlanArgs) -> Result<ExitCode> {
    let table = global.settings()?.library.load(&args.name)?;
    print(&tables::plan(&table_plan(table, &args.ask())?))?;
    Ok(ExitCode::SUCCESS)
}
