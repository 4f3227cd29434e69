//! Changes the state; nothing else does. Pure: no clock, no files, no terminal; work to be done outside comes back
//! as effects. This file finds what an action changes.
//!
//! | file | concern |
//! |---|---|
//! | `results` | what arrives from the background; the estimate: offered, asked for, here |
//! | `drill` | one level down or up, on every screen; the measurement of a block |
//! | `moves` | the cursor and folds; what is shown and in which order |
//! | `samples` | which samples the functions are of; intervals, callers and callees |
//! | `prompt` | search and filter; copy and save |

mod drill;
mod moves;
mod prompt;
mod results;
mod samples;

pub use drill::show_block;

use super::action::{Action, Effect};
use super::state::State;
use super::view::{clamp_scrolls, layout};
use crate::keymap::Command;

/// Changes the state; the effects returned have to be performed.
pub fn update(state: &mut State, action: Action) -> Vec<Effect> {
    let mut effects = Vec::new();
    match action {
        Action::Command(command) => {
            state.message = None;
            run(state, command, &mut effects);
        }
        Action::Wheel(rows) => moves::wheel(state, rows),
        Action::Click(row) => {
            state.message = None;
            if moves::click(state, row) {
                run(state, Command::Drill, &mut effects);
            }
        }
        Action::Edit(edit) => prompt::edit(state, edit, &mut effects),
        Action::Resize(columns, rows) => {
            state.size = (columns, rows);
            drill::wrap_block(state);
            drill::wrap_estimate(state);
        }
        Action::Background(result) => results::take(state, result, &mut effects),
    }
    settle(state);
    effects
}

fn run(state: &mut State, command: Command, effects: &mut Vec<Effect>) {
    if state.help.is_some() && moves::in_help(state, command) {
        return;
    }
    match command {
        Command::Quit => effects.push(Effect::Quit),
        Command::Suspend => effects.push(Effect::Suspend),
        Command::Redraw => effects.push(Effect::Redraw),
        Command::Help => state.help = Some(0),
        Command::Drill => drill::down(state, effects),
        Command::Callers => samples::open_calls(state, effects),
        Command::Estimate => results::ask_estimate(state, effects),
        Command::Back => drill::up(state, effects),
        Command::NextSymbol => drill::next_function(state, 1, effects),
        Command::PreviousSymbol => drill::next_function(state, -1, effects),
        Command::Search | Command::Filter | Command::Thread => prompt::open(state, command),
        Command::NextMatch => prompt::next_match(state, true),
        Command::PreviousMatch => prompt::next_match(state, false),
        Command::Module => samples::only_module(state),
        Command::NextEvent => samples::next_event(state, effects),
        Command::Intervals => samples::open_intervals(state, effects),
        Command::ZoomIn | Command::ZoomOut | Command::Earlier | Command::Later => {
            samples::zoom(state, command);
        }
        Command::Copy => prompt::copy(state, effects),
        Command::Export => prompt::ask_screen(state),
        Command::Evidence => prompt::ask_evidence(state),
        Command::Again => drill::measure_again(state, effects),
        Command::Cancel => drill::cancel_measuring(state, effects),
        Command::Freeze
        | Command::Output
        | Command::Details
        | Command::NextPart
        | Command::Sort
        | Command::Invert
        | Command::Samples
        | Command::Offsets
        | Command::Source => moves::toggle(state, command),
        other => moves::act(state, other),
    }
}

/// Scrolls so that the cursor is visible, and texts back to their end.
fn settle(state: &mut State) {
    let height = usize::from(layout(state).list.height);
    state.list_mut().settle(height);
    clamp_scrolls(state);
}
