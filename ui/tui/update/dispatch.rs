//! An action → the state, and effects.

use super::{
    calls, drill, estimate, intervals, measure, moves, prompt, results, samples, save, toggles,
};
use crate::keymap::Command;
use crate::tui::action::{Action, Effect};
use crate::tui::state::State;
use crate::tui::view::{clamp_scrolls, layout};

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
            measure::wrap(state);
            estimate::wrap(state);
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
        Command::Callers => calls::open(state, effects),
        Command::Estimate => estimate::ask(state, effects),
        Command::Back => drill::up(state, effects),
        Command::NextSymbol => drill::next_function(state, 1, effects),
        Command::PreviousSymbol => drill::next_function(state, -1, effects),
        Command::Search | Command::Filter | Command::Thread => prompt::open(state, command),
        Command::NextMatch => prompt::next_match(state, true),
        Command::PreviousMatch => prompt::next_match(state, false),
        Command::Module => samples::only_module(state),
        Command::NextEvent => samples::next_event(state, effects),
        Command::Intervals => intervals::open(state, effects),
        Command::ZoomIn | Command::ZoomOut | Command::Earlier | Command::Later => {
            intervals::act(state, command);
        }
        Command::Copy => save::copy(state, effects),
        Command::Export => save::ask(state),
        Command::Evidence => save::ask_evidence(state),
        Command::Again => measure::again(state, effects),
        Command::Cancel => measure::cancel(state, effects),
        Command::Freeze
        | Command::Output
        | Command::Details
        | Command::NextPart
        | Command::Sort
        | Command::Invert
        | Command::Samples
        | Command::Offsets
        | Command::Source => toggles::toggle(state, command),
        other => moves::act(state, other),
    }
}

/// Scrolls so that the cursor is visible, and texts back to their end.
fn settle(state: &mut State) {
    let height = usize::from(layout(state).list.height);
    state.list_mut().settle(height);
    clamp_scrolls(state);
}
