//! The source lines of a function of an estimate: the bars of functions and blocks, and the assembly below.

use super::estimate_answer::lines;
use super::estimate_block::instruction_text;
use super::estimate_row::Columns;
use crate::tui::look::{Tone, fit};
use crate::tui::state::{SourceRow, State};
use ratatui::text::Line;
use report::documents::estimate::Row;
use tma::Address;

/// The titles above the lines.
pub fn titles(columns: usize) -> String {
    Columns::of(columns, false).titles("source line")
}

/// The line of a row.
pub fn line(state: &State, row: usize, columns: usize) -> Line<'static> {
    let (look, source) = (state.look, &state.estimate.source);
    match source.rows.get(row) {
        Some(SourceRow::Line(i)) => match lines(state).get(*i) {
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
            let one = lines(state).get(*i).and_then(|of| of.code.get(*j));
            one.map_or_else(Line::default, |one| {
                let text = instruction_text(look, one, columns);
                Line::from(look.span(fit(&look.prose(&text), columns), Tone::Plain))
            })
        }
        None => Line::default(),
    }
}
