//! An estimated top-down: the program's tree, its functions, their loops and blocks.

use super::estimate_answer::answer;
use super::estimate_row::{Columns, LABEL, bars, node_line, place, share};
use super::estimate_source;
use super::layout::Layout;
use super::put::{put_prose, put_row, put_wrapped};
use crate::keymap::Screen;
use crate::tui::look::{Look, Tone, fit};
use crate::tui::state::{ProgramRow, State};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use report::documents::estimate::{Estimate, Row};

/// Draws a screen of the estimate.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    let Some(document) = state.estimate.document.as_deref() else {
        return put_prose(buffer, area, state.look, "There is no estimate.");
    };
    head(state, document, buffer, layout.head);
    if state.list().rows == 0 {
        return put_prose(buffer, area, state.look, &no_rows(state));
    }
    let list = state.list();
    for (y, row) in list.shown(usize::from(area.height)).enumerate() {
        let line = line(state, document, row, usize::from(area.width));
        put_row(buffer, area, y, &line, row == list.at);
    }
}

/// Why there are no rows.
fn no_rows(state: &State) -> String {
    if !state.filter().is_empty() {
        return "no row matches the filter".to_owned();
    }
    match state.estimate.opened() {
        Some(row) if state.screen() == Screen::EstimatedCode => {
            let why = row.parts.unexplained.reason.as_ref();
            let none = "no loop or block of it has samples enough to be divided";
            let why = why.map_or(none.to_owned(), ToString::to_string);
            format!("{} has no loops and blocks here: {why}.", row.name)
        }
        _ => "The estimate has no functions.".to_owned(),
    }
}

fn head(state: &State, document: &Estimate, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let look = state.look;
    let above = Rect { height: area.height - 1, ..area };
    put_wrapped(buffer, above, &look.prose(&answer(state)), look.style(Tone::Bold));
    let columns = usize::from(area.width);
    let line = match state.screen() {
        Screen::Estimate => whole(look, document, columns),
        Screen::EstimatedFunctions => {
            Line::from(look.span(Columns::of(columns, false).titles("function"), Tone::Dim))
        }
        Screen::EstimatedSource => {
            Line::from(look.span(estimate_source::titles(columns), Tone::Dim))
        }
        _ => Line::from(look.span(Columns::of(columns, true).titles("loop or block"), Tone::Dim)),
    };
    buffer.set_line(area.x, area.bottom() - 1, &line, area.width);
}

/// The whole program in one bar.
fn whole(look: Look, document: &Estimate, columns: usize) -> Line<'static> {
    let covered = format!("{} of the time", share(document.covered).trim_start());
    if columns < 60 {
        return Line::from(look.span(covered, Tone::Dim));
    }
    let names = ["R", "S", "F", "B", "?"];
    let mut spans = vec![look.span(format!("{covered}  "), Tone::Dim)];
    for (name, bar) in names.into_iter().zip(bars(look, &document.program.parts, 6)) {
        spans.push(look.span(format!("{name} "), Tone::Dim));
        spans.push(bar);
    }
    Line::from(spans)
}

fn line(state: &State, document: &Estimate, row: usize, columns: usize) -> Line<'static> {
    let (look, estimate) = (state.look, &state.estimate);
    match state.screen() {
        Screen::Estimate => match estimate.program.shown.get(row) {
            Some(ProgramRow::Node(node)) => {
                let is_it = estimate.bottleneck() == Some(row)
                    && document.program.bottleneck.name() == node.id;
                node_line(look, node, is_it, columns)
            }
            Some(ProgramRow::Other(i)) => match document.functions.get(*i) {
                Some(other) => other_line(look, other, columns),
                None => Line::default(),
            },
            None => Line::default(),
        },
        Screen::EstimatedFunctions => match estimate.function_at(row) {
            Some(of) => Columns::of(columns, false).of_function(look, of),
            None => Line::default(),
        },
        Screen::EstimatedSource => estimate_source::line(state, row, columns),
        Screen::EstimatedCode => match estimate.piece_at(row) {
            Some((piece, of)) => Columns::of(columns, true).line(look, of, &place(piece, of)),
            None => Line::default(),
        },
        _ => match estimate.lines.get(row) {
            Some(line) => Line::from(look.span(look.prose(&line.text).into_owned(), line.tone)),
            None => Line::default(),
        },
    }
}

/// Time that is not divided.
fn other_line(look: Look, row: &Row, columns: usize) -> Line<'static> {
    let why = row.parts.unexplained.reason.as_ref();
    let why = why.map_or("not divided".to_owned(), ToString::to_string);
    let text = format!("{}{} of all  {why}", fit(&row.name, LABEL), share(row.share));
    Line::from(look.span(fit(&look.prose(&text), columns), Tone::Dim))
}

/// `loop 0x1953`, for the breadcrumb.
pub fn title(state: &State) -> String {
    let of = state.estimate.piece.zip(state.estimate.shown());
    of.map_or_else(|| "block".to_owned(), |(piece, row)| place(piece, row).trim().to_owned())
}
