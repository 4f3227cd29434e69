//! Two blocks side by side.

use super::layout::{WIDTH, labelled};
use super::remedy::{again, remedy};
use crate::documents::block::{BlockPair, Faster};
use crate::format;
use crate::render::width::Page;
use bench::Class;
use bench::{Measurement, Status};
use std::collections::BTreeSet;

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
    m.hierarchy.bound.map_or("not known", Class::name)
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
