//! Renders two blocks side by side, predictions beside a measurement, with the port pressure of each instruction,
//! and a cost model judged by measured blocks.

use super::answer::{again, remedy};
use super::rows::{WIDTH, labelled};
use crate::documents::block::{Accuracy, BlockPair, Faster, ModelErrors, Prediction, Pressure};
use crate::format::{self, several};
use crate::render::width::Page;
use bench::{Class, Measurement, Status};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Columns of a label, and of a block.
const LABEL: usize = 20;
const COLUMN: usize = 30;

/// The pair as text.
pub fn pair(pair: &BlockPair, ascii: bool, page: Page) -> String {
    let mut out = String::new();
    let (a, b) = (&pair.a.measurement, &pair.b.measurement);
    match (&pair.difference, &pair.reason) {
        (Some(d), _) => {
            let answer = match d.faster {
                Faster::A => format!("A is faster: B takes {:.3} times as long", d.ratio),
                Faster::B => format!("B is faster: it takes {:.3} of A's time", d.ratio),
                Faster::Neither => "no difference is shown".to_owned(),
            };
            let text = format!(
                "{answer}; B - A = {:+.3} core cycles per iteration ({:+.3} to {:+.3}, confidence \
                 {:.1} %, {} pairs)",
                d.cycles,
                d.low,
                d.high,
                100.0 * d.confidence,
                d.pairs
            );
            labelled(&mut out, "", &text, WIDTH);
        }
        (None, why) => {
            let why = why.as_deref().unwrap_or("no reason");
            labelled(&mut out, "not compared: ", why, WIDTH);
            let doubtful = [a, b].into_iter().find(|m| m.status != Status::Ok);
            if let Some(remedy) = doubtful.map_or_else(|| Some(again(a.settings.as_ref())), remedy)
            {
                labelled(&mut out, "  try: ", &remedy, WIDTH);
            }
        }
    }
    out.push('\n');
    row(&mut out, "", "A", "B");
    row(&mut out, "status", a.status.word(), b.status.word());
    row(&mut out, "cycles", &cycles(a), &cycles(b));
    row(&mut out, "  range", &range(a), &range(b));
    row(&mut out, "instructions", &count(a), &count(b));
    row(&mut out, "IPC", &ipc(a), &ipc(b));
    row(&mut out, "bound by", bound_by(a), bound_by(b));
    let names: BTreeSet<&str> =
        [a, b].iter().flat_map(|m| m.bounds.iter().map(|b| b.name)).collect();
    for name in names {
        row(&mut out, &format!("  {name}"), &bound(a, name), &bound(b, name));
    }
    for (name, measurement) in [("A", a), ("B", b)] {
        out.push_str(&format!("\n{name}\n"));
        for line in &measurement.block.instructions {
            out.push_str(&format!("  {}\n", line.text));
        }
        for note in &measurement.notes {
            labelled(&mut out, "  note: ", note, WIDTH);
        }
    }
    page.fitted(if ascii { format::ascii(&out) } else { out })
}

fn row(out: &mut String, label: &str, a: &str, b: &str) {
    let line = format!("{label:<LABEL$} {a:<COLUMN$} {b}");
    out.push_str(line.trim_end());
    out.push('\n');
}

fn cycles(m: &Measurement) -> String {
    let trusted = m.throughput.as_ref().filter(|_| m.status == Status::Ok);
    trusted.map_or("-".to_owned(), |t| format!("{:.3}", t.cycles))
}

fn range(m: &Measurement) -> String {
    let range = |t: &bench::Throughput| format!("{:.3} to {:.3}", t.low, t.high);
    m.throughput.as_ref().map_or("-".to_owned(), range)
}

fn count(m: &Measurement) -> String {
    m.block.instructions.len().to_string()
}

fn ipc(m: &Measurement) -> String {
    m.ipc.map_or("-".to_owned(), |ipc| format!("{ipc:.2}"))
}

fn bound_by(m: &Measurement) -> &str {
    m.hierarchy.bound().map_or("not known", Class::name)
}

