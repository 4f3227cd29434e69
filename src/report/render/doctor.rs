//! Abilities of this machine as text, facts first, then the findings; and which processor it is.

use crate::documents::doctor::{Agreement, Document, FactRow, Identities, KindOfCore, TableInfo};
use crate::format::several;
use pmu::machine::{Finding, Level};
use std::fmt::Write as _;
use tma::identity::{self, Identity};
use tma::measured::Fact;

/// The document as text: a line for each capability, and what to do where it is limited; with `verbose` all facts of the
/// machine, causes and evidence, too.
pub fn text(document: &Document, verbose: bool) -> String {
    let mut out = String::new();
    for (name, value) in facts(document, verbose) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<12} {value}");
    }
    if !document.measured.is_empty() {
        out.push_str("\nmeasured facts of the core\n");
        document.measured.iter().for_each(|row| measured(&mut out, row, verbose));
    }
    out.push('\n');
    document.findings.iter().for_each(|f| finding(&mut out, f, verbose));
    if !verbose {
        out.push_str("\ncauses and evidence: `tdtool doctor -v`\n");
    }
    out
}

fn facts(d: &Document, verbose: bool) -> Vec<(&'static str, String)> {
    let name = if d.processor.is_empty() { "unknown" } else { &d.processor };
    let mut rows =
        vec![("processor", format!("{name} ({})", d.signature)), ("topology", topology(d))];
    rows.extend(d.tsc_hz.map(|hz| ("TSC", format!("{:.1} MHz", hz / 1e6))));
    rows.push(("kernel", format!("{}{}", d.kernel, guest(d))));
    rows.extend(d.tables.iter().map(|t| ("table", table(t))));
    let cores = d.identity.cores.iter().filter(|_| verbose);
    rows.extend(cores.map(|core| ("identity", answer(&core.identity))));
    if d.tables.is_empty() {
        rows.push(("table", "none for this processor".into()));
    }
    let core = d.pmus.iter().filter(|p| p.core).map(|p| match p.cpus {
        Some(n) => format!("{} ({n} CPUs)", p.name),
        None => p.name.clone(),
    });
    rows.push(("core PMU", list(core.collect())));
    if !verbose {
        return rows;
    }
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
fn measured(out: &mut String, row: &FactRow, verbose: bool) {
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
        (Some((value, by)), Agreement::SameOrigin) => {
            format!("; {value} by {by} was measured, too: not compared")
        }
        (Some((value, by)), Agreement::Open) => format!("; {value} by {by}"),
        (Some((value, by)), _) => format!("; differs from {value} by {by}"),
    };
    let _ = writeln!(out, "  {:<20} {value}{beside}", row.name);
    if let (Fact::Known(known), true) = (&row.fact, verbose) {
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
    let count = |n: usize, what: &str| several(n as u64, what);
    let smt = match (d.smt, &d.virtual_machine) {
        (true, _) => "on",
        // The host may run sibling threads beside the guest.
        (false, Some(_)) => "not visible to the guest",
        (false, None) => "off",
    };
    let (sockets, cores) = (count(d.sockets, "socket"), count(d.cores_per_socket, "core"));
    format!("{sockets}, {cores} each, {}, SMT {smt}", count(d.cpus, "CPU"))
}

/// Surroundings of the kernel: a hypervisor, a container.
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

fn finding(out: &mut String, finding: &Finding, verbose: bool) {
    let mark = match finding.level {
        Level::Ok => "yes    ",
        Level::Limited => "limited",
        Level::Blocked => "blocked",
    };
    let mut line = |text: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}");
    };
    line(format_args!("{mark}  {}", finding.what));
    let indented = |text: &str| text.replace('\n', "\n                ");
    if let Some(cause) = finding.cause.as_ref().filter(|_| verbose) {
        line(format_args!("         cause: {}", indented(cause)));
    }
    if verbose {
        finding.evidence.iter().for_each(|text| line(format_args!("         - {text}")));
    }
    match finding.remedy.as_ref().map(|text| (text, text.split_once('\n'))) {
        Some((_, Some((first, _)))) if !verbose => {
            let first = first.trim_end_matches(':');
            line(format_args!("         try:   {first}; how: `tdtool doctor -v`"));
        }
        Some((text, _)) => line(format_args!("         try:   {}", indented(text))),
        None => {}
    }
}

