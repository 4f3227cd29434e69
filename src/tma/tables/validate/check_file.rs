//! All checks of one table file, and what they find, in order.

use super::finding::{Finding, Findings, Severity};
use super::lines::Lines;
use super::{events, head, nodes, threshold};
use crate::tables::schema::TableFile;
use crate::tables::texts::Texts;

/// The result of checking one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Errors first, then by line.
    pub findings: Vec<Finding>,
    /// Nodes, bottlenecks, info metrics and events; 0 where the file cannot be read.
    pub counts: [usize; 4],
}

/// Every finding about the table file `text` that is known as `name`, errors first, then by
/// line.
pub fn findings(name: &str, text: &str, texts: Texts) -> Vec<Finding> {
    report(name, text, texts).findings
}

/// The findings, and how much the file holds.
pub fn report(name: &str, text: &str, texts: Texts) -> Report {
    let mut found = Findings { lines: Lines::of(text), list: Vec::new() };
    let mut counts = [0; 4];
    match toml::from_str::<TableFile>(text) {
        Ok(file) => {
            counts = [file.node.len(), file.bottleneck.len(), file.info.len(), file.events.len()];
            check(name, &file, texts, &mut found);
        }
        Err(e) => {
            let line = e.span().map(|span| found.lines.at(span.start));
            let what =
                format!("the file cannot be read: {}", crate::text::name(e.message().trim_end()));
            found.list.push(Finding { severity: Severity::Error, about: None, line, what });
        }
    }
    let mut findings = found.list;
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (std::cmp::Reverse(f.severity), f.line);
        key(a).cmp(&key(b)).then_with(|| a.what.cmp(&b.what))
    });
    findings.dedup();
    Report { findings, counts }
}

fn check(name: &str, file: &TableFile, texts: Texts, found: &mut Findings) {
    head::check(name, file, found);
    let formulas = nodes::check(file, texts, found);
    events::check(file, &formulas, found);
    threshold::check(file, &formulas, found);
}
