//! Copying what the cursor is on, and saving the screen.

use crate::tui::action::{Command, Effect};
use crate::tui::state::{Ask, BlockRow, Prompt, Screen, State};
use crate::tui::view;
use engine::documents::report_code::{BlockRow as BlockDocument, FunctionRow, Sampled};
use engine::documents::{Report, Source};
use std::path::PathBuf;

/// What is copied at most: terminals take no more (xterm, kitty and tmux differ; this is below all).
const LONGEST: usize = 64 << 10;

/// Copies what the cursor is on.
pub fn copy(state: &mut State, effects: &mut Vec<Effect>) {
    let Some((what, text)) = selected(state) else {
        state.message = Some("there is nothing here to copy".into());
        return;
    };
    if text.len() > LONGEST {
        state.message = Some(format!(
            "{what} is too long for the clipboard: save it with {}",
            state.keys.key(Command::Export)
        ));
        return;
    }
    state.message = Some(format!("copied {what}, if the terminal allows it (OSC 52): {text}"));
    effects.push(Effect::Copy(text));
}

fn selected(state: &State) -> Option<(&'static str, String)> {
    match state.screen() {
        Screen::Tree => state.tree.node(state.tree.list.at).map(|n| ("the node", n.id.clone())),
        Screen::Functions => {
            let function = state.functions.row(state.functions.list.at);
            function.map(|f| ("the function", f.name.clone()))
        }
        Screen::Blocks => {
            let row = state.blocks.list.at;
            let block = state.blocks.block(row)?;
            match (state.blocks.rows.get(row)?, state.blocks.line(row)) {
                (BlockRow::Line(..), Some(line)) => {
                    Some(("the address", format!("{:#x}", line.address)))
                }
                (BlockRow::Source(_, i), _) => {
                    let (file, line) = block.lines.get(*i)?.source.as_ref()?;
                    Some(("the place", format!("{file}:{line}")))
                }
                _ => Some(("the block", hex(block.lines.iter().flat_map(|l| &l.bytes)))),
            }
        }
        Screen::Block if state.block.bytes.is_empty() => None,
        Screen::Block => Some(("the block", hex(state.block.bytes.iter()))),
    }
}

fn hex<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes.map(|b| format!("{b:02x}")).collect()
}

/// Asks where to; `text` is there to begin with.
pub fn ask(state: &mut State, text: Option<String>) {
    let screen = match state.screen() {
        Screen::Tree => "tree",
        Screen::Functions => "functions",
        Screen::Blocks => "blocks",
        Screen::Block => "block",
    };
    let text = text.unwrap_or_else(|| format!("tdtool-{screen}.txt"));
    let row = state.list().at;
    state.prompt = Some(Prompt { ask: Ask::Export, text, row, before: String::new() });
}

/// Saves the screen: as JSON where the name ends so, else as text.
pub fn save(state: &mut State, name: &str, effects: &mut Vec<Effect>) {
    let name = name.trim();
    if name.is_empty() {
        state.message = Some("nothing was saved: no name".into());
        return;
    }
    let path = PathBuf::from(name);
    let is_json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let content = if is_json { document(state) } else { Some(view::text(state)) };
    match content {
        Some(content) => effects.push(Effect::Save(path, content)),
        None => state.message = Some("there is no document here yet".into()),
    }
}

/// What the screen shows, as `tdtool report --format json` and `tdtool block --format json` have it.
fn document(state: &State) -> Option<String> {
    if state.screen() == Screen::Block {
        let crate::tui::state::Job::Done(report) = &state.block.job else { return None };
        return json(report);
    }
    let mut report = match &state.tree.report {
        Some(report) => (**report).clone(),
        None => Report::new(Source::Imported),
    };
    if let Some(hot) = state.functions.data.ready() {
        report.sampled = Some(Sampled {
            event: hot.event.clone(),
            skid: hot.skid.explain().to_owned(),
            samples: hot.samples,
            lost: hot.lost,
            notes: hot.notes.clone(),
        });
        let shown = state.functions.rows.iter().filter_map(|i| hot.functions.get(*i));
        report.functions = shown.map(FunctionRow::from).collect();
    }
    if state.screen() == Screen::Blocks {
        let annotated = state.blocks.data.ready()?;
        let blocks = annotated.blocks.iter();
        report.blocks = blocks.map(|b| BlockDocument::new(&b.block, &annotated.function)).collect();
    }
    (state.screen() != Screen::Tree || state.tree.report.is_some()).then(|| json(&report))?
}

fn json(document: &impl serde::Serialize) -> Option<String> {
    crate::commands::to_json(document).ok()
}
