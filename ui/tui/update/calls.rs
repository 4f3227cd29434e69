//! Callers and callees of functions, from one to the next.

use crate::keymap::Screen;
use crate::tui::action::Effect;
use crate::tui::state::{Load, State};

/// Reason that a key has to wait.
pub const STILL_READ: &str = "samples and symbols are still being read";

/// Opens those of the function at the cursor, or of the one whose code is shown.
pub fn open(state: &mut State, effects: &mut Vec<Effect>) {
    let name = match state.screen() {
        Screen::Functions => state.functions.row(state.functions.list.at).map(|f| f.name.clone()),
        Screen::Blocks => {
            let function = state.blocks.index.and_then(|i| state.functions.all().get(i));
            function.map(|f| f.name.clone())
        }
        Screen::EstimatedFunctions => {
            let row = state.estimate.function_at(state.estimate.functions.list.at);
            row.filter(|row| row.start.is_some()).map(|row| row.name.clone())
        }
        _ => state.estimate.opened().map(|row| row.name.clone()),
    };
    let Some(name) = name else {
        let is_on_its_way = matches!(state.functions.data, Load::Loading);
        let why = match state.screen() == Screen::Functions && is_on_its_way {
            true => STILL_READ,
            false => "there is no function here",
        };
        state.message = Some(why.to_owned());
        return;
    };
    state.calls.trail.clear();
    show(state, name, effects);
}

/// Opens those of the caller or callee at the cursor.
pub fn down(state: &mut State, effects: &mut Vec<Effect>) {
    let at = state.calls.list.at;
    let Some(row) = state.calls.row(at) else { return };
    match row.name().map(str::to_owned) {
        Some(name) => {
            if let Some(last) = state.calls.trail.last_mut() {
                last.1 = at;
            }
            show(state, name, effects);
        }
        None => {
            state.message = Some(format!("{} is no function to follow", row.function().name));
        }
    }
}

fn show(state: &mut State, name: String, effects: &mut Vec<Effect>) {
    state.calls.trail.push((name.clone(), 0));
    state.calls.data = Load::Loading;
    state.calls.list = Default::default();
    state.path.push(Screen::Calls);
    effects.push(Effect::Calls(name));
}

/// Back to the function from which this one was opened; the screen is the one before.
pub fn up(state: &mut State, effects: &mut Vec<Effect>) {
    state.calls.trail.pop();
    if let (Screen::Calls, Some((name, _))) = (state.screen(), state.calls.trail.last()) {
        state.calls.data = Load::Loading;
        effects.push(Effect::Calls(name.clone()));
    }
}
