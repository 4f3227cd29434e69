//! The groups of events that serve a table's nodes, and the counters of each.

use std::sync::Arc;
use tma::schedule::{Budget, Counter, Plan, assign, plan, to_level};
use tma::tables::select::select_from;
use tma::tables::{NodeId, NodeKind, Table};
use tma::{Error, Result};

/// Nodes to plan, and the counters.
#[derive(Debug, Clone, Default)]
pub struct PlanAsk {
    /// Deepest level of the tree; none: all.
    pub level: Option<u32>,
    /// Nodes as [`select_from`] takes them; none: the tree.
    pub nodes: Option<String>,
    /// Include the bottlenecks view and info metrics.
    pub all: bool,
    /// General counters per thread; none: those of the table.
    pub counters: Option<u32>,
    /// Whether two threads share a core.
    pub smt: bool,
    /// Whether the NMI watchdog uses a counter.
    pub watchdog: bool,
}

/// A plan with what it was made for.
#[derive(Debug, Clone)]
pub struct TablePlan {
    /// The table whose nodes are planned.
    pub table: Arc<Table>,
    /// The available counters.
    pub budget: Budget,
    /// Whether two threads share a core.
    pub smt: bool,
    /// The groups.
    pub plan: Plan,
    /// The counter of each event, by group.
    pub counters: Vec<Vec<Counter>>,
}

/// Plans the nodes that are asked for.
///
/// # Errors
/// The table has no such node.
pub fn table_plan(table: Arc<Table>, ask: &PlanAsk) -> Result<TablePlan> {
    let nodes = chosen(&table, ask)?;
    let mut budget = Budget::of(&table, ask.smt, ask.watchdog);
    if let Some(count) = ask.counters {
        budget = budget.with_general(count);
    }
    let plan = plan(&table, &nodes, ask.smt, &budget);
    let groups = plan.groups.iter();
    let counters = groups.map(|g| assign(&table, g, &budget).unwrap_or_default()).collect();
    Ok(TablePlan { table, budget, smt: ask.smt, plan, counters })
}

fn chosen(table: &Table, ask: &PlanAsk) -> Result<Vec<NodeId>> {
    let level = ask.level.unwrap_or(u32::MAX);
    let mut nodes = match &ask.nodes {
        Some(list) => select_from(table, list, level)?,
        None => to_level(table, level),
    };
    if ask.all {
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
