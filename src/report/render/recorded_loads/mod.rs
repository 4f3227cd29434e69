//! Recorded samples of loads and stores as text and CSV.
//!
//! | file | concern |
//! |---|---|
//! | `accesses` | loads and stores |
//! | `data` | variables, members of structures |
//! | `lines` | cache lines that threads share |
//! | `critical` | critical loads, hard branches |
//! | `code_misses` | lines of code that missed |
//! | `cells` | levels, latencies and source lines in cells |
//! | `csv` | the document as CSV |

mod accesses;
mod cells;
mod code_misses;
mod critical;
mod csv;
mod data;
mod lines;

pub use csv::csv;

use super::width::{Page, Rows};
use crate::documents::loads::{EventRow, Loads, Shares};
use std::fmt::Write as _;

/// The document as text: of each table `most` rows.
pub fn text(document: &Loads, most: usize, page: Page) -> String {
    let (mut out, rows) = (String::new(), Rows { most, page });
    for (number, event) in document.events.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        head(event, &mut out);
        accesses::accesses("load", event, &document.loads, rows, &mut out);
        accesses::accesses("store", event, &document.stores, rows, &mut out);
        data::variables(event, &document.variables, rows, &mut out);
        data::fields(event, &document.fields, rows, &mut out);
    }
    lines::lines(document, rows, &mut out);
    critical::critical(document, rows, &mut out);
    critical::hard_branches(document, rows, &mut out);
    code_misses::code_misses(document, rows, &mut out);
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    page.fitted(out)
}

fn head(event: &EventRow, out: &mut String) {
    let stores = match event.stores {
        0 => String::new(),
        n => format!(", {n} stores"),
    };
    let _ = writeln!(out, "{}: {} loads{stores} in {}", event.name, event.loads, event.source);
    for sentence in &event.bias {
        let _ = writeln!(out, "  {sentence}");
    }
    let shares = match event.shares {
        Shares::Latency => "shares are of Σ latency × period",
        Shares::Samples => "no latencies are recorded: shares are of the samples, by their periods",
    };
    let _ = writeln!(out, "  {shares}");
    if event.others > 0 {
        let _ =
            writeln!(out, "  {} samples of instructions that neither load nor store", event.others);
    }
    if event.inexact > 0 {
        let _ = writeln!(
            out,
            "  {} samples skid: the load is the instruction named or one a few before it",
            event.inexact
        );
    }
}
