//! A report for people: verdict, disassembly, forms, assumptions, bounds, tree.

pub mod csv;
mod layout;
mod sections;

pub use csv::{HEADER, finished, row};

use bench::{Report, Status};
use layout::{REMEDY, labelled, paragraph};
use std::fmt::Write as _;

/// The report as text, one line break at its end. Of assumptions that held only the names;
/// [`render_in_full`] tells of each how it is known.
pub fn render(report: &Report) -> String {
    whole(report, false)
}

/// The report as text, with everything that is known.
pub fn render_in_full(report: &Report) -> String {
    whole(report, true)
}

fn whole(report: &Report, verbose: bool) -> String {
    let mut out = String::new();
    headline(&mut out, report);
    for note in &report.notes {
        labelled(&mut out, "note: ", note);
    }
    code(&mut out, report);
    sections::forms(&mut out, report);
    sections::samples(&mut out, report);
    sections::values(&mut out, report);
    sections::assumptions(&mut out, report, verbose);
    sections::bounds(&mut out, report);
    sections::tree(&mut out, report);
    sections::what_if(&mut out, report);
    sections::misses(&mut out, report);
    for layer in &report.sandbox {
        out.push('\n');
        labelled(&mut out, "sandbox: ", layer);
    }
    out
}

fn headline(out: &mut String, report: &Report) {
    let word = report.status.word();
    match (&report.throughput, report.status) {
        (Some(_), Status::Ok) => {
            let violated = report.violated();
            let number = number(report);
            if violated.is_empty() {
                paragraph(out, 0, &format!("{word}: {number}"));
            } else {
                let count = match violated.len() {
                    1 => "1 assumption".to_owned(),
                    n => format!("{n} assumptions"),
                };
                let names = violated.join(", ");
                paragraph(out, 0, &format!("{word}, with {count} violated: {names}"));
                paragraph(out, 2, &number);
            }
        }
        _ => {
            let reason = report.reason.as_deref().unwrap_or("no reason");
            paragraph(out, 0, &format!("{word}: {reason}"));
            unstable(out, report);
        }
    }
    if report.status == Status::Failed && report.was_disturbed() {
        labelled(out, "  try: ", REMEDY);
    }
    if let Some(place) = &report.place {
        let words = place.words();
        if !words.is_empty() {
            let _ = writeln!(out, "  at {words} (counted from 0)");
        }
    }
}

fn number(report: &Report) -> String {
    let Some(t) = &report.throughput else { return String::new() };
    let mut text = format!("{:.3} cycles per iteration ({:.3} to {:.3})", t.cycles, t.low, t.high);
    let count = report.block.instructions.len();
    let plural = if count == 1 { "" } else { "s" };
    text += &format!(", {count} instruction{plural}");
    if let Some(ipc) = report.ipc {
        text += &format!(", IPC {ipc:.2}");
    }
    text + &format!(", clock {}", t.clock)
}

/// What is known although no number is trusted.
fn unstable(out: &mut String, report: &Report) {
    let (Some(t), Status::Unstable) = (&report.throughput, report.status) else { return };
    let text = format!("between {:.3} and {:.3} cycles per iteration", t.low, t.high);
    let modes = match t.modes.as_slice() {
        [] | [_] => ", without separate modes".to_owned(),
        _ => format!(", in modes: {}", sections::modes(t)),
    };
    paragraph(out, 2, &format!("{text}{modes}, clock {}", t.clock));
    labelled(out, "  try: ", REMEDY);
}

fn code(out: &mut String, report: &Report) {
    if report.block.instructions.is_empty() {
        return;
    }
    let width = report.block.instructions.iter().map(|i| i.bytes.len()).max().unwrap_or(0);
    let at = report.place.as_ref().and_then(|p| p.instruction);
    out.push('\n');
    for (i, line) in report.block.instructions.iter().enumerate() {
        let mark = if at == Some(i) { ">" } else { " " };
        let label = format!("{mark}{i:>3} {:>6}  {:width$}  ", line.offset, line.bytes);
        labelled(out, &label, &line.text);
    }
}

#[cfg(test)]
mod tests;
