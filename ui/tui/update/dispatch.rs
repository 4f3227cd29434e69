//! What happens to the state: `update` and nothing else changes it. Pure: no clock, no files, no
//! terminal; what has to be done outside comes back as effects.

mod moves;
mod prompt;
mod samples;
mod save;

pub use samples::name as thread_name;

use super::action::{Action, Command, Effect};
use super::state::{Job, Load, Progress, Screen, State};
use super::view::layout;

/// Takes an action; what comes back has to be done.
pub fn update(state: &mut State, action: Action) -> Vec<Effect> {
    let mut effects = Vec::new();
    match action {
        Action::Command(command) => {
            state.message = None;
            act(state, command, &mut effects);
        }
        Action::Edit(edit) => prompt::edit(state, edit, &mut effects),
        Action::Resize(columns, rows) => {
            state.size = (columns, rows);
            wrap_block(state);
        }
        other => arrived(state, other, &mut effects),
    }
    settle(state);
    effects
}

/// Results of what runs in the background.
fn arrived(state: &mut State, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::Explained(explanations) => state.tree.explanations = explanations,
        Action::Measuring => state.tree.progress = Progress::Measuring(0),
        Action::Interval(report) => {
            if let Progress::Measuring(intervals) = &mut state.tree.progress {
                *intervals += 1;
            }
            state.tree.remember(&report);
            state.tree.fill(report, state.frozen);
        }
        Action::Report(report) => {
            state.tree.progress = Progress::Done;
            state.tree.fill(report, state.frozen);
        }
        Action::NoReport(why) => state.tree.progress = Progress::Failed(why),
        Action::Functions(hot) => {
            let first = state.functions.data.ready().is_none();
            state.functions.fill(*hot, state.frozen);
            // Samples and no counts: their screen is the one to begin with.
            let nothing = state.tree.report.as_ref().is_none_or(|r| r.nodes.is_empty());
            if first && nothing && state.path == [Screen::Tree] {
                state.path.push(Screen::Functions);
            }
        }
        Action::NoFunctions(why) => {
            state.functions.data = Load::Missing(why);
            state.functions.rebuild();
        }
        Action::Threads(threads) => state.functions.threads = threads,
        Action::Saved(path, Ok(())) => {
            state.message = Some(format!("saved in {}", path.display()));
        }
        Action::Saved(path, Err(why)) => {
            state.message = Some(format!("not saved in {}: {why}", path.display()));
        }
        Action::Annotated(index, annotated, texts) => {
            if state.blocks.index == Some(index) {
                state.blocks.fill(*annotated, texts);
            }
        }
        Action::NotAnnotated(index, why) => {
            if state.blocks.index == Some(index) {
                state.blocks.data = Load::Missing(why);
            }
        }
        Action::Progress(id, seconds, passes) => {
            if id == state.block.id && state.block.is_running() {
                state.block.job = Job::Running(seconds, passes);
                wrap_block(state);
            }
        }
        Action::Measured(id, result) => {
            if id == state.block.id && state.block.is_running() {
                state.block.end(result);
                wrap_block(state);
            }
        }
        Action::Command(_) | Action::Edit(_) | Action::Resize(..) => {}
    }
    let _ = effects;
}

