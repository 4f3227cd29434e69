//! Handles the prompt: search and filter take effect with every keystroke. Copies the text at the cursor, and saves
//! the screen.

use super::moves::moved;
use super::samples;
use crate::keymap::{Command, Edit, Screen};
use crate::tui::action::Effect;
use crate::tui::state::{Ask, BlockRow, Job, Prompt, State, Wanted};
use crate::tui::view;
use report::documents::report_file::{self, Functions};
use report::render::json;
use std::path::PathBuf;

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
        Ask::Export => return save(state, &prompt.text, effects),
        Ask::Evidence => return save_evidence(state, &prompt.text, effects),
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

/// Maximum bytes to copy: less than the limits of xterm, kitty and tmux.
const LONGEST_COPY: usize = 64 << 10;

/// Copies what is at the cursor.
pub fn copy(state: &mut State, effects: &mut Vec<Effect>) {
    let Some((what, text)) = selected(state) else {
        state.message = Some("there is nothing to copy here".into());
        return;
    };
    if text.len() > LONGEST_COPY {
        let export = state.keys.key(Command::Export);
        let why = format!("{what} is too long for the clipboard; {export} saves the screen");
        state.message = Some(why);
        return;
    }
    state.message = Some(format!("copied {what}, if the terminal supports OSC 52: {text}"));
    effects.push(Effect::Copy(text));
}

fn selected(state: &State) -> Option<(&'static str, String)> {
    match state.screen() {
        Screen::Tree => state.tree.selected().map(|n| ("the node", n.id.to_string())),
        Screen::Functions => {
            let function = state.functions.row(state.functions.list.at);
            function.map(|f| ("the function", f.name.clone()))
        }
        Screen::Blocks => selected_code(state),
        Screen::EstimatedFunctions => {
            let function = state.estimate.function_at(state.estimate.functions.list.at);
            function.map(|f| ("the function", f.name.clone()))
        }
        Screen::EstimatedCode => {
            let piece = state.estimate.piece_at(state.estimate.code.list.at);
            piece.and_then(|(_, row)| Some(("the address", row.start?.to_string())))
        }
        Screen::EstimatedBlock => {
            let row = state.estimate.shown()?;
            let bytes: String = row.code.iter().map(|one| one.bytes.as_str()).collect();
            (!bytes.is_empty()).then_some(("the block", bytes))
        }
        Screen::Comparison | Screen::ComparedCode => {
            let screen = state.screen();
            let (_, row) = state.comparison.row(screen, state.comparison.rows(screen).list.at)?;
            match row.start.iter().flatten().next().filter(|_| screen == Screen::ComparedCode) {
                Some(start) => Some(("the address", start.to_string())),
                None => Some(("the function", row.time.id.clone())),
            }
        }
        Screen::Estimate | Screen::EstimatedSource | Screen::Intervals => None,
        Screen::Calls => {
            let row = state.calls.row(state.calls.list.at)?;
            Some(("the function", row.function().name.clone()))
        }
        Screen::Block if state.block.shown.bytes.is_empty() => None,
        Screen::Block => Some(("the block", hex(state.block.shown.bytes.iter()))),
    }
}

fn selected_code(state: &State) -> Option<(&'static str, String)> {
    let row = state.blocks.list.at;
    let block = state.blocks.block(row)?;
    match (state.blocks.rows.get(row)?, state.blocks.line(row)) {
        (BlockRow::Line(..), Some(line)) => Some(("the address", format!("{:#x}", line.address))),
        (BlockRow::Source(_, i), _) => {
            let (file, line) = block.lines.get(*i)?.source.as_ref()?;
            Some(("the source line", format!("{file}:{line}")))
        }
        _ => Some(("the block", hex(block.lines.iter().flat_map(|l| &l.bytes)))),
    }
}

fn hex<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes.map(|b| format!("{b:02x}")).collect()
}

/// Asks for the file to save the screen in.
pub fn ask_screen(state: &mut State) {
    let text = format!("tdtool-{}.txt", state.screen());
    let row = state.list().at;
    state.prompt = Some(Prompt { ask: Ask::Export, text, row, before: String::new() });
}

/// Saves the screen: as JSON if the name ends in `.json`, else as text.
pub fn save(state: &mut State, name: &str, effects: &mut Vec<Effect>) {
    let name = name.trim();
    if name.is_empty() {
        state.message = Some("not saved: the name is empty".into());
        return;
    }
    let path = PathBuf::from(name);
    let is_json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let content = if is_json { document(state) } else { Some(view::text(state)) };
    match content {
        Some(content) => effects.push(Effect::Save(path, content)),
        None => state.message = Some("not saved: there is no document yet".into()),
    }
}

/// Asks for the file to save the evidence in.
pub fn ask_evidence(state: &mut State) {
    if state.estimate.evidence.is_none() {
        let why = "no evidence yet: it is complete with the estimate, and not in finished reports";
        state.message = Some(why.to_owned());
        return;
    }
    let text = "tdtool-evidence.json".to_owned();
    let row = state.list().at;
    state.prompt = Some(Prompt { ask: Ask::Evidence, text, row, before: String::new() });
}

/// Saves the evidence.
pub fn save_evidence(state: &mut State, name: &str, effects: &mut Vec<Effect>) {
    match (name.trim(), &state.estimate.evidence) {
        ("", _) => state.message = Some("not saved: the name is empty".into()),
        (name, Some(text)) => effects.push(Effect::Save(PathBuf::from(name), text.clone())),
        _ => {}
    }
}

/// Document of the screen, as `tdtool report --format json` and `tdtool block --format json` write it.
fn document(state: &State) -> Option<String> {
    if state.screen() == Screen::Block {
        let Job::Done(report) = &state.block.job else { return None };
        return json::pretty(report).ok();
    }
    if state.screen().is_comparison() {
        return json::pretty(state.comparison.data.ready()?.as_ref()).ok();
    }
    if state.screen() == Screen::Tree && state.tree.report.is_none() {
        return None;
    }
    let blocks = match state.screen() {
        Screen::Blocks => Some(state.blocks.data.ready()?),
        _ => None,
    };
    let shown = &state.functions.rows;
    let functions = state.functions.data.ready().map(|all| Functions { all, shown });
    let mut document = report_file::document(state.tree.report.as_deref(), functions, blocks);
    document.estimate = state.estimate.document.as_deref().cloned();
    json::pretty(&document).ok()
}
