//! Software counts under the document's names, wherever they come from.

use pmu::Software;
use report::documents::Report;
use std::collections::BTreeMap;
use tma::quantity::{Measured, Missing};
use tma::tree::student_t95;

/// Software counts by the document's name: with their unit at the end where they have one.
pub(crate) type Table = BTreeMap<String, Measured>;

/// perf's event name, the document's name, and how many of the document's units one of perf's is.
const PERF: [(&str, &str, f64); 10] = [
    ("duration_time", "wall_ms", 1e-6),
    ("task-clock", "task_clock_ms", 1.0),
    ("cpu-clock", "cpu_clock_ms", 1.0),
    ("user_time", "user_ms", 1e-6),
    ("system_time", "system_ms", 1e-6),
    ("context-switches", "context_switches", 1.0),
    ("cpu-migrations", "migrations", 1.0),
    ("page-faults", "page_faults", 1.0),
    ("minor-faults", "minor_faults", 1.0),
    ("major-faults", "major_faults", 1.0),
];

/// From a live measurement.
pub(crate) fn live(counted: &Software) -> Table {
    let of = |m: &Measured, unit: f64| m.clone().map(|v| v * unit);
    [
        ("wall_ms", Ok(counted.wall.as_secs_f64() * 1e3)),
        ("task_clock_ms", of(&counted.task_clock, 1e3)),
        ("cpus_used", counted.cpus_used()),
        ("context_switches", of(&counted.context_switches, 1.0)),
        ("migrations", of(&counted.migrations, 1.0)),
        ("page_faults", of(&counted.page_faults, 1.0)),
        ("major_faults", of(&counted.major_faults, 1.0)),
    ]
    .into_iter()
    // Few programs have it.
    .chain(counted.queued.is_ok().then(|| ("queued_ms", of(&counted.queued, 1e3))))
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// From a recording, where events have perf's names and units. Several parts (CPUs, intervals)
/// add up, but for the time that passes on all CPUs at once: `wall` is the whole of it.
pub(crate) fn recorded<'a, N: AsRef<str> + 'a>(
    parts: impl Iterator<Item = &'a BTreeMap<N, Measured>>,
    wall_ms: Option<f64>,
) -> Table {
    let mut table = Table::new();
    for (name, value) in parts.flatten() {
        let known = PERF.iter().find(|(perf, ..)| *perf == name.as_ref());
        let (name, unit) = known.map_or((name.as_ref(), 1.0), |(_, ours, unit)| (*ours, *unit));
        let value = value.clone().map(|v| v * unit);
        let sum = match (table.remove(name), value) {
            (None, value) => value,
            (Some(Ok(_)), Ok(v)) if name == "wall_ms" => Ok(wall_ms.unwrap_or(v)),
            (Some(Ok(sum)), Ok(v)) => Ok(sum + v),
            // Never scheduled in one part: nothing ran there.
            (Some(Err(Missing::NotCounted(_))), Ok(v)) => Ok(v),
            (Some(Ok(sum)), Err(Missing::NotCounted(_))) => Ok(sum),
            (Some(Err(why)), _) | (_, Err(why)) => Err(why),
        };
        table.insert(name.to_owned(), sum);
    }
    let value = |name: &str| table.get(name).and_then(|v| v.as_ref().ok()).copied();
    if let Some((busy, wall)) = value("task_clock_ms").zip(value("wall_ms"))
        && wall > 0.0
    {
        table.insert("cpus_used".into(), Ok(busy / wall));
    }
    table
}

/// Counts of a live measurement under perf's names and in its units, as a session has them.
pub(crate) fn to_perf(counted: &Software) -> BTreeMap<String, Option<f64>> {
    let table = live(counted);
    let named = |(perf, ours, unit): &(&str, &str, f64)| {
        let value = table.get(*ours)?;
        Some(((*perf).to_owned(), value.as_ref().ok().map(|v| v / unit)))
    };
    PERF.iter().filter_map(named).collect()
}

/// Enters them into the document.
pub(crate) fn enter(report: &mut Report, table: Table) {
    for (name, value) in table {
        if let Err(why) = &value {
            report.software_missing.insert(name.clone(), Missing::to_string(why));
        }
        report.software.insert(name, value.ok());
    }
}

/// Enters the ± of the CPU time of one measurement, where it is not exact.
pub(crate) fn enter_error(report: &mut Report, counted: &Software) {
    let wall = counted.wall.as_secs_f64();
    if let (Some(error), Ok(_)) = (counted.task_clock_error, &counted.task_clock) {
        report.software_error.insert("task_clock_ms".into(), error * 1e3);
        if wall > 0.0 {
            report.software_error.insert("cpus_used".into(), error / wall);
        }
    }
}

/// Enters the ± of their means over repeated runs: t(95 %) · s/√N.
pub(crate) fn enter_errors(report: &mut Report, runs: &[Software]) {
    let tables: Vec<Table> = runs.iter().map(live).collect();
    for name in tables.first().map(BTreeMap::keys).into_iter().flatten() {
        let values: Option<Vec<f64>> =
            tables.iter().map(|t| t.get(name).and_then(|v| v.clone().ok())).collect();
        let Some(values) = values.filter(|v| v.len() > 1) else { continue };
        report.software_error.insert(name.clone(), error_of_mean(&values));
    }
}

/// Half width at 95 % of the mean of several values: t · s/√N.
pub(crate) fn error_of_mean(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    student_t95(values.len() - 1) * (squares / (n - 1.0) / n).sqrt()
}