/// Facts that are printed of each sort; JSON has all.
const SHOWN: usize = 8;

/// The document as text.
pub fn identity_text(document: &Identities) -> String {
    let is_one_of_several = document.cores.len() > 1;
    let parts: Vec<String> =
        document.cores.iter().map(|one| core(one, is_one_of_several)).collect();
    let mut out = parts.join("\n");
    if document.kinds_move {
        out.push_str(
            "\nnote: the host may move a CPU to another kind of core at any time; this is what \
             each was when it was asked\n",
        );
    }
    out
}

fn core(core: &KindOfCore, is_one_of_several: bool) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<13} {value}");
    };
    let identity = &core.identity;
    if is_one_of_several && !core.cpus.is_empty() {
        let cpus: Vec<String> = core.cpus.iter().map(u32::to_string).collect();
        row("CPUs", &cpus.join(" "));
    }
    row("table", &answer(identity));
    row("claimed", &claim(identity));
    if let Some(others) = identity.others_note() {
        row("not excluded", &others);
    }
    rows(&mut row, "evidence", identity.evidence.iter().map(identity::Fact::to_string).collect());
    let against = identity.contradicted.iter().map(|c| format!("{}: {}", c.table, c.fact));
    rows(&mut row, "contradicted", against.collect());
    rows(&mut row, "hidden", identity.hidden.iter().map(identity::Fact::to_string).collect());
    if let Some(fingerprint) = &core.fingerprint {
        row("fingerprint", &fingerprint.hash);
    }
    out
}

/// The table, and by what; or what remains.
fn answer(identity: &Identity) -> String {
    match &identity.table {
        Some(table) => format!("{table}, by {}", identity.by.name()),
        None if identity.candidates.is_empty() => "none fits".into(),
        None => format!(
            "none: {} fit alike; what they have in common is used, the rest is not known",
            identity.candidates.join(", ")
        ),
    }
}

/// Claim of family and model.
fn claim(identity: &Identity) -> String {
    let claimed = &identity.claimed;
    let tables = match &claimed.tables[..] {
        [] => "no table".into(),
        tables => tables.join(" or "),
    };
    let guest = if identity.is_virtual { "; a hypervisor may show any model" } else { "" };
    format!(
        "{} family {} model {} ({:#x}) stepping {}: {tables}{guest}",
        claimed.vendor, claimed.family, claimed.model, claimed.model, claimed.stepping
    )
}

fn rows(row: &mut impl FnMut(&str, &str), name: &str, facts: Vec<String>) {
    let count = facts.len();
    for (index, fact) in facts.into_iter().take(SHOWN).enumerate() {
        row(if index == 0 { name } else { "" }, &fact);
    }
    if count > SHOWN {
        row("", &format!("and {} more (--format json)", count - SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A finding as text.
    fn shown(found: &Finding, verbose: bool) -> String {
        let mut out = String::new();
        finding(&mut out, found, verbose);
        out
    }

    #[test]
    fn a_capability_is_a_line_and_what_to_do_and_evidence_is_for_those_who_ask() {
        let found = Finding {
            cause: Some("the host gives none".to_owned()),
            remedy: Some("give the guest one:\nQEMU: pmu=on".to_owned()),
            evidence: vec!["no cpu in sysfs".to_owned()],
            ..Finding::new("core_pmu", Level::Blocked, "no core PMU")
        };
        let short =
            "blocked  no core PMU\n         try:   give the guest one; how: `tdtool doctor -v`\n";
        assert_eq!(shown(&found, false), short);
        let long = shown(&found, true);
        for part in ["cause: the host gives none", "- no cpu in sysfs", "QEMU: pmu=on"] {
            assert!(long.contains(part), "{long}");
        }
        let plain = Finding::new("software", Level::Ok, "software counts");
        assert_eq!(shown(&plain, false), "yes      software counts\n");
    }
}
