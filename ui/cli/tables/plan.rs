//! `tdtool tables plan U --level N`: the groups that serve a table's nodes.

use crate::cli::Global;
use clap::{Args, ValueEnum};
use std::fmt::Write as _;
use std::process::ExitCode;
use tma::schedule::{Budget, Counter, Group, Plan, assign, plan, to_level};
use tma::tables::select::select_from;
use tma::tables::{NodeId, NodeKind, Table};
use tma::{Error, Result};

/// Which events are counted together, which nodes each group serves, which nodes are split
#[derive(Args)]
pub struct PlanArgs {
    /// Microarchitecture (`tdtool tables list` names them)
    #[arg(value_name = "UARCH")]
    name: String,
    /// Nodes of the tree down to this level [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9))]
    level: Option<u32>,
    /// Ids, wildcards, `Memory_Bound*/2`, ancestors with `^`, tags [default: the whole tree]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    nodes: Option<String>,
    /// The bottlenecks view and the info metrics, too
    #[arg(long)]
    all: bool,
    /// General counters of a thread [default: what the table says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    counters: Option<u32>,
    /// Two threads share a core
    #[arg(long, value_enum, default_value_t = Smt::Off)]
    smt: Smt,
    /// The NMI watchdog has taken a counter
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
    let table = global.library()?.load(&args.name)?;
    let nodes = chosen(&table, args)?;
    let smt = args.smt == Smt::On;
    let mut budget = Budget::of(&table, smt, args.watchdog);
    if let Some(count) = args.counters {
        budget = budget.with_general(count);
    }
    let plan = plan(&table, &nodes, smt, &budget);
    super::print(&(heading(&table, args, &budget) + &text(&table, &budget, &plan)))?;
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
        return Err(Error::usage(format!("{} has no such node", table.name)));
    }
    Ok(nodes)
}

/// What the plan is for: a plan means nothing without the counters it had.
fn heading(table: &Table, args: &PlanArgs, budget: &Budget) -> String {
    let smt = if args.smt == Smt::On { "on" } else { "off" };
    let (general, fixed) = (budget.general.count_ones(), budget.fixed.count_ones());
    let watchdog = if budget.watchdog { ", one of them taken by the NMI watchdog" } else { "" };
    let name = &table.name;
    format!("{name}, SMT {smt}: {general} general and {fixed} fixed counters{watchdog}\n")
}

fn text(table: &Table, budget: &Budget, plan: &Plan) -> String {
    let mut out = String::new();
    for (i, group) in plan.groups.iter().enumerate() {
        let _ = writeln!(out, "group {}", i + 1);
        write_events(&mut out, table, budget, group);
        let serves = |whole: bool| -> Vec<&str> {
            let here = plan.placements.iter().filter(|p| p.groups.contains(&i));
            here.filter(|p| p.is_split() != whole).map(|p| id(table, p.node)).collect()
        };
        for (title, nodes) in [("serves", serves(true)), ("part of", serves(false))] {
            if !nodes.is_empty() {
                let _ = writeln!(out, "  {title}: {}", nodes.join(", "));
            }
        }
    }
    for p in plan.placements.iter().filter(|p| p.is_split()) {
        let groups: Vec<String> = p.groups.iter().map(|g| (g + 1).to_string()).collect();
        let _ = writeln!(out, "split: {} over groups {}", id(table, p.node), groups.join(", "));
    }
    for (node, why) in &plan.unserved {
        let _ = writeln!(out, "not counted: {}: {why}", id(table, *node));
    }
    let (groups, events) = (plan.groups.len(), plan.event_count());
    let _ = writeln!(out, "{groups} groups, {events} events");
    out
}

fn write_events(out: &mut String, table: &Table, budget: &Budget, group: &Group) {
    let counters = assign(table, group, budget).unwrap_or_default();
    for (i, event) in group.events.iter().enumerate() {
        let counter = match counters.get(i) {
            Some(Counter::General(n)) => format!("general {n}"),
            Some(Counter::Fixed(n)) => format!("fixed {n}"),
            Some(Counter::Metric(n)) => format!("metric {n}"),
            None => String::new(),
        };
        let _ = writeln!(out, "  {counter:<10} {}", table.events[usize::from(*event)].name);
    }
}

fn id(table: &Table, node: NodeId) -> &str {
    &table.nodes[usize::from(node)].id
}
