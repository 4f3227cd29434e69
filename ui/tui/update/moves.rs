//! Moves the cursor, expands and collapses rows; changes shown columns and rows, and their order.

use super::drill;
use crate::keymap::{Command, Screen};
use crate::tui::state::State;
use crate::tui::view::layout;

/// A command while the `?` screen is open. `false`: it has its usual meaning.
pub fn in_help(state: &mut State, command: Command) -> bool {
    let Some(top) = &mut state.help else { return false };
    let page = usize::from(state.size.1).max(2) / 2;
    match command {
        Command::Up => *top = top.saturating_sub(1),
        Command::Down => *top = top.saturating_add(1),
        Command::PageUp | Command::HalfUp => *top = top.saturating_sub(page),
        Command::PageDown | Command::HalfDown => *top = top.saturating_add(page),
        Command::Top => *top = 0,
        Command::Bottom => *top = usize::MAX,
        Command::Redraw | Command::Suspend => return false,
        _ => state.help = None,
    }
    true
}

/// The wheel moves the cursor, or scrolls the `?` screen.
pub fn wheel(state: &mut State, rows: isize) {
    match &mut state.help {
        Some(top) => *top = top.saturating_add_signed(rows),
        None => step(state, rows),
    }
}

/// A click in a row of the terminal moves the cursor there; `true`: it was there already, and drills. One on the `?`
/// screen closes it.
pub fn click(state: &mut State, y: u16) -> bool {
    if state.help.take().is_some() {
        return false;
    }
    let area = layout(state).list;
    let list = *state.list();
    let row = list.top + usize::from(y.saturating_sub(area.y));
    if !(area.top()..area.bottom()).contains(&y) || row >= list.rows {
        return false;
    }
    if row == list.at {
        return true;
    }
    state.list_mut().to(row);
    moved(state);
    false
}

/// Moves, scrolls, expands or collapses.
pub fn act(state: &mut State, command: Command) {
    let page = usize::from(layout(state).list.height).max(1) as isize;
    match command {
        Command::Up => step(state, -1),
        Command::Down => step(state, 1),
        Command::PageUp => step(state, -page),
        Command::PageDown => step(state, page),
        Command::HalfUp => step(state, -(page / 2).max(1)),
        Command::HalfDown => step(state, (page / 2).max(1)),
        Command::Top => go(state, Some(0), ""),
        Command::Bottom => go(state, Some(usize::MAX), ""),
        Command::Toggle => fold(state, None),
        Command::Expand => fold(state, Some(true)),
        Command::Collapse => fold(state, Some(false)),
        Command::ExpandAll => fold_all(state, true),
        Command::CollapseAll => fold_all(state, false),
        Command::Hottest => hottest(state),
        Command::NextHot => next_hot(state, true),
        Command::PreviousHot => next_hot(state, false),
        Command::DetailsDown => state.tree.details_top = state.tree.details_top.saturating_add(1),
        Command::DetailsUp => state.tree.details_top = state.tree.details_top.saturating_sub(1),
        _ => {}
    }
}

fn step(state: &mut State, rows: isize) {
    state.list_mut().move_by(rows);
    moved(state);
}

fn go(state: &mut State, row: Option<usize>, otherwise: &str) {
    match row {
        Some(row) => {
            state.list_mut().to(row);
            moved(state);
        }
        None => state.message = Some(otherwise.to_owned()),
    }
}

/// The cursor is on another node, whose details begin at their first line.
pub fn moved(state: &mut State) {
    if state.screen() == Screen::Tree {
        state.tree.details_top = 0;
    }
}

fn fold(state: &mut State, open: Option<bool>) {
    match state.screen() {
        Screen::Tree if !state.tree.fold(open) => {
            state.message = Some("this node has no children".into());
        }
        Screen::Blocks => state.blocks.fold(open),
        Screen::EstimatedSource => drill::fold_line(state, open),
        _ => {}
    }
}

fn fold_all(state: &mut State, open: bool) {
    match state.screen() {
        Screen::Tree => state.tree.fold_all(open),
        Screen::Blocks => state.blocks.fold_all(open),
        Screen::EstimatedSource => drill::fold_all_lines(state, open),
        _ => {}
    }
}

fn hottest(state: &mut State) {
    let (row, otherwise) = match state.screen() {
        Screen::Tree => (state.tree.hottest(), "no node is flagged"),
        Screen::Functions => (state.functions.hottest(), "no function has samples"),
        Screen::Blocks => (state.blocks.hottest(), "no visible instruction has samples"),
        Screen::Estimate => (state.estimate.bottleneck(), "there is no bottleneck"),
        Screen::EstimatedFunctions
        | Screen::EstimatedCode
        | Screen::Comparison
        | Screen::ComparedCode => (Some(0), ""),
        _ => (None, ""),
    };
    go(state, row, otherwise);
}

fn next_hot(state: &mut State, forward: bool) {
    let row = match state.screen() {
        Screen::Tree => state.tree.next_hot(forward),
        Screen::Functions => state.functions.next_hot(forward),
        Screen::Blocks => state.blocks.next_hot(forward),
        _ => None,
    };
    let otherwise = match state.screen() {
        Screen::Tree => "no further flagged node",
        _ => "no further row with samples",
    };
    go(state, row, otherwise);
}

/// Changes what the command stands for.
pub fn toggle(state: &mut State, command: Command) {
    match (command, state.screen()) {
        (Command::Freeze, _) => freeze(state),
        (Command::Output, _) if state.output.is_empty() => {
            state.message = Some("the command has written nothing, or none is measured".into());
        }
        (Command::Output, _) => {
            state.output.hidden = !state.output.hidden;
            drill::wrap_block(state);
        }
        (Command::Details, Screen::Block) => {
            state.block.verbose = !state.block.verbose;
            drill::wrap_block(state);
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
        (Command::Source, Screen::Blocks) => show_source(state),
        (Command::Source, _) => drill::toggle_source_lines(state),
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

fn show_source(state: &mut State) {
    state.blocks.source = !state.blocks.source;
    let mut lines = state.blocks.all().iter().flat_map(|b| &b.lines);
    if state.blocks.source && lines.all(|l| l.source.is_none()) {
        state.message = Some("no source lines: the program has no debug info (-g)".into());
    }
    state.blocks.rebuild();
}
