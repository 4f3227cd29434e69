//! Moves one level down or up, and from function to function, also on the screens of a comparison and of an
//! estimate; chooses the block that is measured.

use super::samples;
use crate::keymap::{Command, Screen};
use crate::tui::action::Effect;
use crate::tui::state::{Job, Load, Piece, ShownBlock, State};
use crate::tui::view::{SEVERAL_PATHS, block_lines, estimate_lines, layout};
use engine::block::{Notes, assumed};
use report::format;

/// One level down.
pub fn down(state: &mut State, effects: &mut Vec<Effect>) {
    match state.screen() {
        Screen::Tree => state.path.push(Screen::Functions),
        Screen::Functions => {
            if let Some(&index) = state.functions.rows.get(state.functions.list.at) {
                state.path.push(Screen::Blocks);
                open_function(state, index, effects);
            }
        }
        Screen::Blocks => open_block(state, effects),
        Screen::Block | Screen::ComparedCode => {}
        Screen::Comparison => open_compared(state),
        Screen::Calls => samples::follow_call(state, effects),
        Screen::Intervals => samples::open_phase(state, effects),
        _ => down_in_estimate(state, effects),
    }
}

/// One level up, to the previous cursor.
pub fn up(state: &mut State, effects: &mut Vec<Effect>) {
    if state.path.len() == 1 {
        let quit = state.keys.key(Command::Quit);
        state.message = Some(format!("this is the first screen; {quit} quits"));
        return;
    }
    if state.screen() == Screen::Block {
        stop_measuring(state, effects);
    }
    match state.path.pop() {
        Some(Screen::Calls) => samples::leave_calls(state, effects),
        Some(Screen::Functions) => samples::leave_phase(state, effects),
        _ => {}
    }
}

/// The function `by` rows below the current one in the list.
pub fn next_function(state: &mut State, by: isize, effects: &mut Vec<Effect>) {
    let next = state.functions.list.at.checked_add_signed(by);
    let next = next.and_then(|row| Some((row, *state.functions.rows.get(row)?)));
    match next {
        Some((row, index)) => {
            state.functions.list.to(row);
            open_function(state, index, effects);
        }
        None => state.message = Some("no other function in the list".into()),
    }
}

/// Shows a function; one that is already loaded keeps its cursor.
fn open_function(state: &mut State, index: usize, effects: &mut Vec<Effect>) {
    let loaded = !matches!(state.blocks.data, Load::Missing(_));
    if state.blocks.index == Some(index) && loaded {
        return;
    }
    state.blocks.open(index);
    let gap = state.functions.all().get(index).and_then(|f| f.gap.clone());
    match gap {
        Some(why) => state.blocks.data = Load::Missing(why.to_string()),
        None => effects.push(Effect::Annotate(index)),
    }
}

/// Shows the block at the cursor, measured.
fn open_block(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(block) = state.blocks.block(state.blocks.list.at) else { return };
    let bytes: Vec<u8> = block.lines.iter().flat_map(|l| l.bytes.iter().copied()).collect();
    let code = block.lines.iter().map(|l| l.text.clone()).collect();
    let title = format!("block {:#x}", block.block.start);
    let notes = Notes { of_time: assumed(&bytes, None), ..Notes::default() };
    state.path.push(Screen::Block);
    show_block(state, ShownBlock { title, bytes, code, notes }, effects);
}

/// Shows machine code as a block, and measures it unless its report is cached.
pub fn show_block(state: &mut State, shown: ShownBlock, effects: &mut Vec<Effect>) {
    stop_measuring(state, effects);
    let measure = state.block.open(shown);
    wrap_block(state);
    if let Some(id) = measure {
        effects.push(Effect::Measure(id, state.block.shown.bytes.clone()));
    }
}

/// Measures the block again.
pub fn measure_again(state: &mut State, effects: &mut Vec<Effect>) {
    if state.block.shown.bytes.is_empty() {
        return;
    }
    stop_measuring(state, effects);
    let id = state.block.start();
    wrap_block(state);
    effects.push(Effect::Measure(id, state.block.shown.bytes.clone()));
}

/// Cancels the measurement.
pub fn cancel_measuring(state: &mut State, effects: &mut Vec<Effect>) {
    if !stop_measuring(state, effects) {
        state.message = Some("no measurement is running".into());
    }
}

/// Stops the measurement; whether there was one.
pub fn stop_measuring(state: &mut State, effects: &mut Vec<Effect>) -> bool {
    let running = state.block.is_running();
    if running {
        effects.push(Effect::Cancel(state.block.id));
        state.block.job = Job::Cancelled;
        wrap_block(state);
    }
    running
}

/// Wraps the report to the width of the screen.
pub fn wrap_block(state: &mut State) {
    let lines = block_lines(state, usize::from(layout(state).list.width));
    state.block.set_lines(lines);
}

/// From functions to the loops and blocks of one of them.
pub fn open_compared(state: &mut State) {
    let at = state.comparison.functions.list.at;
    if let Some(&row) = state.comparison.functions.shown.get(at) {
        state.comparison.open(row);
        state.path.push(Screen::ComparedCode);
    }
}

/// One level down from a screen of the estimate.
pub fn down_in_estimate(state: &mut State, effects: &mut Vec<Effect>) {
    match state.screen() {
        Screen::Estimate => state.path.push(Screen::EstimatedFunctions),
        Screen::EstimatedFunctions => open_estimated(state),
        Screen::EstimatedCode => {
            let at = state.estimate.code.list.at;
            if let Some((piece, _)) = state.estimate.piece_at(at) {
                open_piece(state, piece);
            }
        }
        Screen::EstimatedSource => fold_line(state, None),
        _ => measure_piece(state, effects),
    }
}

/// From the loops and blocks of a function to its source lines, or back.
pub fn toggle_source_lines(state: &mut State) {
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
pub fn fold_line(state: &mut State, open: Option<bool>) {
    let Some(document) = state.estimate.document.clone() else { return };
    let function = state.estimate.function.and_then(|i| document.functions.get(i));
    state.estimate.source.fold(function.map_or(&[], |row| &row.lines), open);
}

/// Folds or unfolds all lines.
pub fn fold_all_lines(state: &mut State, open: bool) {
    let Some(document) = state.estimate.document.clone() else { return };
    let function = state.estimate.function.and_then(|i| document.functions.get(i));
    state.estimate.source.fold_all(function.map_or(&[], |row| &row.lines), open);
}

fn open_estimated(state: &mut State) {
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
    wrap_estimate(state);
}

/// Wraps the lines of a loop or block to the width of the screen.
pub fn wrap_estimate(state: &mut State) {
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
    show_block(state, ShownBlock { title, bytes, code, notes }, effects);
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
