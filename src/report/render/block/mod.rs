//! A measured block for people: the answer, the bounds as bars, then the evidence.

mod answer;
mod bars;
mod conditions;
pub mod csv;
mod layout;
mod pair;
mod prediction;
mod remedy;
mod rows;
mod sections;
mod tree;

pub use csv::{HEADER, finished, row};
pub use pair::pair;
pub use prediction::predictions;
pub use rows::{Row, Style, Weight};

use crate::format;
use bench::Measurement;
use layout::labelled;
use rows::{Rows, Weight as W};

/// The report as rows, for a page of any width.
pub fn rows(report: &Measurement, style: &Style) -> Vec<Row> {
    let mut rows = Rows::default();
    answer::answer(&mut rows, report);
    bars::bars(&mut rows, report, style);
    sections::evidence(&mut rows, report);
    sections::code(&mut rows, report, style.narrow);
    sections::forms(&mut rows, report);
    sections::assumptions(&mut rows, report, style.verbose, &style.more);
    sections::what_if(&mut rows, report);
    tree::tree(&mut rows, report);
    sections::misses(&mut rows, report);
    conditions::samples(&mut rows, report, style.verbose);
    if style.verbose {
        conditions::values(&mut rows, report);
    }
    for layer in &report.sandbox {
        rows.blank();
        rows.add("sandbox: ", layer, W::Faint);
    }
    rows.0
}

/// The report as text, one line break at its end.
pub fn render(report: &Measurement, style: &Style) -> String {
    let mut out = String::new();
    for row in rows(report, style) {
        labelled(&mut out, &row.label, &row.text, style.width);
    }
    if style.ascii { format::ascii(&out) } else { out }
}

#[cfg(test)]
mod tests;
