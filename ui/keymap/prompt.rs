//! The keys of a prompt, which a config file cannot change.

use super::key::Key;
use crossterm::event::{KeyCode, KeyEvent};

/// A keystroke in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    Insert(char),
    Erase,
    EraseWord,
    EraseAll,
    Accept,
    Abort,
}

/// Edit by a key in a prompt.
pub fn edit(event: KeyEvent) -> Option<Edit> {
    let pressed = Key::of(event)?;
    Some(match (pressed.code, pressed.ctrl) {
        (KeyCode::Enter, _) => Edit::Accept,
        (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), true) => Edit::Abort,
        (KeyCode::Backspace, _) | (KeyCode::Char('h'), true) => Edit::Erase,
        (KeyCode::Char('w'), true) => Edit::EraseWord,
        (KeyCode::Char('u'), true) => Edit::EraseAll,
        (KeyCode::Char(c), false) => Edit::Insert(c),
        _ => return None,
    })
}
