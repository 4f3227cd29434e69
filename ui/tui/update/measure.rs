//! The measurement of the block that is shown.

use crate::tui::action::Effect;
use crate::tui::state::{Job, ShownBlock, State};
use crate::tui::view::{block_lines, layout};

/// Shows machine code as a block, and measures it unless its report is cached.
pub fn show(state: &mut State, shown: ShownBlock, effects: &mut Vec<Effect>) {
    if state.block.is_running() {
        effects.push(Effect::Cancel(state.block.id));
    }
    let measure = state.block.open(shown);
    wrap(state);
    if let Some(id) = measure {
        effects.push(Effect::Measure(id, state.block.shown.bytes.clone()));
    }
}

/// Measures the block again.
pub fn again(state: &mut State, effects: &mut Vec<Effect>) {
    if state.block.shown.bytes.is_empty() {
        return;
    }
    if state.block.is_running() {
        effects.push(Effect::Cancel(state.block.id));
    }
    let id = state.block.start();
    wrap(state);
    effects.push(Effect::Measure(id, state.block.shown.bytes.clone()));
}

/// Cancels the measurement.
pub fn cancel(state: &mut State, effects: &mut Vec<Effect>) {
    if !stop(state, effects) {
        state.message = Some("no measurement is running".into());
    }
}

/// Stops the measurement; whether there was one.
pub fn stop(state: &mut State, effects: &mut Vec<Effect>) -> bool {
    let running = state.block.is_running();
    if running {
        effects.push(Effect::Cancel(state.block.id));
        state.block.job = Job::Cancelled;
        wrap(state);
    }
    running
}

/// Wraps the report to the width of the screen.
pub fn wrap(state: &mut State) {
    let lines = block_lines(state, usize::from(layout(state).list.width));
    state.block.set_lines(lines);
}
