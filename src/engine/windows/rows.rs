//! A report → the nodes and counts of what was measured.

use fleet::window::{Count, Node, Owner, Source};
use pmu::Target;
use report::documents::Report;
use report::documents::report::NodeRow;
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// Deepest level of the nodes.
pub(super) const LEVEL: u32 = 2;

/// Whose the rows of a report are.
pub(super) fn owner(target: &Target) -> Owner {
    let name = |id: i32| crate::topdown::named(id).map(SmolStr::from);
    match target {
        Target::Process(id) | Target::Thread(id) => {
            Owner { command: name(*id), ..Owner::default() }
        }
        Target::Cgroup(path) => {
            Owner { cgroup: Some(path.to_string_lossy().into()), ..Owner::default() }
        }
        Target::Command | Target::System | Target::Cpus(_) => Owner::default(),
    }
}

/// The nodes of levels 1 and 2. Of several kinds of core those of the first: a note tells.
pub(super) fn nodes(report: &Report, owner: &Owner) -> (Vec<Node>, Option<String>) {
    let kind = |row: &&NodeRow| row.place.core.clone();
    let first = report.nodes.first().as_ref().and_then(kind);
    let is_other = |row: &NodeRow| row.place.core != first;
    let cpu_seconds = seconds(report);
    let of = report.nodes.iter().filter(|row| row.level <= LEVEL && !is_other(row));
    let rows = of.map(|row| node(row, owner, cpu_seconds)).collect();
    let note = first.as_ref().filter(|_| report.nodes.iter().any(is_other));
    (rows, note.map(|kind| format!("nodes are of cores of kind {kind}")))
}

fn node(row: &NodeRow, owner: &Owner, cpu_seconds: Option<f64>) -> Node {
    let around = |value: f64, error: f64| ((value - error).max(0.0), (value + error).min(1.0));
    let missing = || row.missing.clone().unwrap_or_else(|| "it was not counted".to_owned());
    Node {
        owner: owner.clone(),
        node: row.id.clone(),
        parent: row.parent.clone(),
        level: row.level,
        share: row.value,
        interval: row.value.zip(row.error).map(|(value, error)| around(value, error)),
        slots: None,
        cpu_seconds,
        source: Source::Counted,
        missing: row.value.is_none().then(missing),
    }
}

/// CPU seconds that were not idle.
pub(super) fn seconds(report: &Report) -> Option<f64> {
    report.software.get("task_clock_ms").copied().flatten().map(|ms| ms / 1e3)
}

/// Software counts, and the events behind the nodes.
pub(super) fn counts(report: &Report, owner: &Owner) -> Vec<Count> {
    let row = |event: &str, value: Option<f64>, missing: Option<&String>| {
        let missing = missing.cloned().unwrap_or_else(|| "it was not counted".to_owned());
        Count {
            owner: owner.clone(),
            event: event.into(),
            value,
            source: Source::Counted,
            missing: value.is_none().then_some(missing),
        }
    };
    let software = report
        .software
        .iter()
        .map(|(event, value)| row(event, *value, report.software_missing.get(event)));
    let mut known = BTreeSet::new();
    // Without a PMU the nodes say why.
    let nodes = report.nodes.iter().filter(|node| !node.no_pmu);
    let events = nodes.flat_map(|node| &node.counts);
    let new = events.filter(|count| known.insert(&count.event));
    software.chain(new.map(|of| row(&of.event, of.value, of.missing.as_ref()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::report::{CountRow, Place};

    #[test]
    fn what_was_not_counted_has_a_reason_and_no_zero() {
        let place = |kind: &str| Place { core: Some(kind.into()), ..Place::default() };
        let row = |id: &str, level, value, core: &str| NodeRow {
            id: id.into(),
            level,
            value,
            error: Some(0.05),
            place: place(core),
            counts: vec![CountRow {
                event: "slots".to_owned(),
                value: None,
                running: None,
                missing: Some("no counter".to_owned()),
            }],
            ..NodeRow::default()
        };
        let mut report = Report::new(report::documents::Source::Pmu);
        report.nodes = vec![
            row("A", 1, Some(0.02), "p"),
            row("B", 1, None, "p"),
            row("C", 3, Some(0.1), "p"),
            row("A", 1, Some(0.5), "e"),
        ];
        report.software.insert("task_clock_ms".to_owned(), Some(1500.0));
        report.software.insert("page_faults".to_owned(), None);
        let (rows, note) = nodes(&report, &Owner::default());
        assert_eq!(rows.iter().map(|row| &*row.node).collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!((rows[0].interval, rows[0].cpu_seconds), (Some((0.0, 0.07)), Some(1.5)));
        assert!(rows[1].share.is_none() && rows[1].missing.is_some());
        assert!(note.is_some_and(|note| note.contains("kind p")));
        let all = counts(&report, &Owner::default());
        let missing: Vec<_> = all.iter().map(|of| (&*of.event, of.missing.is_some())).collect();
        assert_eq!(missing, [("page_faults", true), ("task_clock_ms", false), ("slots", true)]);
    }
}
