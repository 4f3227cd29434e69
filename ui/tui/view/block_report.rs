//! The block profiler's report as lines of any width.

use super::ink::{Tone, fit, wrap};
use crate::tui::state::{BlockScreen, Job};
use bench::{FormResult, Holds, Node, Report, Status, Throughput};

/// A line of text, all of one tone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub tone: Tone,
}

/// Everything there is to say about the block.
pub fn document(screen: &BlockScreen, columns: usize) -> Vec<Line> {
    let mut out = Document { columns: columns.max(1), lines: Vec::new() };
    match &screen.job {
        Job::Done(report) => out.report(report),
        other => {
            let (text, tone) = match other {
                Job::Idle => ("nothing is measured".to_owned(), Tone::Plain),
                Job::Running(seconds, passes) => {
                    let dots = ".".repeat((seconds * 2.0) as usize % 4);
                    let passes = match passes {
                        1 => "1 timed pass".to_owned(),
                        n => format!("{n} timed passes"),
                    };
                    let text = format!("measuring {seconds:.1} s, {passes} {dots}");
                    (text, Tone::Warm)
                }
                Job::Cancelled => ("cancelled; r measures again".to_owned(), Tone::Bold),
                Job::Failed(why) => (format!("failed: {why}"), Tone::Hot),
                Job::Done(_) => (String::new(), Tone::Plain),
            };
            out.paragraph("", &text, tone);
            out.blank();
            for line in &screen.code {
                out.paragraph("  ", line, Tone::Plain);
            }
        }
    }
    out.lines
}

struct Document {
    columns: usize,
    lines: Vec<Line>,
}

impl Document {
    fn push(&mut self, text: String, tone: Tone) {
        self.lines.push(Line { text, tone });
    }

    fn blank(&mut self) {
        self.push(String::new(), Tone::Plain);
    }

    fn heading(&mut self, text: &str) {
        self.blank();
        self.push(text.to_owned(), Tone::Bold);
    }

    /// Text behind a label; further lines are indented to where it began. On a narrow screen the
    /// label stands above.
    fn paragraph(&mut self, label: &str, text: &str, tone: Tone) {
        let mut indent = super::ink::width(label);
        let mut head = label.to_owned();
        if 2 * indent > self.columns && !label.trim().is_empty() {
            self.push(label.trim_end().to_owned(), tone);
            indent = 2.min(self.columns / 4);
            head = " ".repeat(indent);
        }
        for line in wrap(text, self.columns.saturating_sub(indent)) {
            self.push(format!("{head}{line}").trim_end().to_owned(), tone);
            head = " ".repeat(indent);
        }
    }

    fn report(&mut self, report: &Report) {
        self.headline(report);
        self.code(report);
        self.forms(report);
        self.assumptions(report);
        self.bounds(report);
        self.hierarchy(report);
        self.samples(report);
        for layer in &report.sandbox {
            self.paragraph("sandbox  ", layer, Tone::Dim);
        }
    }

    fn headline(&mut self, report: &Report) {
        let tone = if report.status == Status::Ok { Tone::Bold } else { Tone::Hot };
        let word = report.status.word();
        match (&report.throughput, &report.reason) {
            (Some(t), None) => {
                let ipc = report.ipc.map(|ipc| format!(", IPC {ipc:.2}")).unwrap_or_default();
                let text = format!("{word}: {}{ipc}, clock {}", cycles(t), t.clock);
                self.paragraph("", &text, tone);
            }
            (throughput, reason) => {
                let reason = reason.as_deref().unwrap_or("no reason");
                self.paragraph("", &format!("{word}: {reason}"), tone);
                if let Some(t) = throughput {
                    self.paragraph(
                        "  ",
                        &format!("between {:.3} and {:.3} cycles", t.low, t.high),
                        Tone::Plain,
                    );
                }
            }
        }
        for name in report.violated() {
            self.paragraph("", &format!("VIOLATED {name}"), Tone::Hot);
        }
        if let Some(place) = &report.place {
            let words = place.words();
            if !words.is_empty() {
                self.paragraph("  at ", &(words + ", counted from 0"), Tone::Plain);
            }
        }
    }

