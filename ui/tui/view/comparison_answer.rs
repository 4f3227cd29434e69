//! The answer above the screens of a comparison: what changed in the row at the cursor.

use super::names;
use crate::keymap::{Command, Screen};
use crate::tui::state::{ComparedRow, State};
use report::documents::diff::row::CodeRow;
use report::render::diff::{place, sentence};

/// Change of the row at the cursor, and both sides.
pub fn answer(state: &State) -> String {
    let Some(diff) = state.comparison.data.ready() else { return String::new() };
    let screen = state.screen();
    let Some((which, row)) = state.comparison.row(screen, state.list().at) else {
        return String::new();
    };
    let what = match which {
        ComparedRow::Program | ComparedRow::Function(_) => {
            names::in_sentence(names::short(&row.time.label))
        }
        _ => name(which, row).trim().to_owned(),
    };
    let mut text = format!("{what}: {}", sentence(row));
    if screen == Screen::Comparison {
        let key = state.keys.key(Command::Drill);
        let [a, b] = &diff.reports;
        text += &format!(" {key} shows its loops and blocks. A: {a}; B: {b}.");
    }
    text
}

/// Its name on the screen.
pub fn name(which: ComparedRow, row: &CodeRow) -> String {
    match which {
        ComparedRow::Program => "(estimated part of the program)".to_owned(),
        ComparedRow::Function(_) => format!("{}  {}", row.time.label, row.module),
        ComparedRow::Loop(_) => place(row, "↺ loop"),
        ComparedRow::Block(_) => place(row, "  block"),
    }
}
