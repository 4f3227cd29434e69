//! Shown columns and rows, and their order.

use super::{estimate, measure};
use crate::keymap::{Command, Screen};
use crate::tui::state::State;
use crate::tui::view::layout;

/// Changes what the command stands for.
pub fn toggle(state: &mut State, command: Command) {
    match (command, state.screen()) {
        (Command::Freeze, _) => freeze(state),
        (Command::Output, _) if state.output.is_empty() => {
            state.message = Some("the command has written nothing, or none is measured".into());
        }
        (Command::Output, _) => {
            state.output.hidden = !state.output.hidden;
            measure::wrap(state);
        }
        (Command::Details, Screen::Block) => {
            state.block.verbose = !state.block.verbose;
            measure::wrap(state);
        }
        (Command::Details, _) => {
            let shown = layout(state).details.height > 0;
            state.tree.details = Some(!shown);
            state.tree.details_top = 0;
        }
        (Command::NextPart, _) => state.tree.next_part(),
        (Command::Sort, Screen::Tree) => {
            state.tree.by_value = !state.tree.by_value;
            state.tree.rebuild();
            let order = if state.tree.by_value { "value" } else { "the table's order" };
            state.message = Some(format!("sorted by {order}"));
        }
        (Command::Invert, Screen::Tree) => {
            state.tree.invert = !state.tree.invert;
            state.tree.rebuild();
        }
        (Command::Sort, Screen::Functions) => {
            state.functions.order = state.functions.order.next();
            state.functions.rebuild();
            state.message = Some(format!("sorted by {}", state.functions.order.label()));
        }
        (Command::Invert, Screen::Functions) => {
            state.functions.invert = !state.functions.invert;
            state.functions.rebuild();
        }
        (Command::Samples, Screen::Functions) => {
            state.functions.samples = !state.functions.samples;
        }
        (Command::Samples, Screen::Blocks) => state.blocks.samples = !state.blocks.samples,
        (Command::Offsets, Screen::Blocks) => state.blocks.offsets = !state.blocks.offsets,
        (Command::Source, Screen::Blocks) => source(state),
        (Command::Source, _) => estimate::source(state),
        _ => {}
    }
}

fn freeze(state: &mut State) {
    state.frozen = !state.frozen;
    if !state.frozen {
        state.tree.thaw();
        state.functions.thaw();
    }
}

fn source(state: &mut State) {
    state.blocks.source = !state.blocks.source;
    let mut lines = state.blocks.all().iter().flat_map(|b| &b.lines);
    if state.blocks.source && lines.all(|l| l.source.is_none()) {
        state.message = Some("no source lines: the program has no debug info (-g)".into());
    }
    state.blocks.rebuild();
}
