//! Instruction microbenchmarks as text and as CSV rows.

use crate::documents::microbench::Document;
use crate::format::several;
use crate::render::csv::{self, number};
use bench::microbench::{Cycles, Latencies, Listed, Measurement};
use bench::{Outcome, Status};
use std::fmt::Write as _;

/// The throughput of a multiset.
pub fn render(document: &Document<Measurement>) -> String {
    let report = &document.result;
    let mut out = format!("{}\n", name(report));
    match (&report.cycles, report.status) {
        (Some(c), Status::Ok | Status::Unstable) => {
            let each = several(report.instructions as u64, "instruction");
            let _ = write!(out, "{}: {} for {each}", report.status.word(), span(c));
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
    let violated = report.assumptions.iter().filter(|a| a.outcome == Outcome::Violated);
    for assumption in violated {
        let _ = writeln!(out, "\ndoes not hold: {}: {}", assumption.name.state(), assumption.how);
    }
    notes(&mut out, &document.notes);
    out
}

fn notes(out: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        let _ = writeln!(out, "note: {note}");
    }
}

fn span(c: &Cycles) -> String {
    format!("{:.3} cycles ({:.3} to {:.3})", c.cycles, c.low, c.high)
}

fn code(out: &mut String, report: &Measurement) {
    let _ = writeln!(out, "\ncode of one multiset (unrolled {} times):", report.sets);
    for line in &report.code.instructions {
        let _ = writeln!(out, "  {}", line.text);
    }
}

fn dependencies(out: &mut String, report: &Measurement) {
    if report.dependencies.is_empty() {
        let _ = writeln!(out, "\nno dependencies between the instructions");
        return;
    }
    let _ = writeln!(out, "\ndependencies that the forms do not allow to avoid:");
    for d in &report.dependencies {
        let places = match d.rotation {
            1 => String::new(),
            n => format!("; registers or slots repeat after {n} instances"),
        };
        let wrong = if d.unavoidable { "" } else { " (avoidable: an error of tdtool)" };
        let _ =
            writeln!(out, "  {} reads the {} of {}{places}{wrong}", d.reader, d.through, d.writer);
    }
    match &report.bounded_by {
        None => {
            let _ = writeln!(out, "  no loop-carried dependency, so no latency bound");
        }
        Some(b) => {
            let range = match b.high - b.low < 0.0005 {
                true => format!("{:.3}", b.low),
                false => format!("{:.3} to {:.3}", b.low, b.high),
            };
            let binding = match (b.binding, &report.cycles) {
                (true, _) => "; explains the measured cycles".to_owned(),
                (false, Some(c)) if b.high < c.cycles => {
                    format!(", less than the {:.3} measured", c.cycles)
                }
                _ => String::new(),
            };
            let _ = writeln!(
                out,
                "  latency bound: these chains need {range} cycles, through {}{binding}",
                b.through.join(", ")
            );
            let _ = writeln!(out, "  latencies: {}", b.sources.join("; "));
            if let Some(moves) = &report.after_moves {
                let _ = writeln!(
                    out,
                    "  with a move to {} ahead of each: {}",
                    moves.registers.join(", "),
                    span(&moves.cycles)
                );
            }
        }
    }
}

/// The latencies of a form.
pub fn render_latencies(document: &Document<Latencies>) -> String {
    let (document, remarks) = (&document.result, &document.notes);
    let mut out = format!("{}  ({})\n", document.form, document.code);
    if document.latencies.is_empty() {
        out.push_str("no result depends on an operand that a dependency chain can run through\n");
    }
    for l in &document.latencies {
        let way = format!("{} ({}) → {} ({})", l.input, l.from, l.output, l.to);
        let number = match (l.cycles, l.low, l.high) {
            (Some(c), Some(low), Some(high)) => format!("{c:.2} cycles ({low:.2} to {high:.2})"),
            (None, Some(low), Some(high)) if l.share.is_some() => {
                format!("between {low:.2} and {high:.2} cycles: not known")
            }
            _ => "not measured".to_owned(),
        };
        let _ = writeln!(out, "  {way:<44} {number}  {}", l.status.word());
        if let Some(least) = l.least.filter(|least| l.cycles.is_some_and(|c| c - least > 0.1)) {
            let _ = writeln!(out, "      from {least:.2}, depending on operand values");
        }
        if let Some(chained) = l.chained {
            let _ = writeln!(out, "      {chained:.2} right after the same form");
        }
        if let Some(reason) = &l.reason {
            let _ = writeln!(out, "      {reason}");
        }
        let _ = writeln!(out, "      {}", l.chain);
    }
    notes(&mut out, remarks);
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
                let _ = writeln!(out, "  not measurable: {reason}");
            }
            None => out.push('\n'),
        }
    }
    out
}

/// The columns of [`row`].
pub const HEADER: &str =
    "multiset,instructions,cycles,low,high,ipc,loop_cycles,bound_low,bound_high,status,reason";
/// The columns of [`latency_rows`].
pub const LATENCY_HEADER: &str =
    "form,input,from,output,to,cycles,low,high,least,chained,status,reason,chain,link";

/// One row, without a line break.
pub fn row(report: &Measurement) -> String {
    let of = |cycles: &Option<Cycles>, get: fn(&Cycles) -> f64| number(cycles.as_ref().map(get));
    let bound = report.bounded_by.as_ref();
    csv::row([
        name(report),
        report.instructions.to_string(),
        of(&report.cycles, |c| c.cycles),
        of(&report.cycles, |c| c.low),
        of(&report.cycles, |c| c.high),
        number(report.ipc),
        of(&report.looped, |c| c.cycles),
        number(bound.map(|b| b.low)),
        number(bound.map(|b| b.high)),
        report.status.word().to_owned(),
        report.reason.clone().unwrap_or_default(),
    ])
}

/// The multiset as it is given.
fn name(report: &Measurement) -> String {
    let one = |f: &bench::microbench::FormCount| match f.count {
        1 => f.form.clone(),
        n => format!("{}*{n}", f.form),
    };
    report.multiset.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// One row for each pair, with a line break each.
pub fn latency_rows(document: &Latencies) -> String {
    let one = |l: &bench::microbench::LatencyResult| {
        let cells = [
            document.form.clone(),
            l.input.to_owned(),
            l.from.clone(),
            l.output.to_owned(),
            l.to.clone(),
            number(l.cycles),
            number(l.low),
            number(l.high),
            number(l.least),
            number(l.chained),
            l.status.word().to_owned(),
            l.reason.clone().unwrap_or_default(),
            l.chain.clone(),
            number(l.link),
        ];
        csv::line(cells)
    };
    document.latencies.iter().map(one).collect()
}

/// A list of forms, with a header.
pub fn list_rows(listed: &[bench::microbench::Listed]) -> String {
    let one = |l: &bench::microbench::Listed| {
        let cells = [
            l.form.clone(),
            l.code.clone(),
            l.extensions.join(" "),
            l.reason.clone().unwrap_or_default(),
        ];
        csv::line(cells)
    };
    format!("form,code,extensions,reason\n{}", listed.iter().map(one).collect::<String>())
}
