//! `tdtool tables plan UARCH`: the groups of events that serve a table's nodes.

use crate::cli::global::Global;
use crate::cli::output::print;
use clap::{Args, ValueEnum};
use engine::render::tables::{self, Request};
use std::process::ExitCode;
use tma::schedule::{Budget, plan, to_level};
use tma::tables::select::select_from;
use tma::tables::{NodeId, NodeKind, Table};
use tma::{Error, Result};

#[derive(Args)]
pub struct PlanArgs {
    /// Microarchitecture; `tdtool tables list` lists them
    #[arg(value_name = "UARCH")]
    name: String,
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

/// Prints the plan.
pub fn run(global: &Global, args: &PlanArgs) -> Result<ExitCode> {
    let table = global.settings()?.library.load(&args.name)?;
    let nodes = chosen(&table, args)?;
    let smt = args.smt == Smt::On;
    let mut budget = Budget::of(&table, smt, args.watchdog);
    if let Some(count) = args.counters {
        budget = budget.with_general(count);
    }
    let planned = plan(&table, &nodes, smt, &budget);
    print(&tables::plan(&Request { table: &table, budget: &budget, smt }, &planned))?;
    Ok(ExitCode::SUCCESS)
}

fn chosen(table: &Table, args: &PlanArgs) -> Result<Vec<NodeId>> {
    let level = args.level.unwrap_or(u32::MAX);
    let mut nodes = match &args.nodes {
        Some(list) => select_from(table, list, level)?,
        None => to_level(table, level),
    };
    if args.all {
        for kind in [NodeKind::Bottleneck, NodeKind::Info] {
            nodes.extend(table.of_kind(kind).map(|(n, _)| n));
        }
        nodes.sort_unstable();
        nodes.dedup();
    }
    if nodes.is_empty() {
        return Err(Error::usage(format!("{} has no such node", table.name))
            .hint(format!("`tdtool tables show {}` lists its nodes", table.name)));
    }
    Ok(nodes)
}
