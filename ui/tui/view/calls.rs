//! Callers and callees of a function.

use super::calls_answer::answer;
use super::layout::Layout;
use super::names;
use super::put::{heat, put_prose, put_row, put_wrapped};
use crate::tui::look::{Look, Tone, fit, fit_middle, fit_right, width};
use crate::tui::state::{CallRow, Load, State};
use profile::hot::SELF;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Columns of `called by`.
const KIND: usize = 10;
/// The widest bar.
const BAR: usize = 16;

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    match &state.calls.data {
        Load::Ready(_) => {}
        Load::Loading => return put_prose(buffer, area, state.look, "reading call chains …"),
        Load::Missing(why) => return put_prose(buffer, area, state.look, why),
    }
    head(state, buffer, layout.head);
    let list = state.list();
    for (y, row) in list.shown(usize::from(area.height)).enumerate() {
        if let Some(of) = state.calls.row(row) {
            let line = line(state.look, of, usize::from(area.width));
            put_row(buffer, area, y, &line, row == list.at);
        }
    }
}

fn head(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let look = state.look;
    let above = Rect { height: area.height - 1, ..area };
    put_wrapped(buffer, above, &look.prose(&answer(state)), look.style(Tone::Bold));
    let title = format!("{}{} ", fit("", KIND), fit_right("share", 8));
    let bar = bar(usize::from(area.width));
    let gap = if bar > 0 { bar + 1 } else { 0 };
    let line = Line::from(look.span(format!("{title}{}function", " ".repeat(gap)), Tone::Dim));
    buffer.set_line(area.x, area.bottom() - 1, &line, area.width);
}

fn bar(columns: usize) -> usize {
    columns.saturating_sub(KIND + 50).min(BAR)
}

fn line(look: Look, row: CallRow<'_>, columns: usize) -> Line<'static> {
    let of = row.function();
    let tone = heat(of.share);
    let kind = match row {
        CallRow::Caller(_) => "called by",
        CallRow::Callee(_) => "  calls",
    };
    let kind = fit(kind, KIND.min(columns.saturating_sub(12)));
    let mut spans = vec![
        look.span(kind, Tone::Dim),
        look.span(fit_right(&format!("{:.1} %", 100.0 * of.share), 8) + " ", tone),
    ];
    let bar = bar(columns);
    if bar > 0 {
        spans.push(look.span(look.bar(of.share, bar) + " ", tone));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let (name, module) = match of.name.as_str() {
        "[top]" => ("(nobody, or the call chain ends here)", ""),
        SELF => ("(its own code)", ""),
        name => (names::short(name), of.module.as_str()),
    };
    let room = columns.saturating_sub(used);
    let name = look.prose(name);
    spans.push(Span::raw(match width(&name) + 2 < room {
        true => fit(&format!("{name}  {module}"), room),
        false => fit_middle(&name, room),
    }));
    Line::from(spans)
}
