//! The one table of keys.

use super::Key;
use crate::tui::action::Command;
use crate::tui::state::Screen;
use crossterm::event::KeyCode;

/// What some keys do on some screens.
#[derive(Debug)]
pub struct Binding {
    pub command: Command,
    pub keys: &'static [Key],
    pub screens: &'static [Screen],
    /// The word in the footer; empty: not shown there.
    pub hint: &'static str,
    /// What it does, for people.
    pub help: &'static str,
}

impl Binding {
    /// The action's name in a config file: `NextMatch` is `next-match`.
    pub fn name(&self) -> String {
        let mut name = String::new();
        for c in format!("{:?}", self.command).chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }

    /// Whether it is the same on all screens.
    pub fn is_everywhere(&self) -> bool {
        self.screens == ALL
    }
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
const FUNCTIONS: &[Screen] = &[Screen::Functions];
const HELD: &[Screen] = &[Screen::Tree, Screen::Functions];
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
        Command::Module,
        &[ch('m')],
        FUNCTIONS,
        "module",
        "only functions of the row's module; again: of all",
    ),
    bind(
        Command::Thread,
        &[ch('T')],
        FUNCTIONS,
        "thread",
        "only samples of one thread, by number or name; an empty text: of all",
    ),
    bind(
        Command::NextEvent,
        &[key(KeyCode::Tab)],
        FUNCTIONS,
        "",
        "shares of the next event, where several were sampled",
    ),
    bind(
        Command::Freeze,
        &[ch('z')],
        HELD,
        "freeze",
        "hold the numbers while the measurement goes on; again: the newest",
    ),
    bind(Command::Again, &[ch('r')], BLOCK, "again", "measure the block again"),
    bind(Command::Cancel, &[ch('c')], BLOCK, "cancel", "call the measurement off"),
    bind(
        Command::Copy,
        &[ch('y')],
        ALL,
        "copy",
        "copy what the cursor is on (node, function, address, the bytes of a block) through the terminal",
    ),
    bind(
        Command::Export,
        &[ch('P')],
        ALL,
        "save",
        "write the whole screen as text, or as JSON (FILE.json), to a new file",
    ),
    bind(Command::Redraw, &[ctrl('l')], ALL, "", "draw the screen anew"),
    bind(Command::Suspend, &[ctrl('z')], ALL, "", "to the shell; `fg` comes back"),
    bind(Command::Quit, &[ch('q'), ctrl('c')], ALL, "quit", "quit; a measured command is ended"),
];
