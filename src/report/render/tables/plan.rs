//! A plan of groups: the events of each with their counters, the nodes each serves.

use crate::documents::tables::TablePlan;
use std::fmt::Write as _;
use tma::schedule::{Counter, Group};
use tma::tables::{NodeId, Table};

/// The plan, after a line with the counters it was made for.
pub fn plan(request: &TablePlan) -> String {
    let plan = &request.plan;
    let mut out = heading(request);
    for (i, (group, counters)) in plan.groups.iter().zip(&request.counters).enumerate() {
        let _ = writeln!(out, "group {}", i + 1);
        events(&mut out, &request.table, group, counters);
        let serves = |whole: bool| -> Vec<&str> {
            let here = plan.placements.iter().filter(|p| p.groups.contains(&i));
            here.filter(|p| p.is_split() != whole).map(|p| id(&request.table, p.node)).collect()
        };
        for (title, nodes) in [("serves", serves(true)), ("part of", serves(false))] {
            if !nodes.is_empty() {
                let _ = writeln!(out, "  {title}: {}", nodes.join(", "));
            }
        }
    }
    for p in plan.placements.iter().filter(|p| p.is_split()) {
        let groups: Vec<String> = p.groups.iter().map(|g| (g + 1).to_string()).collect();
        let node = id(&request.table, p.node);
        let _ = writeln!(out, "split: {node} over groups {}", groups.join(", "));
    }
    for (node, why) in &plan.unserved {
        let _ = writeln!(out, "not counted: {}: {why}", id(&request.table, *node));
    }
    let _ = writeln!(out, "{} groups, {} events", plan.groups.len(), plan.event_count());
    out
}

fn heading(request: &TablePlan) -> String {
    let TablePlan { table, budget, smt, .. } = request;
    let smt = if *smt { "on" } else { "off" };
    let (general, fixed) = (budget.general.count_ones(), budget.fixed.count_ones());
    let watchdog = if budget.watchdog { ", one of them taken by the NMI watchdog" } else { "" };
    let name = &table.name;
    format!("{name}, SMT {smt}: {general} general and {fixed} fixed counters{watchdog}\n")
}

fn events(out: &mut String, table: &Table, group: &Group, counters: &[Counter]) {
    for (i, event) in group.events.iter().enumerate() {
        let counter = match counters.get(i) {
            Some(Counter::General(n)) => format!("general {n}"),
            Some(Counter::Fixed(n)) => format!("fixed {n}"),
            Some(Counter::Metric(n)) => format!("metric {n}"),
            None => String::new(),
        };
        let name = &table.events[usize::from(*event)].name;
        let _ = writeln!(out, "  {counter:<10} {name}");
    }
}

fn id(table: &Table, node: NodeId) -> &str {
    &table.nodes[usize::from(node)].id
}
