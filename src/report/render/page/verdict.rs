//! Head of the page: the verdict and the commands that show more, as in the text.

use super::pieces::{section, xml};
use crate::documents::report::Report;
use std::fmt::Write as _;

/// The verdict and the next steps; nothing where nothing was measured.
pub(super) fn verdict(report: &Report) -> String {
    let Some(found) = &report.conclusion else { return String::new() };
    let mut body = String::new();
    if !found.verdict.is_empty() {
        let _ = writeln!(body, "<p class=\"verdict\">{}</p>", xml(&found.verdict));
    }
    for step in &found.next {
        let (why, command) = (xml(&step.why), xml(&step.command));
        let _ = writeln!(
            body,
            "<p class=\"remark\"><b>next:</b> {why}: <code class=\"command\">{command}</code></p>"
        );
    }
    section("verdict", "Verdict", &body)
}