    fn code(&mut self, report: &Report) {
        if report.block.instructions.is_empty() {
            return;
        }
        self.heading("instructions");
        let at = report.place.as_ref().and_then(|p| p.instruction);
        let bytes = report.block.instructions.iter().map(|i| i.bytes.len()).max().unwrap_or(0);
        for (i, line) in report.block.instructions.iter().enumerate() {
            let mark = if at == Some(i) { ">" } else { " " };
            // Bytes only where they leave room for the text.
            let label = match self.columns {
                70.. => format!(
                    "{mark}{i:>3} {:>6}  {}  ",
                    line.offset,
                    fit(&line.bytes, bytes.min(24))
                ),
                _ => format!("{mark}{i:>3} "),
            };
            let tone = if at == Some(i) { Tone::Hot } else { Tone::Plain };
            self.paragraph(&label, &line.text, tone);
        }
    }

    fn forms(&mut self, report: &Report) {
        let Some(forms) = &report.forms else { return };
        self.heading("forms, cycles per iteration");
        for (name, form) in [("unrolled", &forms.unrolled), ("loop", &forms.looped)] {
            let text = form_text(form);
            self.paragraph(&format!("  {name:<9}"), &text, Tone::Plain);
        }
        if let Some(t) = report.throughput.as_ref().filter(|t| t.modes.len() > 1) {
            let mode = |m: &bench::Mode| format!("{:.3} ({:.0} %)", m.cycles, 100.0 * m.share);
            let modes: Vec<_> = t.modes.iter().map(mode).collect();
            self.paragraph("  modes    ", &modes.join(", "), Tone::Plain);
        }
    }

    fn assumptions(&mut self, report: &Report) {
        if report.invariants.is_empty() {
            return;
        }
        self.heading("assumptions, and how each is known");
        for i in &report.invariants {
            let (word, tone) = match i.verdict {
                Holds::Held => ("held", Tone::Plain),
                Holds::Violated => ("VIOLATED", Tone::Hot),
                Holds::Unchecked => ("not checkable here", Tone::Dim),
            };
            self.paragraph(&format!("  {:<17}", i.name), &format!("{word}: {}", i.how), tone);
        }
    }

    fn bounds(&mut self, report: &Report) {
        if report.bounds.is_empty() {
            return;
        }
        self.heading("bounds: the block cannot take less");
        for bound in &report.bounds {
            let of = report.throughput.as_ref().filter(|t| t.cycles > 0.0);
            let share =
                of.map(|t| format!(", {:.0} % of the throughput", 100.0 * bound.cycles / t.cycles));
            let share = share.unwrap_or_default();
            let text = format!("{:.3} cycles{share}; {}", bound.cycles, bound.how);
            self.paragraph(&format!("  {:<17}", bound.name), &text, Tone::Plain);
        }
    }

    fn hierarchy(&mut self, report: &Report) {
        if report.throughput.is_none() {
            return;
        }
        self.heading("top-down");
        self.paragraph("  ", &report.hierarchy.verdict, Tone::Plain);
        let nodes = &report.hierarchy.nodes;
        let measured = report.hierarchy.is_measured();
        // Where nothing was measured the verdict has said why.
        let says = |node: &&Node| measured || node.bound.is_some() || node.is_verdict;
        for node in nodes.iter().filter(says) {
            let indent = 2 + 2 * depth(nodes, node);
            let label =
                format!("{:indent$}{:<width$} ", "", node.label, width = 28 - indent.min(24));
            let (text, tone) = node_text(node);
            self.paragraph(&label, &text, tone);
        }
        for what in &report.what_if {
            let text = match what.cycles {
                Some(cycles) => format!("{cycles:.3} cycles"),
                None => {
                    format!("not measured: {}", what.reason.as_deref().unwrap_or("no reason"))
                }
            };
            self.paragraph("  ", &format!("{}: {text}", what.change), Tone::Plain);
        }
        for miss in &report.misses {
            let text = format!("{:.4} per iteration; {}", miss.per_iteration, miss.how);
            self.paragraph(&format!("  {:<28}", miss.name), &text, Tone::Plain);
        }
    }

