//! The estimate: asked for, shown, and its screens opened.

use super::measure;
use crate::keymap::{Command, Screen};
use crate::tui::action::Effect;
use crate::tui::state::{EstimateJob, Piece, Searchable, ShownBlock, State};
use crate::tui::view::{SEVERAL_PATHS, estimate_lines, layout};
use engine::block::{Notes, assumed};
use report::documents::estimate::Estimate;
use report::format;

/// There is no PMU: the samples are the first screen. What is estimated is a command that has ended.
pub fn not_counted(state: &mut State, is_command: bool) {
    if is_command && state.estimate.job == EstimateJob::None {
        state.estimate.job = EstimateJob::Later(false);
    }
    if state.path == [Screen::Tree] {
        state.path.push(Screen::Functions);
    }
}

/// The command has ended and can be estimated.
pub fn offered(state: &mut State, cost: String, effects: &mut Vec<Effect>) {
    let is_wanted = state.estimate.job == EstimateJob::Later(true);
    state.estimate.job = EstimateJob::Offered(cost);
    if is_wanted {
        ask(state, effects);
    }
}

/// Asks for the estimate; once it is here, goes between it and the samples.
pub fn ask(state: &mut State, effects: &mut Vec<Effect>) {
    let message = match &state.estimate.job {
        EstimateJob::Offered(cost) => {
            let message = format!("estimating top-down: {cost}");
            state.estimate.job = EstimateJob::Running(None);
            // The evidence is of a former estimate.
            state.estimate.evidence = None;
            effects.push(Effect::Estimate);
            message
        }
        EstimateJob::Later(is_wanted) => {
            let now = !is_wanted;
            state.estimate.job = EstimateJob::Later(now);
            match now {
                true => "the estimate begins when the command has ended".to_owned(),
                false => "no estimate will be made".to_owned(),
            }
        }
        EstimateJob::Running(_) if state.estimate.document.is_none() => {
            "the estimate is on its way".to_owned()
        }
        EstimateJob::Running(_) | EstimateJob::Done => return switch(state, effects),
        EstimateJob::Failed(why) => format!("no estimate: {why}"),
        EstimateJob::None => {
            "nothing to estimate: it is for commands and processes without a PMU".to_owned()
        }
    };
    state.message = Some(message);
}

/// From the estimate to the samples, or back.
fn switch(state: &mut State, effects: &mut Vec<Effect>) {
    if state.screen().is_estimate() || state.path[0] == Screen::Estimate {
        if state.functions.data.ready().is_none() {
            state.message = Some("this document has an estimate only, no samples".to_owned());
            return;
        }
        measure::stop(state, effects);
        state.path = vec![Screen::Tree, Screen::Functions];
    } else {
        measure::stop(state, effects);
        state.path = vec![Screen::Estimate];
    }
}

/// The estimate is here, complete.
pub fn arrived(state: &mut State, document: Searchable<Estimate>) {
    state.estimate.job = EstimateJob::Done;
    state.message = None;
    so_far(state, document);
}

/// A first estimate becomes the first screen, unless the user is looking at code; a newer one renews the screens.
pub fn so_far(state: &mut State, document: Searchable<Estimate>) {
    if state.estimate.document.is_some() {
        state.estimate.renew(document);
        return wrap(state);
    }
    state.estimate.fill(document);
    if matches!(state.screen(), Screen::Tree | Screen::Functions) {
        state.path = vec![Screen::Estimate];
    } else {
        let key = state.keys.key(Command::Estimate);
        state.message = Some(format!("the estimate is here; {key} shows it"));
    }
}

/// One level down from a screen of the estimate.
pub fn down(state: &mut State, effects: &mut Vec<Effect>) {
    match state.screen() {
        Screen::Estimate => state.path.push(Screen::EstimatedFunctions),
        Screen::EstimatedFunctions => open_function(state),
        Screen::EstimatedCode => {
            let at = state.estimate.code.list.at;
            if let Some((piece, _)) = state.estimate.piece_at(at) {
                open_piece(state, piece);
            }
        }
        Screen::EstimatedSource => fold(state, None),
        _ => measure_piece(state, effects),
    }
}

/// From the loops and blocks of a function to its source lines, or back.
pub fn source(state: &mut State) {
    if state.screen() == Screen::EstimatedSource {
        state.path.pop();
    } else if state.estimate.opened().is_some_and(|row| !row.lines.is_empty()) {
        state.path.push(Screen::EstimatedSource);
    } else {
        let why = "no source lines: the program has no debug info (-g), or no loop or block of it is known";
        state.message = Some(why.to_owned());
    }
}

/// Shows or hides the assembly of a source line.
pub fn fold(state: &mut State, open: Option<bool>) {
    let Some(document) = state.estimate.document.clone() else { return };
    let function = state.estimate.function.and_then(|i| document.functions.get(i));
    state.estimate.source.fold(function.map_or(&[], |row| &row.lines), open);
}

/// Folds or unfolds all lines.
pub fn fold_all(state: &mut State, open: bool) {
    let Some(document) = state.estimate.document.clone() else { return };
    let function = state.estimate.function.and_then(|i| document.functions.get(i));
    state.estimate.source.fold_all(function.map_or(&[], |row| &row.lines), open);
}

fn open_function(state: &mut State) {
    let estimate = &mut state.estimate;
    let Some(&function) = estimate.functions.shown.get(estimate.functions.list.at) else { return };
    estimate.open_function(function);
    state.path.push(Screen::EstimatedCode);
}

fn open_piece(state: &mut State, piece: Piece) {
    if state.estimate.piece != Some(piece) {
        state.estimate.piece = Some(piece);
        state.estimate.list = Default::default();
    }
    state.path.push(Screen::EstimatedBlock);
    wrap(state);
}

/// Wraps the lines of a loop or block to the width of the screen.
pub fn wrap(state: &mut State) {
    if state.screen() == Screen::EstimatedBlock {
        let lines = estimate_lines(state, usize::from(layout(state).list.width));
        state.estimate.set_lines(lines);
    }
}

/// Measures the loop or block that is shown in isolation.
fn measure_piece(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(row) = state.estimate.shown() else { return };
    if !row.is_one_path() {
        state.message = Some(SEVERAL_PATHS.to_owned());
        return;
    }
    let bytes: Option<Vec<u8>> = row
        .code
        .iter()
        .map(|one| hex(&one.bytes))
        .collect::<Option<Vec<_>>>()
        .map(|all| all.concat());
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
        state.message = Some("the document does not have its instructions".to_owned());
        return;
    };
    let code = row.code.iter().map(|one| one.text.clone()).collect();
    let title = format!("block {}", row.start.unwrap_or_default());
    let is_loop = matches!(state.estimate.piece, Some(Piece::Loop(_)));
    let each = if is_loop { "an iteration" } else { "an entry" };
    let time = row.cycles_per_entry.map(format::cycles);
    let time = time.map(|cycles| format!("{cycles} cycles of {each} in the program"));
    let notes = Notes { of_time: assumed(&bytes, time.as_deref()), ..Notes::default() };
    state.path.push(Screen::Block);
    measure::show(state, ShownBlock { title, bytes, code, notes }, effects);
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
