//! The conditions of a comparison as JUnit XML: a test case for each.

use super::gates;
use crate::documents::diff::Crossing;
use crate::documents::diff::Diff;
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
        let case = format!("  <testcase classname=\"{of}\" name=\"{name}\"");
        let _ = match gate.crossing {
            Crossing::Held => writeln!(out, "{case}/>"),
            Crossing::Crossed => failed(&mut out, &case, "failure", &text),
            Crossing::Undecided => failed(&mut out, &case, "error", &text),
        };
    }
    out.push_str("</testsuite>\n");
    out
}

fn failed(out: &mut String, case: &str, what: &str, text: &str) -> std::fmt::Result {
    writeln!(out, "{case}>\n    <{what} message=\"{text}\"/>\n  </testcase>")
}
