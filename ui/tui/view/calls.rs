//! Callers and callees of a function, and what their shares are of.

use super::names;
use super::put::{Layout, heat, put_head, put_prose, put_rows};
use crate::keymap::Command;
use crate::tui::look::{Look, Tone, fit, fit_middle, fit_right, width};
use crate::tui::state::{CallRow, InPlace, State};
use profile::hot::SELF;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use report::format;

/// Columns of `called by`.
const KIND: usize = 10;
/// The widest bar.
const BAR: usize = 16;

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    if let Err(InPlace(why)) = state.calls.data.or_text("reading call chains …") {
        return put_prose(buffer, area, state.look, why);
    }
    head(state, buffer, layout.head);
    put_rows(buffer, area, state.list(), |row| {
        Some(line(state.look, state.calls.row(row)?, usize::from(area.width)))
    });
}

fn head(state: &State, buffer: &mut Buffer, area: Rect) {
    let title = format!("{}{} ", fit("", KIND), fit_right("share", 8));
    let bar = bar(usize::from(area.width));
    let gap = if bar > 0 { bar + 1 } else { 0 };
    let titles = format!("{title}{}function", " ".repeat(gap));
    let titles = Line::from(state.look.span(titles, Tone::Dim));
    put_head(state.look, buffer, area, &answer(state), &titles);
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

/// Note where most chains are cut.
const CUT: &str = " Most call chains end after one caller: the program keeps no frame pointers \
                   (-fno-omit-frame-pointer).";

/// Base of the shares.
pub fn answer(state: &State) -> String {
    let Some(found) = state.calls.data.ready() else { return String::new() };
    let own = found.callees.iter().find(|one| one.name == SELF).map_or(0.0, |one| one.share);
    let key = state.keys.key(Command::Drill);
    let cut = if found.is_cut { CUT } else { "" };
    format!(
        "{}: {:.1} % of all samples ({}) are in it and in what it calls, {:.1} % in its own code. Shares are of \
         them; {key} goes to a caller or callee.{cut}",
        names::in_sentence(names::short(state.calls.function())),
        100.0 * found.share,
        format::count(found.samples as f64),
        100.0 * own * found.share
    )
}
