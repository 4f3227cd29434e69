//! The one table of keys: dispatch, footer, `?` screen and docs/keys.md are all made from it.

use super::action::{Command, Edit};
use super::state::Screen;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt::Write as _;

/// A key, with or without Ctrl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
}

/// What some keys do on some screens.
pub struct Binding {
    pub command: Command,
    pub keys: &'static [Key],
    pub screens: &'static [Screen],
    /// The word in the footer; empty: not shown there.
    pub hint: &'static str,
    /// What it does, for people.
    pub help: &'static str,
}

const fn key(code: KeyCode) -> Key {
    Key { code, ctrl: false }
}

const fn ch(c: char) -> Key {
    key(KeyCode::Char(c))
}

const fn ctrl(c: char) -> Key {
    Key { code: KeyCode::Char(c), ctrl: true }
}

const fn bind(
    command: Command,
    keys: &'static [Key],
    screens: &'static [Screen],
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding { command, keys, screens, hint, help }
}

const ALL: &[Screen] = &[Screen::Tree, Screen::Functions, Screen::Blocks, Screen::Block];
const DOWNWARD: &[Screen] = &[Screen::Tree, Screen::Functions, Screen::Blocks];
const FOLDED: &[Screen] = &[Screen::Tree, Screen::Blocks];
const SORTED: &[Screen] = &[Screen::Tree, Screen::Functions];
const CODE: &[Screen] = &[Screen::Functions, Screen::Blocks];
const TREE: &[Screen] = &[Screen::Tree];
const BLOCKS: &[Screen] = &[Screen::Blocks];
const BLOCK: &[Screen] = &[Screen::Block];

/// Every key, the most useful in the footer first.
pub static KEYMAP: &[Binding] = &[
    bind(Command::Help, &[ch('?'), key(KeyCode::F(1))], ALL, "help", "keys of this screen"),
    bind(
        Command::Drill,
        &[key(KeyCode::Enter), ch('l'), key(KeyCode::Right)],
        DOWNWARD,
        "drill",
        "one level down: tree, functions, blocks, measured block",
    ),
    bind(
        Command::Back,
        &[key(KeyCode::Esc), key(KeyCode::Backspace), ch('h'), key(KeyCode::Left)],
        ALL,
        "back",
        "one level up, to where the cursor was; never quits",
    ),
    bind(Command::Down, &[ch('j'), key(KeyCode::Down)], ALL, "", "down"),
    bind(Command::Up, &[ch('k'), key(KeyCode::Up)], ALL, "", "up"),
    bind(Command::PageDown, &[key(KeyCode::PageDown), ctrl('f')], ALL, "", "a page down"),
    bind(Command::PageUp, &[key(KeyCode::PageUp), ctrl('b')], ALL, "", "a page up"),
    bind(Command::HalfDown, &[ctrl('d')], ALL, "", "half a page down"),
    bind(Command::HalfUp, &[ctrl('u')], ALL, "", "half a page up"),
    bind(Command::Top, &[ch('g'), key(KeyCode::Home)], ALL, "", "to the first row"),
    bind(Command::Bottom, &[ch('G'), key(KeyCode::End)], ALL, "", "to the last row"),
    bind(Command::Toggle, &[ch(' ')], FOLDED, "fold", "open or close what is below the row"),
    bind(Command::Expand, &[ch('+'), ch('=')], FOLDED, "", "open what is below the row"),
    bind(Command::Collapse, &[ch('-')], FOLDED, "", "close what is below the row"),
    bind(Command::ExpandAll, &[ch('E')], FOLDED, "", "open everything"),
    bind(Command::CollapseAll, &[ch('C')], FOLDED, "", "close everything"),
    bind(
        Command::Hottest,
        &[ch('H')],
        DOWNWARD,
        "hottest",
        "to the bottleneck, the hottest function, the hottest instruction",
    ),
    bind(Command::NextHot, &[ch(']')], DOWNWARD, "", "to the next flagged node, the next less hot"),
    bind(
        Command::PreviousHot,
        &[ch('[')],
        DOWNWARD,
        "",
        "to the previous flagged node, the next hotter",
    ),
    bind(Command::Search, &[ch('/')], ALL, "find", "search; small letters also find capitals"),
    bind(Command::NextMatch, &[ch('n')], ALL, "", "the next match"),
    bind(Command::PreviousMatch, &[ch('N')], ALL, "", "the previous match"),
    bind(
        Command::Filter,
        &[ch('f')],
        DOWNWARD,
        "filter",
        "show only rows with a text; an empty one shows all",
    ),
    bind(Command::Sort, &[ch('s')], SORTED, "sort", "the next order of rows"),
    bind(Command::Invert, &[ch('I')], SORTED, "", "turn the order around"),
    bind(Command::Source, &[ch('s')], BLOCKS, "source", "source lines between the instructions"),
    bind(Command::Offsets, &[ch('o')], BLOCKS, "offsets", "offsets instead of addresses"),
    bind(Command::Samples, &[ch('t')], CODE, "", "samples instead of shares"),
    bind(Command::NextSymbol, &[ch('>')], BLOCKS, "", "the next function of the list"),
    bind(Command::PreviousSymbol, &[ch('<')], BLOCKS, "", "the previous function of the list"),
    bind(
        Command::Details,
        &[ch('d')],
        TREE,
        "details",
        "what the node means, why it is flagged or not, its formula and counts: show, hide",
    ),
    bind(Command::DetailsDown, &[ch('J')], TREE, "", "the details down"),
    bind(Command::DetailsUp, &[ch('K')], TREE, "", "the details up"),
    bind(
        Command::NextPart,
        &[key(KeyCode::Tab)],
        TREE,
        "",
        "the next part of the measurement: kind of core, CPU, thread, interval",
    ),
    bind(
        Command::Freeze,
        &[ch('z')],
        TREE,
        "freeze",
        "hold the numbers while the measurement goes on; again: the newest",
    ),
    bind(Command::Again, &[ch('r')], BLOCK, "again", "measure the block again"),
    bind(Command::Cancel, &[ch('c')], BLOCK, "cancel", "call the measurement off"),
    bind(Command::Redraw, &[ctrl('l')], ALL, "", "draw the screen anew"),
    bind(Command::Suspend, &[ctrl('z')], ALL, "", "to the shell; `fg` comes back"),
    bind(Command::Quit, &[ch('q'), ctrl('c')], ALL, "quit", "quit; a measured command is ended"),
];

