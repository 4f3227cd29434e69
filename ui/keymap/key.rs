//! A key as terminals send it and as people write it, and the keys of a prompt.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, with or without Ctrl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub code: KeyCode,
    pub ctrl: bool,
}

/// Names of keys in a config file; of several for a key, the first is shown.
const NAMED: &[(&str, KeyCode)] = &[
    ("Space", KeyCode::Char(' ')),
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Tab", KeyCode::Tab),
    ("BackTab", KeyCode::BackTab),
    ("Backspace", KeyCode::Backspace),
    ("Delete", KeyCode::Delete),
    ("Insert", KeyCode::Insert),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("PageUp", KeyCode::PageUp),
    ("PageDown", KeyCode::PageDown),
    ("←", KeyCode::Left),
    ("→", KeyCode::Right),
    ("↑", KeyCode::Up),
    ("↓", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
];

impl Key {
    /// The key of an event; `None` with Alt, Super or Meta.
    pub fn of(event: KeyEvent) -> Option<Self> {
        let other = KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META;
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        (!event.modifiers.intersects(other)).then_some(Self { code: event.code, ctrl })
    }

    /// Its name.
    pub fn name(self) -> String {
        let named = NAMED.iter().find(|(_, code)| *code == self.code).map(|(name, _)| *name);
        let name = match (named, self.code) {
            (Some(name), _) => name.to_owned(),
            // With Ctrl, terminals send the same code for both cases.
            (_, KeyCode::Char(c)) if self.ctrl => c.to_ascii_uppercase().to_string(),
            (_, KeyCode::Char(c)) => c.to_string(),
            (_, KeyCode::F(n)) => format!("F{n}"),
            (_, other) => other.to_string(),
        };
        if self.ctrl { format!("Ctrl-{name}") } else { name }
    }

    /// The key with a name: `j`, `Ctrl-F`, `PageDown`, `F1`, `Space`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut letters = text.chars();
        if let (Some(c), None) = (letters.next(), letters.next()) {
            let arrow = NAMED.iter().find(|(name, _)| *name == text);
            let code = arrow.map_or(KeyCode::Char(c), |(_, code)| *code);
            return (!c.is_control()).then_some(Self { code, ctrl: false });
        }
        if let Some(rest) = text.get(..5).filter(|h| h.eq_ignore_ascii_case("ctrl-")) {
            let key = Self::parse(text.get(rest.len()..)?)?;
            let code = match key.code {
                KeyCode::Char(c) => KeyCode::Char(c.to_ascii_lowercase()),
                other => other,
            };
            return (!key.ctrl).then_some(Self { code, ctrl: true });
        }
        let named = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let function = || {
            let number = text.strip_prefix(['F', 'f'])?.parse().ok();
            number.filter(|n| (1..=24).contains(n)).map(KeyCode::F)
        };
        let code = named.map(|(_, code)| *code).or_else(function)?;
        Some(Self { code, ctrl: false })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for text in ["j", "G", "?", "Ctrl-F", "F1", "PageDown", "Space", "←", "-", "Ctrl-Space"] {
            assert_eq!(Key::parse(text).expect(text).name(), text);
        }
        assert_eq!(Key::parse("left"), Key::parse("←"), "a config file may be ASCII");
        assert_eq!(Key::parse("ctrl-f"), Key::parse("Ctrl-F"));
        for bad in ["", "jj", "Ctrl-", "Ctrl-Ctrl-a", "F99", "Meta-x", "\n"] {
            assert_eq!(Key::parse(bad), None, "{bad:?}");
        }
    }
}
