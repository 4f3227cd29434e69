//! The keys: dispatch, footer, `?` screen and docs/keys.md are all made from one table, and a config
//! file may give its actions other keys.

mod docs;
mod key;
mod table;

pub use docs::{markdown, template};
pub use key::Key;
pub use table::{Binding, KEYMAP};

use super::action::{Command, Edit};
use super::state::Screen;
use crossterm::event::{KeyCode, KeyEvent};
use std::collections::BTreeMap;
use tma::{Error, Result};

/// A row of the table with the keys that it has now.
#[derive(Debug, Clone)]
pub struct Bound {
    pub binding: &'static Binding,
    pub keys: Vec<Key>,
}

/// The keys as they are now.
#[derive(Debug, Clone)]
pub struct Keymap(Vec<Bound>);

impl Default for Keymap {
    fn default() -> Self {
        let bound = |binding: &'static Binding| Bound { binding, keys: binding.keys.to_vec() };
        Self(KEYMAP.iter().map(bound).collect())
    }
}

/// Actions without which one is lost.
const NEEDED: [Command; 2] = [Command::Quit, Command::Help];

impl Keymap {
    /// The table's keys, but for these actions, which have the ones given.
    ///
    /// # Errors
    /// An unknown action or key; a key with two meanings on one screen; no key that quits or helps.
    pub fn with(changes: &BTreeMap<String, Vec<String>>) -> Result<Self> {
        let mut map = Self::default();
        for (action, keys) in changes {
            let bound = map.0.iter_mut().find(|b| b.binding.name() == *action);
            let bound = bound.ok_or_else(|| unknown_action(action))?;
            let read = |text: &String| Key::parse(text).ok_or_else(|| unknown_key(action, text));
            bound.keys = keys.iter().map(read).collect::<Result<_>>()?;
            if bound.keys.is_empty() && NEEDED.contains(&bound.binding.command) {
                return Err(Error::usage(format!("keys.{action}: there must be a key for it"))
                    .hint("`[]` takes the keys from an action that one can do without"));
            }
        }
        map.check()?;
        Ok(map)
    }

    /// No key means two things on one screen.
    fn check(&self) -> Result<()> {
        for (i, one) in self.0.iter().enumerate() {
            for other in &self.0[i + 1..] {
                let screen = one.binding.screens.iter().find(|s| other.binding.screens.contains(s));
                let key = one.keys.iter().find(|k| other.keys.contains(k));
                if let (Some(screen), Some(key)) = (screen, key) {
                    let (a, b) = (one.binding.name(), other.binding.name());
                    let what = format!("the key {} means two things", key.name());
                    return Err(Error::usage(what)
                        .because(format!("keys.{a} and keys.{b}, both on the screen {screen:?}"))
                        .hint(format!("give one of them another key: {a} = [\"…\"]")));
                }
            }
        }
        Ok(())
    }

    /// What a key means on a screen.
    pub fn command(&self, event: KeyEvent, screen: Screen) -> Option<Command> {
        let pressed = Key::of(event)?;
        self.on(screen).find(|b| b.keys.contains(&pressed)).map(|b| b.binding.command)
    }

    /// The keys of a screen.
    pub fn on(&self, screen: Screen) -> impl Iterator<Item = &Bound> {
        self.0.iter().filter(move |b| b.binding.screens.contains(&screen) && !b.keys.is_empty())
    }

    /// The first key of an action, for messages.
    pub fn key(&self, command: Command) -> String {
        let bound = self.0.iter().find(|b| b.binding.command == command);
        bound.and_then(|b| b.keys.first()).map_or("(no key)".to_owned(), |k| k.name())
    }
}

impl Bound {
    /// All its keys, as `Enter, l, →`.
    pub fn names(&self) -> String {
        self.keys.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ")
    }
}

/// What a key means in a prompt.
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

fn unknown_action(name: &str) -> Error {
    let first = name.chars().next();
    let near: Vec<String> =
        KEYMAP.iter().map(Binding::name).filter(|n| n.chars().next() == first).collect();
    let hint = match near.is_empty() {
        true => "`tdtool keys --toml` lists the actions".to_owned(),
        false => format!("{}? `tdtool keys --toml` lists all", near.join(", ")),
    };
    Error::usage(format!("keys.{name}: there is no such action")).hint(hint)
}

fn unknown_key(action: &str, text: &str) -> Error {
    Error::usage(format!("keys.{action}: `{text}` is no key"))
        .hint("a letter or mark by itself, Ctrl-F, F1, Enter, Esc, Tab, Space, Backspace, Delete, Home, End, PageUp, PageDown, Left, Right, Up, Down")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyModifiers;

    fn with(changes: &[(&str, &[&str])]) -> Result<Keymap> {
        let own = |keys: &[&str]| keys.iter().map(|k| (*k).to_owned()).collect();
        Keymap::with(&changes.iter().map(|(a, keys)| ((*a).to_owned(), own(keys))).collect())
    }

    fn press(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
    }

    #[test]
    fn no_key_means_two_things_on_one_screen() {
        Keymap::default().check().expect("the table is free of conflicts");
    }

    #[test]
    fn escape_goes_back_and_never_quits() {
        let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        for screen in [Screen::Tree, Screen::Functions, Screen::Blocks, Screen::Block] {
            assert_eq!(Keymap::default().command(escape, screen), Some(Command::Back));
        }
    }

    #[test]
    fn an_action_gets_other_keys_and_loses_its_old_ones() {
        let map = with(&[("down", &["x", "Down"]), ("again", &[])]).expect("a keymap");
        assert_eq!(map.command(press('x'), Screen::Tree), Some(Command::Down));
        assert_eq!(map.command(press('j'), Screen::Tree), None);
        assert_eq!(map.command(press('r'), Screen::Block), None);
    }

    #[test]
    fn what_cannot_be_is_told_by_its_name() {
        let said = |changes: &[(&str, &[&str])]| {
            let error = with(changes).expect_err("an error");
            format!(
                "{} {} {}",
                error.what(),
                error.cause().unwrap_or(""),
                error.remedy().unwrap_or("")
            )
        };
        let conflict = said(&[("down", &["q"])]);
        assert!(
            conflict.contains("key q") && conflict.contains("keys.down and keys.quit"),
            "{conflict}"
        );
        assert!(said(&[("dwn", &["x"])]).contains("keys.dwn: there is no such action"));
        assert!(said(&[("dwn", &["x"])]).contains("down, "), "names that are near are told");
        assert!(said(&[("down", &["xyz"])]).contains("`xyz` is no key"));
        assert!(said(&[("quit", &[])]).contains("there must be a key"));
    }
}
