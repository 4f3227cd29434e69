//! Software counts under the document's names, wherever they come from.

use crate::collect::Software;
use crate::quantity::Measured;
use std::collections::BTreeMap;

/// `software` of a report: name with its unit at the end where it has one.
pub(super) type Table = BTreeMap<String, Option<f64>>;

/// perf's event name, the document's name, and how many of the document's units one of perf's is.
const PERF: [(&str, &str, f64); 8] = [
    ("duration_time", "wall_ms", 1e-6),
    ("task-clock", "task_clock_ms", 1.0),
    ("cpu-clock", "cpu_clock_ms", 1.0),
    ("context-switches", "context_switches", 1.0),
    ("cpu-migrations", "migrations", 1.0),
    ("page-faults", "page_faults", 1.0),
    ("minor-faults", "minor_faults", 1.0),
    ("major-faults", "major_faults", 1.0),
];

/// From a live measurement.
pub(super) fn live(counted: &Software) -> Table {
    let ok = |m: &Measured| m.as_ref().ok().copied();
    [
        ("wall_ms", Some(counted.wall.as_secs_f64() * 1e3)),
        ("task_clock_ms", ok(&counted.task_clock).map(|s| s * 1e3)),
        ("cpus_used", ok(&counted.cpus_used())),
        ("context_switches", ok(&counted.context_switches)),
        ("migrations", ok(&counted.migrations)),
        ("page_faults", ok(&counted.page_faults)),
        ("major_faults", ok(&counted.major_faults)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// From a recording, where events have perf's names and units.
pub(super) fn recorded<'a>(counted: impl Iterator<Item = (&'a str, &'a Measured)>) -> Table {
    let mut table = Table::new();
    for (name, value) in counted {
        let known = PERF.iter().find(|(perf, ..)| *perf == name);
        let (name, unit) = known.map_or((name, 1.0), |(_, ours, unit)| (*ours, *unit));
        table.insert(name.to_owned(), value.as_ref().ok().map(|v| v * unit));
    }
    let both =
        table.get("task_clock_ms").copied().flatten().zip(table.get("wall_ms").copied().flatten());
    if let Some((busy, wall)) = both.filter(|(_, wall)| *wall > 0.0) {
        table.insert("cpus_used".into(), Some(busy / wall));
    }
    table
}

/// Of a live measurement, under perf's names and in its units, as a session keeps them.
pub(super) fn to_perf(counted: &Software) -> Table {
    let table = live(counted);
    let named = |(perf, ours, unit): &(&str, &str, f64)| {
        let value = table.get(*ours)?;
        Some(((*perf).to_owned(), value.map(|v| v / unit)))
    };
    PERF.iter().filter_map(named).collect()
}
