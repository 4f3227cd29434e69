//! The prompt: search and filter take effect with every keystroke.

use super::moves::moved;
use super::{samples, save};
use crate::keymap::{Command, Edit};
use crate::tui::action::Effect;
use crate::tui::state::{Ask, Prompt, State, Wanted};

/// Maximum length of the text in characters.
const LONGEST: usize = 200;

/// Opens the prompt.
pub fn open(state: &mut State, command: Command) {
    let row = state.list().at;
    let (ask, text, before) = match command {
        Command::Thread => {
            (Ask::Thread, state.functions.samples_of.threads.join(" "), String::new())
        }
        Command::Filter => (Ask::Filter, state.filter().to_owned(), state.filter().to_owned()),
        _ => (Ask::Search, String::new(), state.search.clone()),
    };
    state.prompt = Some(Prompt { ask, text, row, before });
}

/// Applies a keystroke.
pub fn edit(state: &mut State, edit: Edit, effects: &mut Vec<Effect>) {
    let Some(mut prompt) = state.prompt.take() else { return };
    match edit {
        Edit::Accept => return accept(state, &prompt, effects),
        Edit::Abort => return abort(state, &prompt),
        Edit::Erase if prompt.text.is_empty() => return abort(state, &prompt),
        Edit::Erase => {
            prompt.text.pop();
        }
        Edit::EraseAll => prompt.text.clear(),
        Edit::EraseWord => {
            let end = prompt.text.trim_end().rfind(' ').map_or(0, |i| i + 1);
            prompt.text.truncate(end);
        }
        Edit::Insert(c) if prompt.text.chars().count() < LONGEST && !c.is_control() => {
            prompt.text.push(c);
        }
        Edit::Insert(_) => {}
    }
    match prompt.ask {
        Ask::Filter => state.set_filter(&prompt.text),
        Ask::Thread | Ask::Export | Ask::Evidence => {}
        Ask::Search => {
            let row = find(state, &prompt.text, prompt.row, true, true).unwrap_or(prompt.row);
            state.list_mut().to(row);
            moved(state);
        }
    }
    state.prompt = Some(prompt);
}

fn accept(state: &mut State, prompt: &Prompt, effects: &mut Vec<Effect>) {
    match prompt.ask {
        Ask::Filter => return,
        Ask::Thread => return samples::of_thread(state, &prompt.text, effects),
        Ask::Export => return save::save(state, &prompt.text, effects),
        Ask::Evidence => return save::save_evidence(state, &prompt.text, effects),
        Ask::Search => {}
    }
    // An empty text repeats the last search.
    if !prompt.text.is_empty() {
        state.search.clone_from(&prompt.text);
        if find(state, &prompt.text, prompt.row, true, true).is_none() {
            state.message = Some(format!("not found: {}", prompt.text));
        }
    } else {
        next_match(state, true);
    }
}

fn abort(state: &mut State, prompt: &Prompt) {
    match prompt.ask {
        Ask::Thread | Ask::Export | Ask::Evidence => {}
        Ask::Filter => state.set_filter(&prompt.before),
        Ask::Search => {
            state.list_mut().to(prompt.row);
            moved(state);
        }
    }
}

/// Goes to the next row that matches the last search, wrapping around.
pub fn next_match(state: &mut State, forward: bool) {
    if state.search.is_empty() {
        let key = state.keys.key(Command::Search);
        state.message = Some(format!("no search yet; {key} searches"));
        return;
    }
    let wanted = state.search.clone();
    match find(state, &wanted, state.list().at, forward, false) {
        Some(row) => {
            state.list_mut().to(row);
            moved(state);
        }
        None => state.message = Some(format!("not found: {wanted}")),
    }
}

/// The first matching row from row `from`, which is included if `here`.
fn find(state: &State, wanted: &str, from: usize, forward: bool, here: bool) -> Option<usize> {
    let rows = state.list().rows;
    if rows == 0 || wanted.is_empty() {
        return None;
    }
    let first = usize::from(!here);
    let mut order = (first..=rows).map(|step| {
        let step = step % rows;
        if forward { (from + step) % rows } else { (from + rows - step) % rows }
    });
    let wanted = Wanted::new(wanted);
    order.find(|&row| state.row_matches(row, &wanted))
}
