//! Predictions beside a measurement: their parts and the port pressure of each instruction.

use super::layout::{WIDTH, labelled};
use crate::documents::block::{Prediction, Pressure};
use crate::format;
use crate::render::width::Page;
use std::fmt::Write as _;

/// Fewest columns of an instruction.
const INSTRUCTION: usize = 16;
/// Columns of a port.
const CELL: usize = 6;

/// The predictions as text, each after an empty line.
pub fn predictions(all: &[Prediction], ascii: bool, page: Page) -> String {
    let mut out = String::new();
    for prediction in all {
        out.push('\n');
        one(&mut out, prediction, page);
    }
    page.fitted(if ascii { format::ascii(&out) } else { out })
}

fn one(out: &mut String, p: &Prediction, page: Page) {
    let core = match p.measured_core {
        true => format!("{} (this core)", p.uarch),
        false => format!("{} ({}), not this core", p.uarch, p.title),
    };
    let answer = match (p.cycles, p.bound) {
        (Some(cycles), Some(bound)) => {
            format!("{cycles:.3} cycles per iteration or more ({bound})")
        }
        _ => "nothing: no table".to_owned(),
    };
    labelled(out, "", &format!("predicted for {core}, not measured: {answer}"), WIDTH);
    if let Some(w) = &p.issue_width {
        let text = format!("{:.3}  {} slots, {} a cycle", w.cycles, w.slots, w.width);
        labelled(out, "  issue width  ", &text, WIDTH);
    }
    if let Some(ports) = &p.ports {
        let text = format!("{:.3}  from {}", ports.cycles, ports.sources.join("; "));
        labelled(out, "  ports        ", &text, WIDTH);
    }
    if let Some(r) = &p.recurrence {
        let range =
            if r.high > r.cycles { format!(" (up to {:.3})", r.high) } else { String::new() };
        let assumed = if r.assumed { ", from assumed latencies" } else { "" };
        let path = r.path.join(" → ");
        let text = format!("{:.3}{range}{assumed}  {path} → next iteration", r.cycles);
        labelled(out, "  recurrence   ", &text, WIDTH);
    }
    for line in &p.missing {
        labelled(out, "  note: ", line, WIDTH);
    }
    if !p.unknown.is_empty() {
        labelled(out, "  unknown, left out: ", &p.unknown.join("; "), WIDTH);
    }
    if let Some(ports) = &p.ports {
        table(out, ports, page);
    }
}

/// One row for each instruction, one column for each port that the block can use.
fn table(out: &mut String, ports: &Pressure, page: Page) {
    let used: Vec<usize> = (0..ports.names.len()).filter(|at| ports.total[*at] > 0.0).collect();
    let taken = CELL * used.len() + 9;
    let room = page.width().map_or(0, |width| width.saturating_sub(taken).max(INSTRUCTION));
    out.push_str("\n  slots");
    for at in &used {
        let _ = write!(out, "{:>CELL$}", ports.names[*at]);
    }
    out.push_str("  cycles on each port\n");
    for row in &ports.instructions {
        let slots = row.slots.map_or("?".to_owned(), |slots| slots.to_string());
        let cells: String = match row.cycles.is_empty() {
            true => format!("{:>width$}", "not known", width = CELL * used.len()),
            false => used.iter().map(|at| cell(row.cycles[*at])).collect(),
        };
        let why = row.without.map(|why| format!("  ({why})")).unwrap_or_default();
        let text = page.cut(&row.text, room);
        let _ = writeln!(out, "  {slots:>5}{cells}  {text}{why}");
    }
    let total: String = used.iter().map(|at| cell(ports.total[*at])).collect();
    let _ = writeln!(out, "  {:>5}{total}  total", "");
}

fn cell(cycles: f64) -> String {
    match cycles {
        c if c < 0.005 => format!("{:>CELL$}", "-"),
        c => format!("{c:>CELL$.2}"),
    }
}
