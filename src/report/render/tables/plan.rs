//! Renders what follows from tables: a plan of groups, also as commands of `perf stat` for machines without tdtool;
//! what is wrong with a table; node values for counts from a file.

use super::core;
use crate::documents::tables::{Checked, Evaluation, Row, TablePlan};
use std::fmt::Write as _;
use tma::schedule::{Counter, Group};
use tma::tables::validate::{Finding, Severity};
use tma::tables::{Event, NodeId, Ring, Table};

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

/// Names of the fixed top-down metrics in sysfs, by index (arch/x86/events/intel/core.c).
const METRICS: [&str; 8] = [
    "topdown-retiring",
    "topdown-bad-spec",
    "topdown-fe-bound",
    "topdown-be-bound",
    "topdown-heavy-ops",
    "topdown-br-mispredict",
    "topdown-fetch-lat",
    "topdown-mem-bound",
];
/// Other events that the report shows: time and CPUs busy.
const BESIDE: &str = "duration_time,task-clock";

/// How events are written, and how often the command runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct PerfStat {
    /// By perf's names, not by encodings.
    pub names: bool,
    /// A run for each group, none multiplexed.
    pub separate: bool,
}

/// Commands that count the plans, one for each kind of core, and the command that imports the counts.
pub fn perf_stat(plans: &[TablePlan], how: PerfStat) -> String {
    let Some(first) = plans.first() else { return String::new() };
    let groups: Vec<String> = plans
        .iter()
        .flat_map(|of| of.plan.groups.iter().map(|group| group_events(&of.table, group, how.names)))
        .collect();
    let name = &first.table.name;
    let mut out = not_counted(plans);
    if groups.is_empty() {
        return out;
    }
    let files: Vec<String> = match how.separate && groups.len() > 1 {
        true => (1..=groups.len()).map(|n| format!("counts-{n}.csv")).collect(),
        false => vec!["counts.csv".to_owned()],
    };
    let per_run = if how.separate { 1 } else { groups.len().max(1) };
    for (file, groups) in files.iter().zip(groups.chunks(per_run)) {
        let _ = writeln!(out, "perf stat -x';' -o {file} -e {BESIDE} \\");
        for group in groups {
            let _ = writeln!(out, "  -e '{{{group}}}:W' \\");
        }
        out += "  -- COMMAND\n";
    }
    let _ = writeln!(out, "tdtool report --uarch {name} --import {}", files.join(" "));
    out
}

/// The nodes that no group serves, as comments of a shell.
fn not_counted(plans: &[TablePlan]) -> String {
    let mut out = String::new();
    for of in plans {
        for (node, why) in &of.plan.unserved {
            let node = &of.table.nodes[usize::from(*node)].id;
            let _ = writeln!(out, "# not counted: {node}: {why}");
        }
    }
    out
}

/// The events of a group, each once.
fn group_events(table: &Table, group: &Group, names: bool) -> String {
    let mut all: Vec<String> = Vec::new();
    for id in &group.events {
        let event = written(table, &table.events[usize::from(*id)], names);
        if !all.contains(&event) {
            all.push(event);
        }
    }
    all.join(",")
}

/// An event by its encoding, which every perf takes, shown under its name; or by the vendor's name, which newer
/// versions of perf have.
fn written(table: &Table, event: &Event, names: bool) -> String {
    let (spec, name) = (&event.spec, &event.name);
    let metric = spec.metric.and_then(|n| METRICS.get(usize::from(n)));
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    let ring = match spec.ring {
        Some(Ring::User) => "u",
        Some(Ring::Kernel) => "k",
        None => "",
    };
    match metric {
        Some(metric) if names => format!("{}/{metric}/", table.pmu),
        None if names && is_plain => format!("{}/{}/{ring}", table.pmu, name.to_lowercase()),
        // Both kinds of core of a hybrid have events of one name: there it has to show the PMU.
        None if is_plain && table.core.is_none() => {
            let encoded = core(table, spec);
            match encoded.rsplit_once('/') {
                Some((fields, ring)) => format!("{fields},name={name}/{ring}"),
                None => encoded,
            }
        }
        _ => core(table, spec),
    }
}

/// The findings in `tables`; `notes` includes those that are only notes.
pub fn check(tables: &[Checked], notes: bool) -> String {
    let mut out = String::new();
    for table in tables {
        let state = if table.has_errors() { "ERRORS" } else { "ok" };
        let (contents, tally) = (contents(table.counts), tally(&table.findings));
        let _ = writeln!(out, "{:<8}  {state:<6}  {contents}{tally}", table.name);
        for finding in table.findings.iter().filter(|f| notes || f.severity > Severity::Note) {
            let _ = writeln!(out, "  {finding}");
        }
    }
    out
}

fn contents([nodes, bottlenecks, infos, events]: [usize; 4]) -> String {
    format!("{nodes} nodes, {bottlenecks} bottlenecks, {infos} infos, {events} events")
}

fn tally(findings: &[Finding]) -> String {
    [(Severity::Error, "errors"), (Severity::Warning, "warnings"), (Severity::Note, "notes")]
        .into_iter()
        .map(|(severity, what)| (findings.iter().filter(|f| f.severity == severity).count(), what))
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!(", {n} {}", if n == 1 { &what[..what.len() - 1] } else { what }))
        .collect()
}

/// Remarks of a kind that are listed before the rest is only counted.
const LISTED: usize = 12;

/// Rows `trial,node,value,over` after their heading.
pub fn evaluation_csv(evaluation: &Evaluation) -> String {
    let mut out = String::from("trial,node,value,over\n");
    for Row { trial, node, value, over } in &evaluation.rows {
        let value = value.map(|v| v.to_string()).unwrap_or_default();
        let over = over.map_or("", |over| if over { "1" } else { "0" });
        let _ = writeln!(out, "{trial},{node},{value},{over}");
    }
    out
}

/// Unknown events, and nodes without a value or with an undefined one; empty if there are none.
pub fn evaluation_remarks(evaluation: &Evaluation) -> String {
    let kinds = [
        ("events not in the table", &evaluation.unknown),
        ("without a value", &evaluation.missing),
        ("undefined, printed as 0 as perf and toplev do", &evaluation.undefined),
    ];
    let mut out = String::new();
    for (what, list) in kinds.into_iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(out, "{}: {what}:", evaluation.table);
        for line in list.iter().take(LISTED) {
            let _ = writeln!(out, "  {line}");
        }
        if list.len() > LISTED {
            let _ = writeln!(out, "  … and {} more", list.len() - LISTED);
        }
    }
    out
}
