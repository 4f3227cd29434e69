//! Copying what is at the cursor, and saving the screen.

use crate::keymap::{Command, Screen};
use crate::tui::action::Effect;
use crate::tui::state::{Ask, BlockRow, Job, Prompt, State};
use crate::tui::view;
use report::documents::report_file::{self, Functions};
use report::render::json;
use std::path::PathBuf;

/// Maximum bytes to copy: less than the limits of xterm, kitty and tmux.
const LONGEST: usize = 64 << 10;

/// Copies what is at the cursor.
pub fn copy(state: &mut State, effects: &mut Vec<Effect>) {
    let Some((what, text)) = selected(state) else {
        state.message = Some("there is nothing to copy here".into());
        return;
    };
    if text.len() > LONGEST {
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
        Screen::Estimate => None,
        Screen::EstimatedFunctions => {
            let function = state.estimate.function_at(state.estimate.functions.list.at);
            function.map(|f| ("the function", f.name.clone()))
        }
        Screen::EstimatedCode => {
            let piece = state.estimate.piece_at(state.estimate.code.list.at);
            piece.and_then(|(_, row)| Some(("the address", row.start?.to_string())))
        }
        Screen::EstimatedSource => None,
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
        Screen::Intervals => None,
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
pub fn ask(state: &mut State) {
    let text = format!("tdtool-{}.txt", state.screen().name());
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
