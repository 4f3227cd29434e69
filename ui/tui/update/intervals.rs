//! The intervals over time: opened, zoomed, and one level down to the functions of a phase.

use super::samples;
use crate::keymap::{Command, Screen};
use crate::tui::action::Effect;
use crate::tui::state::{Load, SampleFilter, State};

/// How far the view moves.
const SHIFT: f64 = 0.5;

/// Shows them, in place of the functions that were looked at.
pub fn open(state: &mut State, effects: &mut Vec<Effect>) {
    state.intervals.refresh();
    if state.intervals.series.is_empty() {
        state.message = Some(
            "fewer than two intervals; `tdtool record --interval 100` has shorter ones".into(),
        );
        return;
    }
    if state.screen() == Screen::Functions {
        state.path.pop();
    }
    match state.screen() {
        Screen::Intervals => up(state, effects),
        _ => state.path.push(Screen::Intervals),
    }
}

/// Zooms or moves the view.
pub fn act(state: &mut State, command: Command) {
    match command {
        Command::ZoomIn => state.intervals.zoom_in(),
        Command::ZoomOut => state.intervals.zoom_out(),
        Command::Later => state.intervals.shift(SHIFT),
        Command::Earlier => state.intervals.shift(-SHIFT),
        _ => {}
    }
}

/// The functions of the phase at the cursor.
pub fn down(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(phase) = state.intervals.phase() else { return };
    if let Load::Missing(why) = &state.functions.data {
        state.message = Some(why.clone());
        return;
    }
    let ns = |seconds: f64| (seconds.max(0.0) * 1e9) as u64;
    let time = Some((ns(phase.from), ns(phase.to)));
    state.path.push(Screen::Functions);
    samples::ask(state, SampleFilter { time, ..state.functions.samples_of.clone() }, effects);
}

/// Back from the functions of a phase: those of all samples are shown again where they are opened from elsewhere.
pub fn up(state: &mut State, effects: &mut Vec<Effect>) {
    if state.screen() == Screen::Intervals && state.functions.samples_of.time.is_some() {
        let all = SampleFilter { time: None, ..state.functions.samples_of.clone() };
        samples::ask(state, all, effects);
    }
}
