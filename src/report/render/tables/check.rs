//! Findings of table validation: one line per table, one per finding.

use crate::documents::tables::Checked;
use std::fmt::Write as _;
use tma::tables::validate::{Finding, Severity};

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
