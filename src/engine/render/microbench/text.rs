//! Kernels for people.

use super::csv::name;
use bench::microbench::{Cycles, Latencies, Listed, Measurement};
use bench::{Outcome, Status};
use std::fmt::Write as _;

/// A multiset's report.
pub fn render(report: &Measurement) -> String {
    let mut out = format!("{}\n", name(report));
    let plural = if report.instructions == 1 { "" } else { "s" };
    match (&report.cycles, report.status) {
        (Some(c), Status::Ok | Status::Unstable) => {
            let (word, each) = (report.status.word(), report.instructions);
            let _ = write!(out, "{word}: {} for {each} instruction{plural}", span(c));
            if let Some(ipc) = report.ipc {
                let _ = write!(out, ", IPC {ipc:.2}");
            }
            let _ = writeln!(out, ", clock {}", report.clock.unwrap_or("unknown"));
            if let Some(reason) = &report.reason {
                let _ = writeln!(out, "  {reason}");
            }
        }
        _ => {
            let reason = report.reason.as_deref().unwrap_or("no reason");
            let _ = writeln!(out, "{}: {reason}", report.status.word());
        }
    }
    match (&report.looped, &report.loop_reason) {
        (Some(c), _) => {
            let _ = writeln!(out, "  as a loop: {}", span(c));
        }
        (None, Some(reason)) => {
            let _ = writeln!(out, "  as a loop: not measured: {reason}");
        }
        _ => {}
    }
    code(&mut out, report);
    dependencies(&mut out, report);
    let violated = report.assumptions.iter().filter(|i| i.outcome == Outcome::Violated);
    for invariant in violated {
        let _ = writeln!(out, "\nviolated: {}: {}", invariant.name, invariant.how);
    }
    out
}

fn span(c: &Cycles) -> String {
    format!("{:.3} cycles ({:.3} to {:.3})", c.cycles, c.low, c.high)
}

fn code(out: &mut String, report: &Measurement) {
    let _ = writeln!(out, "\nthe multiset once, of {} times in the code:", report.sets);
    for line in &report.code.instructions {
        let _ = writeln!(out, "  {}", line.text);
    }
}

fn dependencies(out: &mut String, report: &Measurement) {
    if report.dependencies.is_empty() {
        let _ = writeln!(out, "\nindependent: no instruction reads what another writes");
        return;
    }
    let _ = writeln!(out, "\nnot independent, and cannot be made so:");
    for d in &report.dependencies {
        let turn = match d.in_turn {
            1 => String::new(),
            n => format!(", {n} in turn"),
        };
        let wrong = if d.unavoidable { "" } else { " (this should not be)" };
        let _ = writeln!(out, "  {} reads {} of {}{turn}{wrong}", d.reader, d.through, d.writer);
    }
    match &report.bounded_by {
        None => {
            let _ = writeln!(out, "  nothing goes round: no bound");
        }
        Some(b) => {
            let range = match b.high - b.low < 0.0005 {
                true => format!("{:.3}", b.low),
                false => format!("{:.3} to {:.3}", b.low, b.high),
            };
            let binding = if b.binding { "; it explains the measured cycles" } else { "" };
            let _ = writeln!(
                out,
                "  bound: at least {range} cycles, through {}{binding}",
                b.through.join(", ")
            );
            let _ = writeln!(out, "  latencies: {}", b.sources.join("; "));
        }
    }
}

/// A form's latencies.
pub fn render_latencies(document: &Latencies) -> String {
    let mut out = format!("{}  ({})\n", document.form, document.code);
    if document.latencies.is_empty() {
        out.push_str("no result of it depends on an operand that a chain can be made of\n");
    }
    for l in &document.latencies {
        let way = format!("{} ({}) → {} ({})", l.input, l.from, l.output, l.to);
        let number = match (l.cycles, l.low, l.high) {
            (Some(c), Some(low), Some(high)) => format!("{c:.2} cycles ({low:.2} to {high:.2})"),
            _ => "not measured".to_owned(),
        };
        let _ = writeln!(out, "  {way:<44} {number}  {}", l.status.word());
        if let Some(least) = l.least.filter(|least| l.cycles.is_some_and(|c| c - least > 0.1)) {
            let _ = writeln!(out, "      from {least:.2}, depending on its values");
        }
        if let Some(chained) = l.chained {
            let _ = writeln!(out, "      {chained:.2} right behind another of its kind");
        }
        if let Some(reason) = &l.reason {
            let _ = writeln!(out, "      {reason}");
        }
        let _ = writeln!(out, "      {}", l.chain);
    }
    out
}

/// A list of forms.
pub fn render_list(listed: &[Listed]) -> String {
    let width = listed.iter().map(|l| l.form.len()).max().unwrap_or(0);
    let mut out = String::new();
    for l in listed {
        let _ = write!(out, "{:<width$}  {}", l.form, l.code);
        match &l.reason {
            Some(reason) => {
                let _ = writeln!(out, "  not here: {reason}");
            }
            None => out.push('\n'),
        }
    }
    out
}
