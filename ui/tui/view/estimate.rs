//! An estimated top-down: the program's tree, its functions, their loops, blocks and source lines; above them the
//! bottleneck in a sentence, and the next step.

use super::estimate_row::{Columns, LABEL, instruction_text, node_line, place, share};
use super::put::{Layout, put_head, put_prose, put_rows};
use super::{headline, names};
use crate::keymap::{Command, Screen};
use crate::tui::look::{Look, Tone, fit};
use crate::tui::state::{ProgramRow, SourceRow, State};
use ratatui::buffer::Buffer;
use ratatui::text::Line;
use report::documents::estimate::{Bottleneck, Estimate, Row, SourceLine};
use report::format;
use tma::Address;

/// Draws a screen of the estimate.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    let Some(document) = state.estimate.document.as_deref() else {
        return put_prose(buffer, area, state.look, "There is no estimate.");
    };
    let titles = titles(state, document, usize::from(area.width));
    put_head(state.look, buffer, layout.head, &answer(state), &titles);
    if state.list().rows == 0 {
        return put_prose(buffer, area, state.look, &no_rows(state));
    }
    put_rows(buffer, area, state.list(), |row| {
        Some(line(state, document, row, usize::from(area.width)))
    });
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

/// The titles of the rows; above the tree the whole program.
fn titles(state: &State, document: &Estimate, columns: usize) -> Line<'static> {
    let titles = match state.screen() {
        Screen::Estimate => whole(document),
        Screen::EstimatedFunctions => Columns::of(columns, false).titles("function"),
        Screen::EstimatedSource => Columns::of(columns, false).titles("source line"),
        _ => Columns::of(columns, true).titles("loop or block"),
    };
    Line::from(state.look.span(fit(&titles, columns), Tone::Dim))
}

/// What the parts of the program are of.
fn whole(document: &Estimate) -> String {
    let covered = share(document.covered);
    format!(
        "of the code with {} of all samples; a full bar is all of its time",
        covered.trim_start()
    )
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
        Screen::EstimatedSource => source_line(state, row, columns),
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
    let text = format!("{}{} of all samples  {why}", fit(&row.name, LABEL), share(row.share));
    Line::from(look.span(fit(&look.prose(&text), columns), Tone::Dim))
}

/// `loop 0x1953`, for the breadcrumb.
pub fn title(state: &State) -> String {
    let of = state.estimate.piece.zip(state.estimate.shown());
    of.map_or_else(|| "block".to_owned(), |(piece, row)| place(piece, row).trim().to_owned())
}

/// The bottleneck of what the cursor is on, and the next step.
pub fn answer(state: &State) -> String {
    let Some(document) = state.estimate.document.as_deref() else { return String::new() };
    let at = state.list().at;
    if state.screen() == Screen::EstimatedSource {
        return on_source(state);
    }
    let (row, below) = match state.screen() {
        Screen::Estimate => (on_program(state, document, at), "its functions"),
        Screen::EstimatedFunctions => (state.estimate.function_at(at), "its loops and blocks"),
        _ => (state.estimate.piece_at(at).map(|(_, row)| row), "its instructions"),
    };
    let Some(row) = row else { return String::new() };
    let mut text = headline::so_far(state) + &said(row);
    text += &format!(" {} shows {below}", state.keys.key(Command::Drill));
    text += &match row.next.is_empty() {
        true => ".".to_owned(),
        false => format!("; or `{}`.", row.next),
    };
    if state.screen() == Screen::Estimate {
        text += &format!(" {}", basis(document));
    }
    text
}

/// Row that the program's screen speaks of: all of it, or the time that is not divided.
fn on_program<'a>(state: &State, document: &'a Estimate, at: usize) -> Option<&'a Row> {
    match state.estimate.program.shown.get(at) {
        Some(ProgramRow::Other(i)) => document.functions.get(*i),
        _ => Some(&document.program),
    }
}

/// The bottleneck of a row in a sentence.
fn said(row: &Row) -> String {
    match (&row.parts.unexplained.reason, row.start.is_none() && row.name.starts_with('[')) {
        (Some(why), true) => format!("{}: {why}.", row.name),
        _ => row.sentence.clone(),
    }
}

/// Basis of the estimate.
fn basis(document: &Estimate) -> String {
    let seconds: f64 = document.runs.iter().map(|run| run.seconds).sum();
    let same = match document.deterministic {
        Some(true) => "; the program is deterministic: two runs entered all blocks equally often",
        Some(false) => {
            "; the program is not deterministic: two runs entered blocks differently often"
        }
        None => "",
    };
    format!(
        "Estimated from {} measurements of {} in all{same}.",
        document.runs.len(),
        format::seconds(seconds)
    )
}

/// The lines of the function that is open.
pub fn source_lines(state: &State) -> &[SourceLine] {
    state.estimate.opened().map_or(&[], |of| &of.lines)
}

/// The hottest line in a sentence, and the next step.
fn on_source(state: &State) -> String {
    let all = source_lines(state);
    let at = match state.estimate.source.rows.get(state.estimate.source.list.at) {
        Some(SourceRow::Line(i) | SourceRow::Instruction(i, _)) => all.get(*i),
        None => None,
    };
    let Some(of) = at else { return String::new() };
    let why = match of.bottleneck {
        Bottleneck(None) => "undecided between several parts".to_owned(),
        known => known.words(),
    };
    let key = state.keys.key(Command::Drill);
    format!(
        "{}:{} has {:.1} % of all samples: {why}. {key} shows its assembly. Timer samples are often of the \
         instruction after, and then of its line.",
        names::file(&of.file),
        of.line,
        100.0 * of.share
    )
}

/// The line of a row.
pub fn source_line(state: &State, row: usize, columns: usize) -> Line<'static> {
    let (look, source) = (state.look, &state.estimate.source);
    match source.rows.get(row) {
        Some(SourceRow::Line(i)) => match source_lines(state).get(*i) {
            Some(of) => {
                let open = if source.is_open(*i) { "▾" } else { "▸" };
                let text = of.text.as_deref().unwrap_or("(the source was not found)").trim();
                let name = format!("{open} {:>4}  {text}", of.line);
                let shown = Row {
                    share: of.share,
                    bottleneck: of.bottleneck,
                    parts: of.parts.clone(),
                    // Time without a place is not divided.
                    start: Some(Address::default()),
                    ..Row::default()
                };
                Columns::of(columns, false).line(look, &shown, &look.prose(&name))
            }
            None => Line::default(),
        },
        Some(SourceRow::Instruction(i, j)) => {
            let one = source_lines(state).get(*i).and_then(|of| of.code.get(*j));
            one.map_or_else(Line::default, |one| {
                let text = instruction_text(look, one, columns);
                Line::from(look.span(fit(&look.prose(&text), columns), Tone::Plain))
            })
        }
        None => Line::default(),
    }
}
