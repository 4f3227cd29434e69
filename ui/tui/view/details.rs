//! Everything about the selected node: its value and history, its meaning, why it is flagged or not, its formula and raw
//! counts; then the software counts and notes of the report.

use super::put::put;
use crate::tui::look::{Tone, fit, width, wrap};
use crate::tui::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use report::documents::{NodeRow, Report, series};
use report::format;

/// Columns of the labels.
const LABEL: usize = 9;

/// Draws the details, with a line between them and the tree.
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

/// All lines of the details.
pub fn lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let mut text = Text { state, columns, lines: Vec::new() };
    let node = state.tree.selected();
    let report = state.tree.report.as_ref();
    // If the node has no value, the software counts are more useful and come first.
    let software_first = node.is_some_and(|n| n.value.is_none());
    report.filter(|_| software_first).into_iter().for_each(|r| text.software(r));
    node.into_iter().for_each(|n| text.node(n));
    report.filter(|_| !software_first).into_iter().for_each(|r| text.software(r));
    for note in report.iter().flat_map(|r| &r.notes) {
        text.labelled("note", note, Tone::Dim);
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

    /// Text after its label; on a narrow screen below it.
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

    /// A labelled text on one line, with its blanks.
    fn labelled_raw(&mut self, label: &str, text: &str) {
        let look = self.state.look;
        let text = fit(text, self.columns.saturating_sub(LABEL));
        let head = look.span(fit(label, LABEL), Tone::Bold);
        self.lines.push(Line::from(vec![head, Span::raw(text.trim_end().to_owned())]));
    }

    fn node(&mut self, node: &NodeRow) {
        self.heading(&format!("{} ({}), level {}", node.label, node.id, node.level));
        self.value(node);
        let explanation = self.state.tree.explanation(node).cloned().unwrap_or_default();
        let flag = why_flagged(self.state, node, explanation.over.as_deref());
        self.labelled("flag", &flag, if node.flagged { Tone::Warm } else { Tone::Plain });
        self.history(node);
        let texts = [
            ("meaning", explanation.meaning.as_deref()),
            ("causes", explanation.causes.as_deref()),
            ("next", explanation.next.as_deref()),
            ("estimate", node.estimate.as_deref()),
        ];
        for (label, text) in texts {
            text.iter().for_each(|text| self.labelled(label, text, Tone::Plain));
        }
        for (label, list) in
            [("sample", node.locate.join(", ")), ("see also", node.related.join(", "))]
        {
            if !list.is_empty() {
                self.labelled(label, &list, Tone::Plain);
            }
        }
        if !explanation.formula.is_empty() {
            self.labelled("formula", &explanation.formula, Tone::Dim);
        }
        self.counts(node);
    }

    fn value(&mut self, node: &NodeRow) {
        let text = match node.value {
            Some(value) => {
                let mark = self.state.look.plus_minus();
                let error = node.error.map(|e| format!(" {mark}{:.1}", 100.0 * e));
                let of = node.domain.as_ref().map(|d| format!(" of {d}")).unwrap_or_default();
                format!("{:.1} %{}{of}", 100.0 * value, error.unwrap_or_default())
            }
            None => node.missing.clone().unwrap_or_else(|| "not measured".into()),
        };
        self.labelled("value", &text, Tone::Plain);
        if let Some(why) = &node.no_error {
            self.labelled("", &format!("no error: {why}"), Tone::Dim);
        }
    }

    fn history(&mut self, node: &NodeRow) {
        let Some(values) = self.state.tree.history.of_node(node) else { return };
        if values.iter().flatten().count() < 2 {
            return;
        }
        let room = self.columns.saturating_sub(LABEL + 14).min(60);
        let (line, most) = self.state.look.sparkline(values.iter().copied(), room);
        self.labelled_raw("history", &format!("{line} up to {:.0} %", 100.0 * most));
    }

    fn counts(&mut self, node: &NodeRow) {
        for (i, count) in node.counts.iter().enumerate() {
            let value = match (count.value, &count.missing) {
                (Some(v), _) => format::count(v),
                (None, why) => why.clone().unwrap_or_else(|| "missing".into()),
            };
            let enabled = count.running.filter(|s| *s < 0.995);
            let enabled = enabled.map(|s| format!("  running {:.0} % of the time", 100.0 * s));
            let label = if i == 0 { "counts" } else { "" };
            let enabled = enabled.unwrap_or_default();
            self.labelled_raw(label, &format!("{value:>18}  {}{enabled}", count.event));
        }
    }

    fn software(&mut self, report: &Report) {
        if report.software.is_empty() {
            return;
        }
        self.heading("software counts");
        let label =
            report.software.keys().map(|k| width(&series::software_label(k))).max().unwrap_or(0);
        for (name, value) in &report.software {
            let text = software_value(report, name, *value);
            let look = self.state.look;
            let history = self.state.tree.history.of_software(name).filter(|v| v.len() > 1);
            let room = self.columns.saturating_sub(label + 18);
            let line = history.map(|v| look.sparkline(v.iter().copied(), room.min(40)).0);
            let name = fit(&series::software_label(name), label);
            let text = format!("{name}  {text}  {}", line.unwrap_or_default());
            let text = fit(text.trim_end(), self.columns);
            self.lines.push(Line::from(look.span(look.prose(&text).into_owned(), Tone::Plain)));
        }
    }
}

/// A software count, right-aligned; or why it is missing.
fn software_value(report: &Report, name: &str, value: Option<f64>) -> String {
    let text = match value {
        Some(v) if series::is_software_time(name) => format::seconds(v / 1e3),
        Some(v) if v.fract() == 0.0 => format::count(v),
        Some(v) => format::number(v),
        None => {
            let why = report.software_missing.get(name);
            return why.cloned().unwrap_or_else(|| "not measured".into());
        }
    };
    format!("{text:>14}")
}

/// Deepest chain of parents that is followed; a document may have a cycle.
const DEEPEST: usize = 32;

/// The reason; `threshold` is the node's, if it has one.
pub fn why_flagged(state: &State, node: &NodeRow, threshold: Option<&str>) -> String {
    let over = threshold.map(|o| format!(" ({o})")).unwrap_or_default();
    if node.value.is_none() {
        return format!("unknown: the node has no value{over}");
    }
    match (node.flagged, node.over) {
        (true, _) if node.bottleneck => {
            format!("the bottleneck: over its threshold{over}, and no node below it is flagged")
        }
        (true, _) if node.parent.is_some() => {
            format!("over its threshold{over}, as are all nodes above it")
        }
        (true, _) => format!("over its threshold{over}"),
        (false, Some(false)) => format!("no: not over its threshold{over}"),
        (false, None) => "no: the vendor gives no threshold".into(),
        (false, Some(true)) if node.mismeasured => "no: the value is impossible".into(),
        (false, Some(true)) => match unflagged_above(state, node) {
            Some(above) => format!("no: over its threshold{over}, but {above} above it is not"),
            None => format!("no: over its threshold{over}, but by less than its error"),
        },
    }
}

/// The nearest node above that is not flagged.
fn unflagged_above(state: &State, node: &NodeRow) -> Option<String> {
    let mut now = node;
    for _ in 0..DEEPEST {
        now = state.tree.by_id(now.parent.as_deref()?)?;
        if !now.flagged {
            return Some(now.label.to_string());
        }
    }
    None
}