fn act(state: &mut State, command: Command, effects: &mut Vec<Effect>) {
    if state.help.is_some() && moves::help(state, command) {
        return;
    }
    match command {
        Command::Quit => effects.push(Effect::Quit),
        Command::Suspend => effects.push(Effect::Suspend),
        Command::Redraw => effects.push(Effect::Redraw),
        Command::Help => state.help = Some(0),
        Command::Drill => drill(state, effects),
        Command::Back => back(state, effects),
        Command::NextSymbol => moves::symbol(state, 1, effects),
        Command::PreviousSymbol => moves::symbol(state, -1, effects),
        Command::Search | Command::Filter => prompt::open(state, command),
        Command::NextMatch => prompt::next_match(state, true),
        Command::PreviousMatch => prompt::next_match(state, false),
        Command::Freeze => freeze(state),
        Command::Thread => prompt::open(state, command),
        Command::Module => samples::only_module(state),
        Command::NextEvent => samples::next_event(state, effects),
        Command::Copy => save::copy(state, effects),
        Command::Export => save::ask(state, None),
        Command::Again if !state.block.bytes.is_empty() => {
            if state.block.is_running() {
                effects.push(Effect::Cancel(state.block.id));
            }
            let id = state.block.start();
            wrap_block(state);
            effects.push(Effect::Measure(id, state.block.bytes.clone()));
        }
        Command::Cancel => cancel(state, effects),
        other => moves::act(state, other),
    }
}

/// One level down.
fn drill(state: &mut State, effects: &mut Vec<Effect>) {
    match state.screen() {
        Screen::Tree => state.path.push(Screen::Functions),
        Screen::Functions => {
            if let Some(&index) = state.functions.rows.get(state.functions.list.at) {
                state.path.push(Screen::Blocks);
                open_function(state, index, effects);
            }
        }
        Screen::Blocks => open_block(state, effects),
        Screen::Block => {}
    }
}

/// Shows a function; one that is shown already is as it was left.
fn open_function(state: &mut State, index: usize, effects: &mut Vec<Effect>) {
    let there = !matches!(state.blocks.data, Load::Missing(_));
    if state.blocks.index == Some(index) && there {
        return;
    }
    state.blocks.open(index);
    let gap = state.functions.all().get(index).and_then(|f| f.gap.clone());
    match gap {
        Some(why) => state.blocks.data = Load::Missing(why),
        None => effects.push(Effect::Annotate(index)),
    }
}

/// Shows the block of the cursor's row, measured; measures it if need be.
fn open_block(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(block) = state.blocks.block(state.blocks.list.at) else { return };
    let bytes = block.lines.iter().flat_map(|l| l.bytes.iter().copied()).collect();
    let code = block.lines.iter().map(|l| l.text.clone()).collect();
    let title = format!("block {:#x}", block.block.start);
    state.path.push(Screen::Block);
    show_block(state, title, bytes, code, effects);
}

/// Shows bytes as a block.
pub fn show_block(
    state: &mut State,
    title: String,
    bytes: Vec<u8>,
    code: Vec<String>,
    effects: &mut Vec<Effect>,
) {
    if state.block.is_running() {
        effects.push(Effect::Cancel(state.block.id));
    }
    let measure = state.block.open(title, bytes, code);
    wrap_block(state);
    if let Some(id) = measure {
        effects.push(Effect::Measure(id, state.block.bytes.clone()));
    }
}

/// One level up, to where the cursor was.
fn back(state: &mut State, effects: &mut Vec<Effect>) {
    if state.path.len() == 1 {
        state.message =
            Some(format!("this is the first screen; {} quits", state.keys.key(Command::Quit)));
        return;
    }
    if state.screen() == Screen::Block {
        cancel(state, effects);
        state.message = None;
    }
    state.path.pop();
}

fn cancel(state: &mut State, effects: &mut Vec<Effect>) {
    if state.block.is_running() {
        effects.push(Effect::Cancel(state.block.id));
        state.block.job = Job::Cancelled;
        wrap_block(state);
    } else {
        state.message = Some("nothing is being measured".into());
    }
}

fn freeze(state: &mut State) {
    state.frozen = !state.frozen;
    if !state.frozen {
        state.tree.thaw();
        state.functions.thaw();
    }
}

fn wrap_block(state: &mut State) {
    state.block.wrap(usize::from(layout(state).list.width));
}

/// Brings cursors and scrolled text back into what is there.
fn settle(state: &mut State) {
    let height = usize::from(layout(state).list.height);
    state.list_mut().settle(height);
    super::view::clamp_scrolls(state);
}
