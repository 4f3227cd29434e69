//! Results of tables alone: the groups of events that serve a table's nodes; defects that validation found; node values
//! for counts from a file.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use tma::schedule::{Budget, Counter, Plan, assign, plan, to_level};
use tma::tables::select::select_from;
use tma::tables::validate::{Finding, Severity, report};
use tma::tables::{Library, NodeId, NodeKind, Table};
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

/// A table and what validation found.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Defects, worst first.
    pub findings: Vec<Finding>,
    /// Tree nodes, bottlenecks, info metrics and events.
    pub counts: [usize; 4],
}

impl Checked {
    /// Whether a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Error)
    }
}

/// Validates the tables called `names`, in order, on all CPUs.
///
/// # Errors
/// There is no such table.
pub fn check(library: &Library, names: &[String]) -> Result<Vec<Checked>> {
    let one = |name: &String| {
        let (text, _) = library.text(name)?;
        let found = report(name, &text, library.texts());
        Ok(Checked { name: name.clone(), findings: found.findings, counts: found.counts })
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = names.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = names
            .chunks(share)
            .map(|part| (part, scope.spawn(move || part.iter().map(one).collect::<Vec<_>>())))
            .collect();
        parts
            .into_iter()
            // If a thread failed, its part is done here.
            .flat_map(|(part, thread)| {
                thread.join().unwrap_or_else(|_| part.iter().map(one).collect())
            })
            .collect()
    })
}

/// The value of a node in a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The trial's name.
    pub trial: String,
    /// The node's id.
    pub node: String,
    /// Its value; `None`: counts are missing.
    pub value: Option<f64>,
    /// Whether it is over its threshold; `None`: there is none, or a node in it is missing.
    pub over: Option<bool>,
}

/// Node values for counts from a file, and what must be known about them: rows `trial,node,value,over`, for every node,
/// bottleneck and info metric.
///
/// Where counts are missing the value is empty. Where a formula divides by a count of zero it is 0, because these rows
/// are for comparing tables with perf and toplev, which print 0; a report calls such a value undefined.
#[derive(Debug, Clone, Default)]
pub struct Evaluation {
    /// The table's name.
    pub table: String,
    /// The values, trial by trial.
    pub rows: Vec<Row>,
    /// Events in the file that the table lacks.
    pub unknown: Vec<String>,
    /// Nodes without a value, one entry per reason.
    pub missing: Vec<String>,
    /// Nodes whose value is undefined and given as 0, one entry per reason.
    pub undefined: Vec<String>,
}
