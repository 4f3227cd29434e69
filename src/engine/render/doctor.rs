//! What this machine can measure, as text: facts first, then the findings.

use super::identity;
use crate::documents::doctor::{Document, TableInfo};
use crate::measured::{Agreement, Row};
use pmu::machine::{Finding, Level};
use std::fmt::Write as _;
use tma::measured::Fact;

/// The document as text.
pub fn text(document: &Document) -> String {
    let mut out = String::new();
    for (name, value) in facts(document) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<12} {value}");
    }
    if !document.measured.is_empty() {
        out.push_str("\nmeasured facts of the core\n");
        document.measured.iter().for_each(|row| measured(&mut out, row));
    }
    out.push('\n');
    document.findings.iter().for_each(|f| finding(&mut out, f));
    out
}

fn facts(d: &Document) -> Vec<(&'static str, String)> {
    let name = if d.processor.is_empty() { "unknown" } else { &d.processor };
    let mut rows =
        vec![("processor", format!("{name} ({})", d.signature)), ("topology", topology(d))];
    rows.extend(d.tsc_hz.map(|hz| ("TSC", format!("{:.1} MHz", hz / 1e6))));
    rows.push(("kernel", format!("{}{}", d.kernel, guest(d))));
    rows.extend(d.tables.iter().map(|t| ("table", table(t))));
    rows.extend(d.identity.cores.iter().map(|core| ("identity", identity::answer(&core.identity))));
    if d.tables.is_empty() {
        rows.push(("table", "none for this processor".into()));
    }
    let core = d.pmus.iter().filter(|p| p.core).map(|p| match p.cpus {
        Some(n) => format!("{} ({n} CPUs)", p.name),
        None => p.name.clone(),
    });
    rows.push(("core PMU", list(core.collect())));
    let others = d.pmus.iter().filter(|p| !p.core).map(|p| p.name.clone());
    rows.push(("other PMUs", list(others.collect())));
    rows.push(("permissions", permissions(d)));
    let watchdog = match d.nmi_watchdog {
        Some(true) => "on",
        Some(false) => "off",
        None => "absent",
    };
    rows.push(("NMI watchdog", watchdog.into()));
    rows
}

/// A measured fact, what is stated, and how both go together.
fn measured(out: &mut String, row: &Row) {
    let value = match &row.fact {
        Fact::Known(known) => {
            format!("{} ± {} {}", number(known.value), number(known.error), row.unit)
        }
        Fact::Open { open } => format!("open: {open}"),
    };
    let stated = row.stated.as_ref().map(|(value, by)| (number(*value), by));
    let beside = match (&stated, row.agreement) {
        (None, _) => String::new(),
        (Some((value, by)), Agreement::Agrees) => format!("; agrees with {value} by {by}"),
        (Some((value, by)), Agreement::Measured) => {
            format!("; differs from {value} by {by}: measured wins for {}", row.wins_for.join(", "))
        }
        (Some((value, by)), Agreement::Less) => {
            format!("; {value} by {by}: what is between may need more than an entry")
        }
        (Some((value, by)), Agreement::Open) => format!("; {value} by {by}"),
        (Some((value, by)), _) => format!("; differs from {value} by {by}"),
    };
    let _ = writeln!(out, "  {:<20} {value}{beside}", row.name);
    if let Fact::Known(known) = &row.fact {
        let _ = writeln!(out, "  {:<20}   {}", "", known.how);
    }
}

/// Three digits of a number, bytes and counts whole.
fn number(value: f64) -> String {
    match value {
        value if value >= 1024.0 && value % 1024.0 == 0.0 => format!("{} Ki", value / 1024.0),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

fn topology(d: &Document) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{}, {} each, {}, SMT {}",
        count(d.sockets, "socket"),
        count(d.cores_per_socket, "core"),
        count(d.cpus, "CPU"),
        if d.smt { "on" } else { "off" },
    )
}

/// What is around the kernel: a hypervisor, a container.
fn guest(d: &Document) -> String {
    let vm = d.virtual_machine.as_ref().map(|name| format!(", virtual machine ({name})"));
    let container = d.container.as_ref().map(|name| format!(", container ({name})"));
    vm.into_iter().chain(container).collect()
}

fn table(t: &TableInfo) -> String {
    let metrics = match t.topdown_levels {
        0 => String::new(),
        1 => ", top-down metrics of 1 level".into(),
        n => format!(", top-down metrics of {n} levels"),
    };
    format!(
        "{} ({}): {} general and {} fixed counters{metrics}",
        t.name, t.title, t.general_counters, t.fixed_counters
    )
}

fn permissions(d: &Document) -> String {
    let level = d.perf_event_paranoid.map_or("absent".into(), |p| p.to_string());
    let cap = if d.cap_perfmon { "yes" } else { "no" };
    format!("perf_event_paranoid {level}, CAP_PERFMON {cap}, seccomp {}", d.seccomp)
}

fn list(names: Vec<String>) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn finding(out: &mut String, finding: &Finding) {
    let mark = match finding.level {
        Level::Ok => "yes    ",
        Level::Limited => "limited",
        Level::Blocked => "no     ",
    };
    let _ = writeln!(out, "{mark}  {}", finding.what);
    for (name, text) in [("cause:", &finding.cause), ("try:  ", &finding.remedy)] {
        if let Some(text) = text {
            let _ = writeln!(out, "         {name} {}", text.replace('\n', "\n                "));
        }
    }
}
