//! Tests of the drill-down without a terminal: journeys on `update`, snapshots of every screen, random actions.
//! This file has keys as a user types them, results as they arrive, and the screen as text.

mod calls;
mod choices;
mod comparison;
mod estimated;
mod estimated_example;
pub mod example;
mod intervals;
mod journeys;
mod pictures;
mod random;

use super::action::{Action, BackgroundResult, Effect};
use super::events;
use super::state::State;
use super::update::update;
use super::view::view;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use example::annotated;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::collections::HashMap;

/// Puts a result from the background into the state.
pub fn arrives(state: &mut State, result: BackgroundResult) -> Vec<Effect> {
    update(state, Action::Background(result))
}

/// Types keys, one per word: `j`, `Enter`, `Esc`; `/mem` types its letters. Requests for code are
/// answered with the example's. Returns the other effects.
pub fn types(state: &mut State, keys: &str) -> Vec<Effect> {
    let mut asked = Vec::new();
    for word in keys.split(' ').filter(|w| !w.is_empty()) {
        let code = match word {
            "Enter" => Some(KeyCode::Enter),
            "Esc" => Some(KeyCode::Esc),
            "Space" => Some(KeyCode::Char(' ')),
            "Tab" => Some(KeyCode::Tab),
            "PageDown" => Some(KeyCode::PageDown),
            _ => None,
        };
        let codes = match code {
            Some(code) => vec![code],
            None => word.chars().map(KeyCode::Char).collect(),
        };
        for code in codes {
            let event = Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
            let Some(action) = events::action(&event, state) else { continue };
            for effect in update(state, action) {
                match effect {
                    Effect::Annotate(index) => {
                        let mut code = Box::new(annotated());
                        if let Some(function) = state.functions.all().get(index) {
                            code.function = function.clone();
                        }
                        let texts = HashMap::from([(
                            ("/src/matmul.c".to_owned(), 21),
                            "sum += a[i][k] * b[k][j];".to_owned(),
                        )]);
                        arrives(state, BackgroundResult::Annotated(index, code, texts));
                    }
                    other => asked.push(other),
                }
            }
        }
    }
    asked
}

/// The screen as text, without blanks at the end of lines.
pub fn picture(state: &State) -> String {
    let (columns, rows) = state.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal.draw(|frame| view(state, frame)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..rows {
        let line: String = (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Compares a text with `ui/tui/tests/snapshots/NAME.snap`. After an intended change: `INSTA_UPDATE=always cargo test`,
/// then review the difference.
pub fn assert_shown(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/ui/tui/tests/snapshots"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Compares the screen, as [`assert_shown`].
pub fn assert_shows(name: &str, state: &State) {
    assert_shown(name, &picture(state));
}