/// What a key means on a screen.
pub fn command(event: KeyEvent, screen: Screen) -> Option<Command> {
    let pressed = Key::of(event)?;
    bindings(screen).find(|b| b.keys.contains(&pressed)).map(|b| b.command)
}

/// The keys of a screen.
pub fn bindings(screen: Screen) -> impl Iterator<Item = &'static Binding> {
    KEYMAP.iter().filter(move |b| b.screens.contains(&screen))
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

impl Key {
    fn of(event: KeyEvent) -> Option<Self> {
        let other = KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META;
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        (!event.modifiers.intersects(other)).then_some(Self { code: event.code, ctrl })
    }

    /// As it is written for people.
    pub fn name(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) if self.ctrl => return format!("Ctrl-{}", c.to_ascii_uppercase()),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::F(n) => format!("F{n}"),
            KeyCode::Left => "←".to_owned(),
            KeyCode::Right => "→".to_owned(),
            KeyCode::Up => "↑".to_owned(),
            KeyCode::Down => "↓".to_owned(),
            other => format!("{other:?}"),
        };
        if self.ctrl { format!("Ctrl-{name}") } else { name }
    }
}

/// All keys of a binding, as `Enter, l, →`.
pub fn names(binding: &Binding) -> String {
    binding.keys.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ")
}

/// docs/keys.md.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Keys of the interactive drill-down\n\n\
         Made from the program's own table by `tdtool keys`; a test holds it to that.\n",
    );
    let everywhere = |b: &&Binding| b.screens == ALL;
    let sections: [(&str, Vec<&Binding>); 5] = [
        ("On every screen", KEYMAP.iter().filter(everywhere).collect()),
        ("Tree", only(Screen::Tree)),
        ("Functions", only(Screen::Functions)),
        ("Blocks of a function", only(Screen::Blocks)),
        ("Measured block", only(Screen::Block)),
    ];
    for (title, bindings) in sections {
        let _ = writeln!(out, "\n## {title}\n\n| keys | what they do |\n|---|---|");
        for binding in bindings {
            let keys: Vec<_> = binding.keys.iter().map(|k| format!("`{}`", k.name())).collect();
            let _ = writeln!(out, "| {} | {} |", keys.join(" "), binding.help);
        }
    }
    out += "\nIn a prompt: `Enter` takes the text, `Esc` leaves everything as it was, `Ctrl-W` and \
            `Ctrl-U` erase a word and all.\n";
    out
}

fn only(screen: Screen) -> Vec<&'static Binding> {
    bindings(screen).filter(|b| b.screens != ALL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_on_one_screen() {
        for &screen in ALL {
            let mut all: Vec<Key> = bindings(screen).flat_map(|b| b.keys.iter().copied()).collect();
            while let Some(one) = all.pop() {
                assert!(!all.contains(&one), "{} on {screen:?}", one.name());
            }
        }
    }

    #[test]
    fn escape_goes_back_and_never_quits() {
        let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        for &screen in ALL {
            assert_eq!(command(escape, screen), Some(Command::Back));
        }
    }
}
