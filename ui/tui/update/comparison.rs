//! The screens of a comparison.

use crate::keymap::Screen;
use crate::tui::state::{Failure, Load, Searchable, State};
use report::documents::diff::Diff;

/// The comparison is here, or will not be.
pub fn arrived(state: &mut State, result: Result<Box<Searchable<Diff>>, Failure>) {
    match result {
        Ok(diff) if diff.document.code.is_some() => state.comparison.fill(*diff),
        Ok(_) => {
            let why = "One of both has no functions: compare recordings with samples, or reports with an \
                       estimate (`tdtool report --estimate --format json`). `tdtool diff` compares counts.";
            state.comparison.data = Load::Missing(why.to_owned());
        }
        Err(why) => state.comparison.data = Load::Missing(why.to_string()),
    }
}

/// From functions to the loops and blocks of one of them.
pub fn down(state: &mut State) {
    let at = state.comparison.functions.list.at;
    if let Some(&row) = state.comparison.functions.shown.get(at) {
        state.comparison.open(row);
        state.path.push(Screen::ComparedCode);
    }
}
