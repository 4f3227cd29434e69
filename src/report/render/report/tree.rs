//! Renders the tree of one part of a report, indented, with bars, flags and remarks; software counts; the verdict
//! above a report; next steps and notes below it.

use super::Renderer;
use super::style::Style;
use crate::documents::report::{CountRow, NodeRow};
use crate::documents::series;
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
                    format::share_cell(*value, node.error)
                );
                for remark in remarks(node, self.style) {
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
            // The node's reason is that of its only missing count.
            let missing = node.counts.iter().filter(|count| count.value.is_none()).count();
            let is_said = missing == 1 && node.missing.is_some();
            for count in &node.counts {
                self.count(count, indent + 4, is_said)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, count: &CountRow, indent: usize, is_said: bool) -> std::fmt::Result {
        let value = match (count.value, &count.missing) {
            (Some(v), _) => format!("{:>20}", format::count(v)),
            (None, _) if is_said => format!("{:>20}", "-"),
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

/// Remarks that a reader of a node's value needs.
pub(in crate::render) fn remarks(node: &NodeRow, style: &Style) -> Vec<String> {
    let marks = style.marks();
    let mut remarks = Vec::new();
    remarks.extend(node.bottleneck.then(|| marks.bottleneck.to_owned()));
    remarks.extend(node.mismeasured.then(|| marks.wrong.to_owned()));
    let running = node.running.filter(|share| *share < 0.995);
    remarks.extend(running.map(|share| format!("running {:.0} %", 100.0 * share)));
    remarks.extend(node.split.then(|| "split over groups".to_owned()));
    remarks.extend(node.estimate.as_ref().map(|why| match style.verbose {
        true => format!("estimate: {why}"),
        false => "estimate".to_owned(),
    }));
    if !node.related.is_empty() {
        remarks.push(format!("{} {}", marks.arrow, node.related.join(", ")));
    }
    remarks
}

/// Below so many processors in use a program waited, or did not get them.
const IDLE: f64 = 0.8;
/// Context switches a second from which they are worth a word: each takes some microseconds.
const SWITCHES: f64 = 1000.0;

impl Renderer<'_> {
    pub(super) fn software(&mut self) -> std::fmt::Result {
        let report = self.report;
        let is_all = report.sampled.is_none()
            && report.estimate.is_none()
            && report.nodes.iter().all(|n| n.value.is_none());
        match is_all || report.repeats > 1 || self.style.verbose {
            _ if report.software.is_empty() => Ok(()),
            true => self.software_table(),
            false => self.notable(),
        }
    }

    /// Notable counts on one line.
    fn notable(&mut self) -> std::fmt::Result {
        let value = |name: &str| self.report.software.get(name).copied().flatten();
        let seconds = value("wall_ms").filter(|ms| *ms > 0.0).map(|ms| ms / 1e3);
        let used = value("cpus_used").filter(|used| *used < IDLE && !self.shows_wall_time());
        let used = used.map(|used| {
            format!(
                "{used:.2} CPUs busy on average; the rest of the time it slept, or waited for a CPU"
            )
        });
        let rate = value("context_switches").zip(seconds).map(|(number, seconds)| number / seconds);
        let switches = rate
            .filter(|rate| *rate >= SWITCHES)
            .map(|rate| format!("{} context switches a second", format::number(rate)));
        // The verdict has the faults of a program that is in the kernel.
        let is_kernel = self.report.sampled.as_ref().and_then(|of| of.kernel) >= Some(0.5);
        let faults = self.report.many_faults().filter(|_| !is_kernel);
        let faults = faults
            .map(|rate| format!("{} page faults a second of processor time", format::number(rate)));
        let found: Vec<String> = [used, switches, faults].into_iter().flatten().collect();
        if found.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.paragraph("", &found.join("; "))
    }

    fn software_table(&mut self) -> std::fmt::Result {
        let report = self.report;
        let over = if report.repeats > 1 { ", mean of the runs" } else { "" };
        writeln!(self.out, "\nSoftware counts{over}")?;
        let label =
            report.software.keys().map(|k| series::software_label(k).len()).max().unwrap_or(0);
        for (name, value) in &report.software {
            let is_time = series::is_software_time(name);
            let text = match value {
                // No digits that its error makes meaningless.
                Some(v) if report.software_error.get(name).is_some_and(|e| *e >= 1.0) => {
                    format!("{v:>14.0}")
                }
                Some(v) if is_time => format!("{v:>14.2}"),
                Some(v) if v.fract() == 0.0 => format!("{:>14}", format::count(*v)),
                Some(v) => format!("{v:>14.3}"),
                None => {
                    let why = report.software_missing.get(name);
                    why.cloned().unwrap_or_else(|| "not measured".into())
                }
            };
            let unit = if value.is_some() && is_time { " ms" } else { "" };
            let error = report.software_error.get(name);
            let error = error.map(|e| format!(" ±{}", format::number(*e))).unwrap_or_default();
            writeln!(self.out, "  {:<label$}  {text}{unit}{error}", series::software_label(name))?;
        }
        Ok(())
    }
}

impl Renderer<'_> {
    /// The verdict, if there is one, and what else used the machine meanwhile.
    pub(super) fn verdict(&mut self) -> std::fmt::Result {
        let found = self.report.conclusion.as_ref().filter(|found| !found.verdict.is_empty());
        if let Some(found) = found {
            writeln!(self.out)?;
            let text = self.paint("1", &found.verdict);
            self.paragraph("", &text)?;
        }
        match self.report.estimate.as_ref().and_then(|of| of.disturbed.as_ref()) {
            Some(note) if !self.style.quiet => self.paragraph("note: ", note),
            _ => Ok(()),
        }
    }

    /// Commands that show more, each on a line of its own and whole, so that it can be copied.
    pub(super) fn next(&mut self) -> std::fmt::Result {
        let steps = self.report.conclusion.as_ref().map_or(&[][..], |found| &found.next);
        if steps.is_empty() || self.style.quiet {
            return Ok(());
        }
        writeln!(self.out)?;
        for (number, step) in steps.iter().enumerate() {
            let head = if number == 0 { "next: " } else { "      " };
            self.paragraph(head, &format!("{}:", step.why))?;
            writeln!(self.out, "        {}", step.command)?;
        }
        Ok(())
    }

    /// Notes: of samples where they are shown, and of the whole.
    pub(super) fn notes(&mut self) -> std::fmt::Result {
        let report = self.report;
        if self.style.quiet {
            return Ok(());
        }
        if let Some(estimate) = &report.estimate {
            let assumed = if self.style.verbose { &estimate.assumed[..] } else { &[] };
            // Beneath the verdict.
            let is_shown = |note: &&String| estimate.disturbed.as_ref() == Some(*note);
            for note in estimate.notes.iter().filter(|note| !is_shown(note)).chain(assumed) {
                self.paragraph("note: ", note)?;
            }
        }
        if let Some(sampled) = &report.sampled {
            if self.style.verbose && sampled.samples > 0 {
                self.paragraph("note: ", &sampled.skid)?;
            }
            for note in &sampled.notes {
                self.paragraph("note: ", note)?;
            }
        }
        for note in &report.notes {
            self.paragraph("note: ", note)?;
        }
        Ok(())
    }
}
