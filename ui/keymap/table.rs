//! The table of keys.

use super::command::Command;
use super::key::Key;
use super::screen::Screen;
use super::screens::{
    ALL, BLOCK, BLOCKS, CALLED, CODE, DETAILED, DOWNWARD, ESTIMATE, ESTIMATED, FILTERED, FOLDED,
    FUNCTIONS, HOT, INTERVALS, LINES, LIVE, MEASURED, SORTED, TREE,
};
use crossterm::event::KeyCode;

/// Command of some keys on some screens.
#[derive(Debug)]
pub struct Binding {
    pub command: Command,
    pub keys: &'static [Key],
    pub screens: &'static [Screen],
    /// The word in the footer; empty: not shown there.
    pub hint: &'static str,
    /// Text in the help.
    pub help: &'static str,
}

impl Binding {
    /// The action's name in a config file.
    pub fn name(&self) -> String {
        self.command.to_string()
    }

    /// Whether it applies to all screens.
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

/// Every key, the most useful in the footer first.
pub static KEYMAP: &[Binding] = &[
    bind(
        Command::Help,
        &[ch('?'), key(KeyCode::F(1))],
        ALL,
        "help",
        "show the keys of this screen",
    ),
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
        "one level up, to the previous cursor; never quits",
    ),
    bind(
        Command::Estimate,
        &[ch('e')],
        ESTIMATED,
        "estimate",
        "estimate top-down in further runs; afterwards: switch between estimate and samples",
    ),
    bind(Command::Output, &[ch('O')], ALL, "", "show or hide the measured command's output"),
    bind(Command::Down, &[ch('j'), key(KeyCode::Down)], ALL, "", "move down"),
    bind(Command::Up, &[ch('k'), key(KeyCode::Up)], ALL, "", "move up"),
    bind(Command::PageDown, &[key(KeyCode::PageDown), ctrl('f')], ALL, "", "page down"),
    bind(Command::PageUp, &[key(KeyCode::PageUp), ctrl('b')], ALL, "", "page up"),
    bind(Command::HalfDown, &[ctrl('d')], ALL, "", "half a page down"),
    bind(Command::HalfUp, &[ctrl('u')], ALL, "", "half a page up"),
    bind(Command::Top, &[ch('g'), key(KeyCode::Home)], ALL, "", "first row"),
    bind(Command::Bottom, &[ch('G'), key(KeyCode::End)], ALL, "", "last row"),
    bind(Command::Toggle, &[ch(' ')], FOLDED, "fold", "expand or collapse the row"),
    bind(Command::Expand, &[ch('+'), ch('=')], FOLDED, "", "expand the row"),
    bind(Command::Collapse, &[ch('-')], FOLDED, "", "collapse the row"),
    bind(Command::ExpandAll, &[ch('E')], FOLDED, "", "expand all rows"),
    bind(Command::CollapseAll, &[ch('C')], FOLDED, "", "collapse all rows"),
    bind(Command::Hottest, &[ch('H')], HOT, "hottest", "go to the bottleneck, or the hottest row"),
    bind(Command::NextHot, &[ch(']')], MEASURED, "", "next flagged node, or row by samples"),
    bind(
        Command::PreviousHot,
        &[ch('[')],
        MEASURED,
        "",
        "previous flagged node, or row by samples",
    ),
    bind(Command::Search, &[ch('/')], ALL, "find", "search; a lower-case text ignores case"),
    bind(Command::NextMatch, &[ch('n')], ALL, "", "next match"),
    bind(Command::PreviousMatch, &[ch('N')], ALL, "", "previous match"),
    bind(Command::Filter, &[ch('f')], FILTERED, "filter", "show only matching rows; empty: all"),
    bind(Command::Callers, &[ch('c')], CALLED, "callers", "callers and callees of the function"),
    bind(Command::Sort, &[ch('s')], SORTED, "sort", "change the sort order"),
    bind(Command::Invert, &[ch('I')], SORTED, "", "reverse the sort order"),
    bind(Command::Source, &[ch('s')], LINES, "source", "show or hide source lines"),
    bind(Command::Offsets, &[ch('o')], BLOCKS, "offsets", "show offsets or addresses"),
    bind(Command::Samples, &[ch('t')], CODE, "", "show samples or shares"),
    bind(Command::NextSymbol, &[ch('>')], BLOCKS, "", "next function"),
    bind(Command::PreviousSymbol, &[ch('<')], BLOCKS, "", "previous function"),
    bind(
        Command::Details,
        &[ch('d')],
        DETAILED,
        "details",
        "a node's meaning, formula and counts, a block's evidence",
    ),
    bind(Command::DetailsDown, &[ch('J')], TREE, "", "scroll the details down"),
    bind(Command::DetailsUp, &[ch('K')], TREE, "", "scroll the details up"),
    bind(
        Command::NextPart,
        &[key(KeyCode::Tab)],
        TREE,
        "",
        "next part of the measurement: core type, CPU, thread, interval",
    ),
    bind(
        Command::Intervals,
        &[ch('i')],
        SORTED,
        "intervals",
        "the intervals over time, and the phases found in them",
    ),
    bind(
        Command::ZoomIn,
        &[ch('+'), ch('=')],
        INTERVALS,
        "zoom",
        "show the phase only, then half of what is shown",
    ),
    bind(Command::ZoomOut, &[ch('-')], INTERVALS, "out", "show twice as much"),
    bind(Command::Earlier, &[ch('<')], INTERVALS, "", "show what is before"),
    bind(Command::Later, &[ch('>')], INTERVALS, "", "show what is after"),
    bind(
        Command::Module,
        &[ch('m')],
        FUNCTIONS,
        "module",
        "only functions of the row's module, or all",
    ),
    bind(
        Command::Thread,
        &[ch('T')],
        FUNCTIONS,
        "thread",
        "only samples of a thread (ID or name); empty: all",
    ),
    bind(Command::NextEvent, &[key(KeyCode::Tab)], FUNCTIONS, "", "next sampled event"),
    bind(
        Command::Freeze,
        &[ch('z')],
        LIVE,
        "freeze",
        "freeze or unfreeze the numbers; measuring continues",
    ),
    bind(Command::Again, &[ch('r')], BLOCK, "again", "measure the block again"),
    bind(Command::Cancel, &[ch('c')], BLOCK, "cancel", "cancel the measurement"),
    bind(
        Command::Copy,
        &[ch('y')],
        ALL,
        "copy",
        "copy the node, function, address or block bytes to the clipboard (OSC 52)",
    ),
    bind(
        Command::Export,
        &[ch('P')],
        ALL,
        "save",
        "save all rows to a new file, as JSON if its name ends in .json",
    ),
    bind(
        Command::Evidence,
        &[ch('W')],
        ESTIMATE,
        "",
        "save all that the estimate is computed from; `tdtool report FILE` evaluates it",
    ),
    bind(Command::Redraw, &[ctrl('l')], ALL, "", "redraw the screen"),
    bind(Command::Suspend, &[ctrl('z')], ALL, "", "suspend to the shell; `fg` resumes"),
    bind(
        Command::Quit,
        &[ch('q'), ctrl('c')],
        ALL,
        "quit",
        "quit; a measured command is terminated",
    ),
];