    fn samples(&mut self, report: &Report) {
        let s = &report.samples;
        if s.kept + s.contended + s.clock_changed == 0 && s.void.is_empty() {
            return;
        }
        self.heading("samples");
        let mut text = format!("{} kept", s.kept);
        for (n, why) in
            [(s.contended, "something else used the core"), (s.clock_changed, "the clock changed")]
        {
            if n > 0 {
                text += &format!(", {n} dropped: {why}");
            }
        }
        self.paragraph("  ", &text, Tone::Plain);
        let mut void = s.void.clone();
        void.dedup();
        for why in &void {
            self.paragraph("  ", &format!("passes void: {why}"), Tone::Plain);
        }
        let pages = report.pages.len();
        self.paragraph("  ", &format!("{pages} pages mapped"), Tone::Plain);
    }
}

/// How many nodes are above it.
fn depth(nodes: &[Node], node: &Node) -> usize {
    let mut depth = 0;
    let mut parent = node.parent.as_deref();
    // No tree is deeper; a document that runs in circles ends.
    while let (Some(id), true) = (parent, depth < 8) {
        depth += 1;
        parent = nodes.iter().find(|n| n.id == id).and_then(|n| n.parent.as_deref());
    }
    depth
}

/// Its share of the slots where that was counted, its bound where one was found, and a mark where it
/// explains the block's time.
fn node_text(node: &Node) -> (String, Tone) {
    let (share, tone) = match (node.share.or(node.low), node.bound) {
        (None, Some(_)) => (None, Tone::Plain),
        _ => {
            let (text, tone) = share_text(node);
            (Some(text), tone)
        }
    };
    let bound = node.bound.map(|b| format!("{b:.2} cycles"));
    let mark = node.is_verdict.then(|| "<- explains the time".to_owned());
    let tone = if node.is_verdict { Tone::Bold } else { tone };
    let parts: Vec<String> = [share, bound, mark].into_iter().flatten().collect();
    (parts.join(", ").replace(", <-", " <-"), tone)
}

fn share_text(node: &Node) -> (String, Tone) {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    match (node.share, node.low, node.high) {
        (Some(share), Some(low), Some(high)) if low < high => {
            let range = format!("{} ({} to {})", percent(share), percent(low), percent(high));
            (range + " of slots", Tone::Plain)
        }
        (Some(share), ..) => (percent(share) + " of slots", Tone::Plain),
        (None, Some(low), Some(high)) => {
            (format!("between {} and {} of slots", percent(low), percent(high)), Tone::Plain)
        }
        _ => {
            let why = node.reason.as_deref().unwrap_or("no reason");
            let text = if why.starts_with("not measured") {
                why.to_owned()
            } else {
                format!("not measured: {why}")
            };
            (text, Tone::Dim)
        }
    }
}

fn cycles(t: &Throughput) -> String {
    format!("{:.3} cycles per iteration ({:.3} to {:.3})", t.cycles, t.low, t.high)
}

fn form_text(form: &FormResult) -> String {
    match (form.cycles, form.low, form.high) {
        (Some(cycles), Some(low), Some(high)) => {
            let reason = form.reason.as_ref().map(|r| format!("; {r}")).unwrap_or_default();
            format!("{cycles:.3} ({low:.3} to {high:.3}), {} copies{reason}", form.copies)
        }
        _ => form.reason.clone().unwrap_or_else(|| "not measured".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_stands_beside_the_share_and_the_verdict_is_marked() {
        let bound = Node { bound: Some(3.0), is_verdict: true, ..Node::default() };
        assert_eq!(node_text(&bound).0, "3.00 cycles <- explains the time");
        let both = Node { share: Some(0.25), is_verdict: false, ..bound };
        assert_eq!(node_text(&both).0, "25.0 % of slots, 3.00 cycles");
        let none = Node { reason: Some("no PMU".to_owned()), ..Node::default() };
        assert_eq!(node_text(&none).0, "not measured: no PMU");
    }
}
