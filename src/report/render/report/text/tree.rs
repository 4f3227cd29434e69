//! The tree of one part of a report: indented, with bars, flags and remarks.

use super::renderer::Renderer;
use crate::documents::report::{CountRow, NodeRow};
use crate::format;
use std::fmt::Write as _;

/// Width of the widest bar, in cells.
const BAR: usize = 20;

impl Renderer<'_> {
    /// Full siblings of everything flagged; below an unflagged node nothing, unless verbose.
    pub(super) fn tree(&mut self, nodes: &[&NodeRow]) -> std::fmt::Result {
        let all_missing = !nodes.is_empty() && nodes.iter().all(|n| n.value.is_none());
        let open = |n: &NodeRow| {
            n.level == 1
                || self.style.verbose
                || (!all_missing
                    && nodes.iter().any(|p| {
                        Some(&p.id) == n.parent.as_ref()
                            && (p.flagged || p.over.is_none() && p.value.is_some())
                    }))
                || (!nodes.iter().any(|p| Some(&p.id) == n.parent.as_ref()))
        };
        let shown: Vec<&NodeRow> = nodes.iter().copied().filter(|n| open(n)).collect();
        let indent = |n: &NodeRow| 2 * n.level.saturating_sub(1) as usize;
        let label = shown.iter().map(|n| indent(n) + n.label.chars().count()).max().unwrap_or(0);
        let reasons: Vec<&String> = shown.iter().filter_map(|n| n.missing.as_ref()).collect();
        let same = all_missing && reasons.windows(2).all(|w| w[0] == w[1]);
        if let (true, false, Some(reason)) = (same, self.style.verbose, reasons.first()) {
            return self.unmeasured(&shown, nodes.len(), reason);
        }
        for node in &shown {
            self.node(node, indent(node), label, same)?;
        }
        if let (true, Some(reason)) = (same, reasons.first()) {
            writeln!(self.out, "{reason}")?;
        }
        self.missing_errors(&shown)?;
        let hidden = nodes.len() - shown.len();
        if hidden > 0 {
            let text = format!("{hidden} nodes below unflagged ones are left out: -v");
            let text = self.paint("2", &text);
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    /// A tree without any value: its uppermost nodes, and once why.
    fn unmeasured(&mut self, shown: &[&NodeRow], all: usize, reason: &str) -> std::fmt::Result {
        let names: Vec<&str> = shown.iter().map(|n| n.label.as_str()).collect();
        let hidden = match all - shown.len() {
            0 => String::new(),
            n => format!(", nor are {n} deeper nodes (--verbose lists them)"),
        };
        self.paragraph("", &format!("{}: {reason}{hidden}", names.join(", ")))
    }

    /// Why values stand without a ±: each reason once.
    fn missing_errors(&mut self, shown: &[&NodeRow]) -> std::fmt::Result {
        let mut reasons: Vec<&str> = shown.iter().filter_map(|n| n.no_error.as_deref()).collect();
        reasons.sort();
        reasons.dedup();
        for why in reasons {
            let text = self.paint("2", &format!("no ±: {why}"));
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    fn node(
        &mut self,
        node: &NodeRow,
        indent: usize,
        label: usize,
        quiet: bool,
    ) -> std::fmt::Result {
        let marks = self.style.marks();
        let name = format!("{:indent$}{:<width$}", "", node.label, width = label - indent);
        let tail = match (&node.value, &node.missing) {
            (Some(value), _) => {
                let mut text = format!(
                    "{}  {}",
                    self.style.bar(*value, self.bar_width(label)),
                    value_text(node)
                );
                for remark in self.remarks(node) {
                    let _ = write!(text, "  {remark}");
                }
                text
            }
            (None, Some(_)) if quiet => "-".to_owned(),
            (None, Some(why)) => why.clone(),
            (None, None) => "not measured".to_owned(),
        };
        let flag = if node.flagged { marks.flagged } else { " " };
        let line = format!("{flag} {name}  {tail}");
        let line = match (node.bottleneck, node.flagged) {
            (true, _) => self.paint("1;31", line.trim_end()),
            (_, true) => self.paint("1", line.trim_end()),
            _ => self.paint("2", line.trim_end()),
        };
        writeln!(self.out, "{line}")?;
        if self.style.verbose {
            for count in &node.counts {
                self.count(count, indent + 4)?;
            }
        }
        Ok(())
    }

    fn remarks(&self, node: &NodeRow) -> Vec<String> {
        let marks = self.style.marks();
        let mut remarks = Vec::new();
        if node.bottleneck {
            remarks.push(marks.bottleneck.to_owned());
        }
        if node.mismeasured {
            remarks.push(marks.wrong.to_owned());
        }
        if let Some(share) = node.running.filter(|s| *s < 0.995) {
            remarks.push(format!("running {:.0} %", 100.0 * share));
        }
        if node.split {
            remarks.push("split over groups".to_owned());
        }
        if let Some(estimate) = &node.estimate {
            let text = if self.style.verbose {
                format!("estimate: {estimate}")
            } else {
                "estimate".into()
            };
            remarks.push(text);
        }
        if !node.related.is_empty() {
            remarks.push(format!("{} {}", marks.arrow, node.related.join(", ")));
        }
        remarks
    }

    fn count(&mut self, count: &CountRow, indent: usize) -> std::fmt::Result {
        let value = match (count.value, &count.missing) {
            (Some(v), _) => format!("{:>20}", format::count(v)),
            (None, Some(why)) => format!("{why:>20}"),
            (None, None) => format!("{:>20}", "missing"),
        };
        let share = count.running.filter(|s| *s < 0.995);
        let share = share.map(|s| format!("  running {:.0} %", 100.0 * s)).unwrap_or_default();
        let line = format!("{:indent$}{value}  {}{share}", "", count.event);
        let line = self.paint("2", &line);
        writeln!(self.out, "{line}")
    }

    /// Narrow terminals get a shorter bar, or none: label, value and ± come first.
    fn bar_width(&self, label: usize) -> usize {
        const FLAG_VALUE_AND_MARK: usize = 38;
        BAR.min(self.style.width.saturating_sub(label + FLAG_VALUE_AND_MARK))
    }
}

fn value_text(node: &NodeRow) -> String {
    let value = node.value.unwrap_or(f64::NAN) * 100.0;
    match node.error {
        Some(error) => format!("{value:>5.1} % ±{:<4.1}", 100.0 * error),
        None => format!("{value:>5.1} %      "),
    }
}