/// The bound or its range; refuted ones say so.
fn bound(m: &Measurement, name: &str) -> String {
    let Some(bound) = m.bounds.iter().find(|b| b.name == name) else { return "-".to_owned() };
    let cycles = match bound.low < bound.high {
        true => format!("{:.3} to {:.3}", bound.low, bound.high),
        false => format!("{:.3}", bound.cycles),
    };
    if bound.refuted { format!("{cycles} (refuted)") } else { cycles }
}

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
        let text = format!("{:.3}  {}, {} a cycle", w.cycles, several(w.slots, "slot"), w.width);
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

/// Most bytes of a block that are shown.
const SHOWN: usize = 24;

/// The accuracy by class, and the worst blocks.
pub fn model_errors(found: &ModelErrors) -> String {
    let mut out = format!(
        "{} with a measurement and a prediction; {} not ok, {} without a prediction\n\n",
        several(found.overall.blocks, "block"),
        found.not_ok,
        found.not_predicted
    );
    out +=
        "class              blocks  mean error  median   <=5 %  <=10 %  <=25 %  <=50 %     tau\n";
    for class in &found.classes {
        line(&mut out, class.class, &class.accuracy);
    }
    line(&mut out, "all", &found.overall);
    out += "\nworst             measured  predicted   error  class\n";
    for block in &found.worst {
        let hex: String = block.hex.chars().take(2 * SHOWN).collect();
        let more = if hex.len() < block.hex.len() { "..." } else { "" };
        let _ = writeln!(
            out,
            "                  {:>8.3}  {:>9.3}  {:>4.0} %  {}: {hex}{more}",
            block.measured,
            block.predicted,
            100.0 * block.error,
            block.class
        );
    }
    out
}

fn line(out: &mut String, name: &str, a: &Accuracy) {
    let percent = |value: Option<f64>| {
        value.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
    };
    let tau = a.kendall_tau.map_or("-".to_owned(), |tau| format!("{tau:.3}"));
    let _ = writeln!(
        out,
        "{name:<18} {:>6}  {:>10}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {tau:>6}",
        a.blocks,
        percent(a.mean_error),
        percent(a.median_error),
        percent(a.within_5),
        percent(a.within_10),
        percent(a.within_25),
        percent(a.within_50),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::block::BlockReport;
    use bench::{Bound, rejected};
    use tma::Core;

    fn of(status: Status, bounds: Vec<Bound>) -> BlockReport {
        let report = rejected("90", "made up".to_owned(), &Core::default());
        let measurement = Measurement { status, bounds, ..report };
        BlockReport { measurement, predictions: Vec::new() }
    }

    fn text(a: BlockReport, b: BlockReport) -> String {
        let (schema, reason) = ("", Some("a reason".to_owned()));
        let compared = BlockPair { schema, a, b, difference: None, reason };
        pair(&compared, true, Page::default())
    }

    #[test]
    fn only_what_may_help_the_comparison_is_suggested() {
        let suggests = |a, b| text(of(a, Vec::new()), of(b, Vec::new())).contains("try:");
        // The reason is of A, whatever B may need.
        assert!(!suggests(Status::Rejected, Status::Unstable));
        assert!(!suggests(Status::Ok, Status::Failed));
        assert!(suggests(Status::Ok, Status::Unstable));
        assert!(suggests(Status::Ok, Status::Ok), "too few pairs without contention");
    }

    #[test]
    fn a_refuted_bound_says_so_with_its_range_and_columns_stay_apart() {
        let bound = |refuted| Bound {
            name: "store-forwarding",
            cycles: 22.0,
            low: 14.0,
            high: 30.0,
            refuted,
            ..Bound::default()
        };
        let shown = text(of(Status::Ok, vec![bound(true)]), of(Status::Ok, vec![bound(false)]));
        let row = shown.lines().find(|line| line.contains("store-forwarding")).unwrap();
        let columns: Vec<&str> = row.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
        assert_eq!(
            columns,
            ["store-forwarding", "14.000 to 30.000 (refuted)", "14.000 to 30.000"],
            "{shown}"
        );
    }
}
