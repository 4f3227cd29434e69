//! The conditions of a comparison as JUnit XML: a test case for each.

use super::gates;
use crate::documents::diff::Diff;
use crate::documents::diff::gate::Crossing;
use crate::render::markup::xml;
use std::fmt::Write as _;

/// One test suite; crossed lines are failures, undecided ones errors.
pub fn render(diff: &Diff) -> String {
    let count = |crossing| diff.gates(crossing).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"tdtool diff\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
        diff.gates.len(),
        count(Crossing::Crossed),
        count(Crossing::Undecided)
    );
    for gate in &diff.gates {
        let name = xml(&gate.condition);
        let text = xml(&gates::sentence(gate, false));
        let of = xml(&diff.reports.join(" → "));
        let _ = match gate.crossing {
            Crossing::Held => writeln!(out, "  <testcase classname=\"{of}\" name=\"{name}\"/>"),
            Crossing::Crossed => failed(&mut out, (&of, &name), "failure", &text),
            Crossing::Undecided => failed(&mut out, (&of, &name), "error", &text),
        };
    }
    out.push_str("</testsuite>\n");
    out
}

fn failed(out: &mut String, (of, name): (&str, &str), what: &str, text: &str) -> std::fmt::Result {
    writeln!(out, "  <testcase classname=\"{of}\" name=\"{name}\">")?;
    writeln!(out, "    <{what} message=\"{text}\"/>\n  </testcase>")
}
