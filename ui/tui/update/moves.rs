//! Moving, folding, ordering, and what the toggles do.

use crate::tui::action::{Command, Effect};
use crate::tui::state::{Screen, State};
use crate::tui::view::layout;

/// Keys while the `?` screen is open. `false`: the key keeps its usual meaning.
pub fn help(state: &mut State, command: Command) -> bool {
    let Some(top) = &mut state.help else { return false };
    let page = usize::from(state.size.1).max(2) / 2;
    match command {
        Command::Up => *top = top.saturating_sub(1),
        Command::Down => *top = top.saturating_add(1),
        Command::PageUp | Command::HalfUp => *top = top.saturating_sub(page),
        Command::PageDown | Command::HalfDown => *top = top.saturating_add(page),
        Command::Top => *top = 0,
        Command::Bottom => *top = usize::MAX,
        Command::Redraw | Command::Suspend | Command::Quit => return false,
        _ => state.help = None,
    }
    true
}

/// What is left of the commands.
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
        Command::Details => {
            let shown = layout(state).pane.height > 0;
            state.tree.details = Some(!shown);
            state.tree.details_top = 0;
        }
        Command::NextPart => state.tree.next_part(),
        other => toggle(state, other),
    }
}

fn toggle(state: &mut State, command: Command) {
    match (command, state.screen()) {
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
        (Command::Source, Screen::Blocks) => {
            state.blocks.source = !state.blocks.source;
            let known = state.blocks.all().iter().flat_map(|b| &b.lines);
            if state.blocks.source && known.clone().all(|l| l.source.is_none()) {
                state.message = Some("no source lines are known: built without -g?".into());
            }
            state.blocks.rebuild();
        }
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

/// Another node's details begin at their first line.
pub fn moved(state: &mut State) {
    if state.screen() == Screen::Tree {
        state.tree.details_top = 0;
    }
}

fn fold(state: &mut State, open: Option<bool>) {
    match state.screen() {
        Screen::Tree if !state.tree.fold(open) => {
            state.message = Some("nothing below this node".into());
        }
        Screen::Blocks => state.blocks.fold(open),
        _ => {}
    }
}

fn fold_all(state: &mut State, open: bool) {
    match state.screen() {
        Screen::Tree => state.tree.fold_all(open),
        Screen::Blocks => state.blocks.fold_all(open),
        _ => {}
    }
}

fn hottest(state: &mut State) {
    let (row, otherwise) = match state.screen() {
        Screen::Tree => (state.tree.hottest(), "no node is flagged"),
        Screen::Functions => (state.functions.hottest(), "no function has samples"),
        Screen::Blocks => (state.blocks.hottest(), "no instruction that is shown has samples"),
        Screen::Block => (None, ""),
    };
    go(state, row, otherwise);
}

fn next_hot(state: &mut State, forward: bool) {
    let row = match state.screen() {
        Screen::Tree => state.tree.next_hot(forward),
        Screen::Functions => state.functions.next_hot(forward),
        Screen::Blocks => state.blocks.next_hot(forward),
        Screen::Block => None,
    };
    go(state, row, "no other one");
}

/// Another function of the list, without going back to it.
pub fn symbol(state: &mut State, by: isize, effects: &mut Vec<Effect>) {
    let next = state.functions.list.at.checked_add_signed(by);
    let next = next.and_then(|row| Some((row, *state.functions.rows.get(row)?)));
    match next {
        Some((row, index)) => {
            state.functions.list.to(row);
            super::open_function(state, index, effects);
        }
        None => state.message = Some("no other function in the list".into()),
    }
}
