//! Everything about the selected node: what it means, why it is flagged or not, its formula, the
//! counts behind it, and how it went in the last intervals.

use super::ink::{Tone, fit, put, width, wrap};
use crate::tui::state::{Explanation, State};
use engine::documents::{NodeRow, Report};
use engine::render::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Columns of the labels.
const LABEL: usize = 9;

/// Draws the pane, with a line between it and the tree.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let lines = lines(state, usize::from(area.width));
    if area.x > 0 {
        for y in area.top()..area.bottom() {
            let bar = Line::from(state.look.span("│", Tone::Dim));
            buffer.set_line(area.x - 1, y, &bar, 1);
        }
    }
    put(buffer, area, &lines, state.tree.details_top);
}

/// All lines of it.
pub fn lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let mut text = Text { state, columns, lines: Vec::new() };
    let node = state.tree.node(state.tree.list.at);
    let bare = node.is_some_and(|n| n.value.is_none());
    // What there is comes before what could be said of what there is not.
    let report = state.tree.report.as_ref();
    report.filter(|_| bare).into_iter().for_each(|r| text.software(r));
    node.into_iter().for_each(|n| text.node(n));
    if let Some(report) = report {
        if !bare {
            text.software(report);
        }
        for note in &report.notes {
            text.labelled("note", note, Tone::Dim);
        }
    }
    text.lines
}

struct Text<'a> {
    state: &'a State,
    columns: usize,
    lines: Vec<Line<'static>>,
}

impl Text<'_> {
    fn line(&mut self, text: &str, tone: Tone) {
        let look = self.state.look;
        let text = fit(&look.prose(text), self.columns);
        self.lines.push(Line::from(look.span(text.trim_end(), tone)));
    }

    fn heading(&mut self, text: &str) {
        let rule = if self.state.look.ascii { "--" } else { "──" };
        let text = fit(&format!("{rule} {}", self.state.look.prose(text)), self.columns);
        self.lines.push(Line::from(self.state.look.span(text.trim_end(), Tone::Bold)));
    }

    /// Text behind its label; below it where there is little room.
    fn labelled(&mut self, label: &str, text: &str, tone: Tone) {
        let look = self.state.look;
        let narrow = self.columns < 3 * LABEL;
        let indent = if narrow { 0 } else { LABEL };
        if narrow {
            self.line(label, Tone::Bold);
        }
        let prose = look.prose(text);
        for (i, part) in wrap(&prose, self.columns.saturating_sub(indent)).into_iter().enumerate() {
            let label = if i == 0 && !narrow { label } else { "" };
            let head = look.span(fit(label, indent), Tone::Bold);
            self.lines.push(Line::from(vec![head, look.span(part, tone)]));
        }
    }

    fn node(&mut self, node: &NodeRow) {
        self.heading(&format!("{} ({}), level {}", node.label, node.id, node.level));
        let look = self.state.look;
        match (node.value, &node.missing) {
            (Some(value), _) => {
                let error = node.error.map(|e| format!(" {}{:.1}", look.plus_minus(), 100.0 * e));
                let of = node.domain.as_ref().map(|d| format!(" of {d}")).unwrap_or_default();
                let error = error.unwrap_or_default();
                self.labelled("value", &format!("{:.1} %{error}{of}", 100.0 * value), Tone::Plain);
            }
            (None, why) => {
                let why = why.as_deref().unwrap_or("not measured");
                self.labelled("value", why, Tone::Plain);
            }
        }
        if let Some(why) = &node.no_error {
            self.labelled("", &format!("no error: {why}"), Tone::Dim);
        }
        let explanation = self.state.tree.explanation(node).cloned().unwrap_or_default();
        let flag = why_flagged(self.state, node, &explanation);
        self.labelled("flag", &flag, if node.flagged { Tone::Warm } else { Tone::Plain });
        self.history(node);
        let parts = [
            ("means", &explanation.meaning),
            ("causes", &explanation.causes),
            ("next", &explanation.next),
            ("estimate", &node.estimate),
        ];
        for (label, text) in parts {
            if let Some(text) = text {
                self.labelled(label, text, Tone::Plain);
            }
        }
        if !node.locate.is_empty() {
            self.labelled("sample", &node.locate.join(", "), Tone::Plain);
        }
        if !node.related.is_empty() {
            self.labelled("see also", &node.related.join(", "), Tone::Plain);
        }
        if !explanation.formula.is_empty() {
            self.labelled("formula", &explanation.formula, Tone::Dim);
        }
        self.counts(node);
    }

    fn history(&mut self, node: &NodeRow) {
        let Some(values) = self.state.tree.node_history(node) else { return };
        if values.iter().flatten().count() < 2 {
            return;
        }
        let room = self.columns.saturating_sub(LABEL + 14).min(60);
        let (line, most) = self.state.look.sparkline(values.iter().copied(), room);
        self.labelled_raw("history", &format!("{line} up to {:.0} %", 100.0 * most));
    }

    /// As [`Text::labelled`], one line, blanks kept.
    fn labelled_raw(&mut self, label: &str, text: &str) {
        let look = self.state.look;
        let text = fit(text, self.columns.saturating_sub(LABEL));
        let head = look.span(fit(label, LABEL), Tone::Bold);
        self.lines.push(Line::from(vec![head, Span::raw(text.trim_end().to_owned())]));
    }

    fn counts(&mut self, node: &NodeRow) {
        for (i, count) in node.counts.iter().enumerate() {
            let value = match (count.value, &count.missing) {
                (Some(v), _) => format::count(v),
                (None, why) => why.clone().unwrap_or_else(|| "missing".into()),
            };
            let ran = count.running.filter(|s| *s < 0.995);
            let ran = ran.map(|s| format!("  ran {:.0} %", 100.0 * s)).unwrap_or_default();
            let label = if i == 0 { "counts" } else { "" };
            self.labelled_raw(label, &format!("{value:>18}  {}{ran}", count.event));
        }
    }

    fn software(&mut self, report: &Report) {
        if report.software.is_empty() {
            return;
        }
        self.heading("software counts");
        let shown = |name: &str| name.trim_end_matches("_ms").replace('_', " ");
        let label = report.software.keys().map(|k| width(&shown(k))).max().unwrap_or(0);
        for (name, value) in &report.software {
            let text = match value {
                Some(v) if name.ends_with("_ms") => format::seconds(v / 1e3),
                Some(v) if v.fract() == 0.0 => format::count(*v),
                Some(v) => format::number(*v),
                None => {
                    let why = report.software_missing.get(name);
                    why.cloned().unwrap_or_else(|| "not measured".into())
                }
            };
            let look = self.state.look;
            let history = self.state.tree.software_history(name).filter(|v| v.len() > 1);
            let room = self.columns.saturating_sub(label + 18);
            let line = history.map(|v| look.sparkline(v.iter().copied(), room.min(40)).0);
            let text = if value.is_some() { format!("{text:>14}") } else { text };
            let text =
                format!("{}  {text}  {}", fit(&shown(name), label), line.unwrap_or_default());
            let text = fit(text.trim_end(), self.columns);
            self.lines.push(Line::from(look.span(look.prose(&text).into_owned(), Tone::Plain)));
        }
    }
}

