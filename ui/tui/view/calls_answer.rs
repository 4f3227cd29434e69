//! The answer above callers and callees: what their shares are of.

use super::names;
use crate::keymap::Command;
use crate::tui::state::State;
use profile::hot::SELF;
use report::format;

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
