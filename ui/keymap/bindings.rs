//! The keys as configured: the table's, with the changes of a config file.

use super::command::{Command, Screen};
use super::key::Key;
use super::table::{Binding, KEYMAP};
use crossterm::event::KeyEvent;
use std::collections::BTreeMap;
use tma::{Error, Result};

/// A row of the table with its keys as configured.
#[derive(Debug, Clone)]
pub struct Bound {
    pub binding: &'static Binding,
    pub keys: Vec<Key>,
}

/// All keys as configured.
#[derive(Debug, Clone)]
pub struct Keymap(Vec<Bound>);

impl Default for Keymap {
    fn default() -> Self {
        let bound = |binding: &'static Binding| Bound { binding, keys: binding.keys.to_vec() };
        Self(KEYMAP.iter().map(bound).collect())
    }
}

/// Commands that must have a key.
const REQUIRED: [Command; 2] = [Command::Quit, Command::Help];

impl Keymap {
    /// The table's keys with `changes`: command names and their new keys.
    ///
    /// # Errors
    /// An unknown command or key; a key bound twice on a screen; no key that quits or shows help.
    pub fn with(changes: &BTreeMap<String, Vec<String>>) -> Result<Self> {
        let mut map = Self::default();
        for (name, keys) in changes {
            let bound = map.0.iter_mut().find(|b| b.binding.name() == *name);
            let bound = bound.ok_or_else(|| unknown_command(name))?;
            let read = |text: &String| Key::parse(text).ok_or_else(|| unknown_key(name, text));
            bound.keys = keys.iter().map(read).collect::<Result<_>>()?;
            if bound.keys.is_empty() && REQUIRED.contains(&bound.binding.command) {
                return Err(Error::usage(format!("keys.{name}: this action needs a key"))
                    .hint("`[]` is possible for all actions except quit and help"));
            }
        }
        map.check()?;
        Ok(map)
    }

    /// Refuses a key with two meanings on a screen.
    fn check(&self) -> Result<()> {
        for (i, one) in self.0.iter().enumerate() {
            for other in &self.0[i + 1..] {
                let screen = one.binding.screens.iter().find(|s| other.binding.screens.contains(s));
                let key = one.keys.iter().find(|k| other.keys.contains(k));
                if let (Some(screen), Some(key)) = (screen, key) {
                    return Err(bound_twice(*screen, *key, one.binding, other.binding));
                }
            }
        }
        Ok(())
    }

    /// Command of a key on a screen.
    pub fn command(&self, event: KeyEvent, screen: Screen) -> Option<Command> {
        let pressed = Key::of(event)?;
        self.on(screen).find(|b| b.keys.contains(&pressed)).map(|b| b.binding.command)
    }

    /// The keys of a screen.
    pub fn on(&self, screen: Screen) -> impl Iterator<Item = &Bound> {
        self.0.iter().filter(move |b| b.binding.screens.contains(&screen) && !b.keys.is_empty())
    }

    /// The first key of a command, for messages.
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

fn bound_twice(screen: Screen, key: Key, one: &Binding, other: &Binding) -> Error {
    let (a, b) = (one.name(), other.name());
    Error::usage(format!("the key {} is bound twice", key.name()))
        .because(format!("keys.{a} and keys.{b} both apply to the {screen} screen"))
        .hint(format!("bind one of them to another key: {a} = [\"…\"]"))
}

fn unknown_command(name: &str) -> Error {
    let first = name.chars().next();
    let near: Vec<String> =
        KEYMAP.iter().map(Binding::name).filter(|n| n.chars().next() == first).collect();
    let hint = match near.is_empty() {
        true => "`tdtool keys --toml` lists the actions".to_owned(),
        false => format!("{}? `tdtool keys --toml` lists all", near.join(", ")),
    };
    Error::usage(format!("keys.{name}: there is no such action")).hint(hint)
}

fn unknown_key(name: &str, text: &str) -> Error {
    Error::usage(format!("keys.{name}: `{text}` is not a key"))
        .hint("a single character, Ctrl-F, F1, Enter, Esc, Tab, Space, Backspace, Delete, Home, End, PageUp, PageDown, Left, Right, Up, Down")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyModifiers};

    fn with(changes: &[(&str, &[&str])]) -> Result<Keymap> {
        let own = |keys: &[&str]| keys.iter().map(|k| (*k).to_owned()).collect();
        Keymap::with(&changes.iter().map(|(a, keys)| ((*a).to_owned(), own(keys))).collect())
    }

    fn press(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
    }

    #[test]
    fn no_key_is_bound_twice_on_a_screen() {
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
    fn errors_name_the_action_and_the_key() {
        let message = |changes: &[(&str, &[&str])]| {
            let error = with(changes).expect_err("an error");
            format!(
                "{} {} {}",
                error.what(),
                error.cause().unwrap_or(""),
                error.remedy().unwrap_or("")
            )
        };
        let conflict = message(&[("down", &["q"])]);
        assert!(
            conflict.contains("key q") && conflict.contains("keys.down and keys.quit"),
            "{conflict}"
        );
        assert!(message(&[("dwn", &["x"])]).contains("keys.dwn: there is no such action"));
        assert!(message(&[("dwn", &["x"])]).contains("down, "), "similar names are suggested");
        assert!(message(&[("down", &["xyz"])]).contains("`xyz` is not a key"));
        assert!(message(&[("quit", &[])]).contains("needs a key"));
    }
}