/// Why a node is flagged, or is not.
fn why_flagged(state: &State, node: &NodeRow, explanation: &Explanation) -> String {
    let over = explanation.over.as_ref().map(|o| format!(" ({o})")).unwrap_or_default();
    if node.value.is_none() {
        return format!("cannot be told: it has no value{over}");
    }
    match (node.flagged, node.over) {
        (true, _) if node.bottleneck => {
            format!("the bottleneck: over its threshold{over}, and no flagged node lies below it")
        }
        (true, _) if node.parent.is_some() => {
            format!("over its threshold{over}, as are all nodes above it")
        }
        (true, _) => format!("over its threshold{over}"),
        (false, Some(false)) => format!("no: not over its threshold{over}"),
        (false, None) => "no: the vendor gives no threshold".into(),
        (false, Some(true)) if node.mismeasured => {
            "no: the value cannot be right, so nothing is concluded from it".into()
        }
        (false, Some(true)) => match unflagged_above(state, node) {
            Some(above) => format!("no: over its threshold{over}, but {above} above it is not"),
            None => format!("no: over its threshold{over}, but not by more than its error"),
        },
    }
}

/// The nearest node above that is not flagged.
fn unflagged_above(state: &State, node: &NodeRow) -> Option<String> {
    let mut now = node;
    for _ in 0..32 {
        now = state.tree.by_id(now.parent.as_deref()?)?;
        if !now.flagged {
            return Some(now.label.clone());
        }
    }
    None
}
