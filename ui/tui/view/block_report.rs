//! The report of a measured block as lines of any width.

use super::block_tree::{depth, node_text};
use super::paragraphs::Paragraphs;
use crate::keymap::Command;
use crate::tui::state::{Job, Line, State};
use crate::tui::tone::Tone;
use crate::tui::width::fit;
use bench::{FormResult, Holds, Node, Report, Status, Throughput};

/// The report; until there is one, the state of the measurement and the code.
pub fn lines(state: &State, columns: usize) -> Vec<Line> {
    let mut out = Paragraphs::new(columns);
    match &state.block.job {
        Job::Done(report) => out.report(report),
        other => {
            let (text, tone) = state_text(other, &state.keys.key(Command::Again));
            out.paragraph("", &text, tone);
            out.blank();
            for line in &state.block.code {
                out.paragraph("  ", line, Tone::Plain);
            }
        }
    }
    out.lines
}

/// The state of the measurement; `again` is the key that repeats it.
fn state_text(job: &Job, again: &str) -> (String, Tone) {
    match job {
        Job::Running(seconds, passes) => {
            let dots = ".".repeat((seconds * 2.0) as usize % 4);
            let passes = match passes {
                1 => "1 timed pass".to_owned(),
                n => format!("{n} timed passes"),
            };
            (format!("measuring {seconds:.1} s, {passes} {dots}"), Tone::Warm)
        }
        Job::Cancelled => (format!("cancelled; {again} measures again"), Tone::Bold),
        Job::Failed(why) => (format!("failed: {why}"), Tone::Hot),
        Job::Idle | Job::Done(_) => ("nothing is measured".to_owned(), Tone::Plain),
    }
}

impl Paragraphs {
    fn report(&mut self, report: &Report) {
        self.headline(report);
        self.code(report);
        self.forms(report);
        self.assumptions(report);
        self.bounds(report);
        self.top_down(report);
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
                    let text = format!("between {:.3} and {:.3} cycles", t.low, t.high);
                    self.paragraph("  ", &text, Tone::Plain);
                }
            }
        }
        for name in report.violated() {
            self.paragraph("", &format!("VIOLATED {name}"), Tone::Hot);
        }
        let words = report.place.as_ref().map(|p| p.words()).filter(|w| !w.is_empty());
        if let Some(words) = words {
            self.paragraph("  at ", &(words + ", counted from 0"), Tone::Plain);
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
            // On a narrow screen without the bytes.
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
        self.heading("cycles per iteration");
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
        self.heading("assumptions");
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
        self.heading("lower bounds");
        for bound in &report.bounds {
            let of = report.throughput.as_ref().filter(|t| t.cycles > 0.0);
            let share =
                of.map(|t| format!(", {:.0} % of the throughput", 100.0 * bound.cycles / t.cycles));
            let share = share.unwrap_or_default();
            let text = format!("{:.3} cycles{share}; {}", bound.cycles, bound.how);
            self.paragraph(&format!("  {:<17}", bound.name), &text, Tone::Plain);
        }
    }

    fn top_down(&mut self, report: &Report) {
        if report.throughput.is_none() {
            return;
        }
        self.heading("top-down");
        self.paragraph("  ", &report.hierarchy.verdict, Tone::Plain);
        let nodes = &report.hierarchy.nodes;
        let measured = report.hierarchy.is_measured();
        // If nothing was measured, the verdict has the reason.
        let shown = |node: &&Node| measured || node.bound.is_some() || node.is_verdict;
        for node in nodes.iter().filter(shown) {
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
        let mut text = format!("{} used", s.kept);
        for (n, why) in
            [(s.contended, "the core was shared"), (s.clock_changed, "the clock changed")]
        {
            if n > 0 {
                text += &format!(", {n} dropped because {why}");
            }
        }
        self.paragraph("  ", &text, Tone::Plain);
        let mut void = s.void.clone();
        void.dedup();
        for why in &void {
            self.paragraph("  ", &format!("discarded passes: {why}"), Tone::Plain);
        }
        let pages = report.pages.len();
        self.paragraph("  ", &format!("{pages} pages mapped"), Tone::Plain);
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
