//! One level down or up, and from function to function.

use super::{calls, comparison, estimate, intervals, measure};
use crate::keymap::{Command, Screen};
use crate::tui::action::Effect;
use crate::tui::state::{Load, ShownBlock, State};
use engine::block::{Notes, assumed};

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
        Screen::Comparison => comparison::down(state),
        Screen::Calls => calls::down(state, effects),
        Screen::Intervals => intervals::down(state, effects),
        _ => estimate::down(state, effects),
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
        measure::stop(state, effects);
    }
    match state.path.pop() {
        Some(Screen::Calls) => calls::up(state, effects),
        Some(Screen::Functions) => intervals::up(state, effects),
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
    measure::show(state, ShownBlock { title, bytes, code, notes }, effects);
}
