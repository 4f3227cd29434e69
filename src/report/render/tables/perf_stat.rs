//! A plan as commands of `perf stat`, for machines without tdtool.

use super::encoding::core;
use crate::documents::tables::TablePlan;
use std::fmt::Write as _;
use tma::schedule::Group;
use tma::tables::{Event, Ring, Table};

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
        .flat_map(|of| of.plan.groups.iter().map(|group| events(&of.table, group, how.names)))
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
fn events(table: &Table, group: &Group, names: bool) -> String {
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
