//! The default keys, also as a page of the documentation and as a config file.

use super::command::{Command, Screen};
use super::key::Key;
use crate::terminal::Theme;
use crossterm::event::KeyCode;
use std::fmt::Write as _;

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

// Sets of screens: those on which a key does the same.
const TREE: &[Screen] = &[Screen::Tree];
const FUNCTIONS: &[Screen] = &[Screen::Functions];
const BLOCKS: &[Screen] = &[Screen::Blocks];
const INTERVALS: &[Screen] = &[Screen::Intervals];
const BLOCK: &[Screen] = &[Screen::Block];
const CODE: &[Screen] = &[Screen::Functions, Screen::Blocks];
const SORTED: &[Screen] = &[Screen::Tree, Screen::Functions];
/// Screens whose numbers change during a measurement.
const LIVE: &[Screen] = SORTED;
const DETAILED: &[Screen] = &[Screen::Tree, Screen::Block];
const FOLDED: &[Screen] = &[Screen::Tree, Screen::Blocks, Screen::EstimatedSource];
const LINES: &[Screen] = &[Screen::Blocks, Screen::EstimatedCode, Screen::EstimatedSource];
const MEASURED: &[Screen] = &[Screen::Tree, Screen::Functions, Screen::Blocks];
const CALLED: &[Screen] = &joined::<4>(&[CODE, ESTIMATED_CODE]);
const FILTERED: &[Screen] = &joined::<7>(&[COMPARED, MEASURED, ESTIMATED_CODE]);
const HOT: &[Screen] = &joined::<8>(&[COMPARED, MEASURED, &[Screen::Estimate], ESTIMATED_CODE]);
/// A measurement and its estimate.
const ESTIMATED: &[Screen] = &joined::<8>(&[MEASURED, ESTIMATE]);
/// Screens with a level below the selected row.
const DOWNWARD: &[Screen] =
    &joined::<11>(&[ESTIMATED, INTERVALS, &[Screen::Comparison, Screen::Calls]]);
const ALL: &[Screen] =
    &joined::<13>(&[MEASURED, BLOCK, INTERVALS, ESTIMATE, COMPARED, &[Screen::Calls]]);

const COMPARED: &[Screen] = &[Screen::Comparison, Screen::ComparedCode];
const ESTIMATED_CODE: &[Screen] = &[Screen::EstimatedFunctions, Screen::EstimatedCode];
/// An estimate and its code.
const ESTIMATE: &[Screen] = &joined::<5>(&[
    &[Screen::Estimate],
    ESTIMATED_CODE,
    &[Screen::EstimatedSource, Screen::EstimatedBlock],
]);

/// All of these sets, one after the other: `N` screens, which the compiler checks.
const fn joined<const N: usize>(sets: &[&[Screen]]) -> [Screen; N] {
    let mut all = [Screen::Tree; N];
    let (mut set, mut filled) = (0, 0);
    while set < sets.len() {
        let mut at = 0;
        while at < sets[set].len() {
            all[filled] = sets[set][at];
            (at, filled) = (at + 1, filled + 1);
        }
        set += 1;
    }
    assert!(filled == N, "another number of screens");
    all
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
    bind(
        Command::NextHot,
        &[ch(']')],
        MEASURED,
        "",
        "next flagged node; in lists, next in order of samples",
    ),
    bind(
        Command::PreviousHot,
        &[ch('[')],
        MEASURED,
        "",
        "previous flagged node; in lists, previous in order of samples",
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
        "next core type, CPU, thread or time interval",
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

/// The keys page of the documentation.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Keys of the interactive drill-down\n\n\
         Generated by `tdtool keys`. A key may do something else on another screen: `?` shows those of the screen.\n",
    );
    let sections: [(&str, Vec<&Binding>); 7] = [
        ("On every screen", KEYMAP.iter().filter(|b| b.is_everywhere()).collect()),
        ("Tree", only(Screen::Tree)),
        ("Intervals over time", only(Screen::Intervals)),
        ("Functions", only(Screen::Functions)),
        ("Blocks of a function", only(Screen::Blocks)),
        ("Measured block", only(Screen::Block)),
        ("Estimated tree, functions, loops and blocks", only(Screen::EstimatedFunctions)),
    ];
    let mut described: Vec<String> = Vec::new();
    for (title, bindings) in sections {
        let _ = writeln!(out, "\n## {title}\n");
        let (known, new): (Vec<&Binding>, Vec<&Binding>) =
            bindings.into_iter().partition(|binding| described.contains(&binding.name()));
        if !new.is_empty() {
            out += "|keys|action|what it does|\n|---|---|---|\n";
        }
        let introduced = if new.is_empty() { "As above: " } else { "\nAlso, as above: " };
        for binding in new {
            let _ = writeln!(out, "|{}|{}|{}|", keys(binding), binding.name(), binding.help);
            described.push(binding.name());
        }
        if !known.is_empty() {
            out += introduced;
            let names: Vec<String> = known.iter().map(|binding| binding.name()).collect();
            let _ = writeln!(out, "{}.", names.join(", "));
        }
    }
    out += "\nIn a prompt: `Enter` accepts the text, `Esc` discards it, `Ctrl-W` erases a word, `Ctrl-U` \
            the whole text.\n";
    out += CONFIG_FILE;
    for theme in Theme::ALL {
        let _ = writeln!(out, "|`{theme}`|{}|", theme.help());
    }
    out += "\nColours are the terminal's sixteen. With `NO_COLOR` the theme is `mono`.\n";
    out
}

const CONFIG_FILE: &str = "\n## Config file\n
`--config FILE`, `$XDG_CONFIG_HOME/tdtool/config.toml`, else `~/.config/tdtool/config.toml`; `tdtool keys --toml` prints
one with every setting.

    theme = \"contrast\"
    ascii = true
    mouse = true    # wheel: move; click: select, then drill; the terminal selects with Shift
    [keys]
    down = [\"j\", \"Down\", \"Ctrl-N\"]   # instead of the keys above
    again = []                        # no key

Unknown actions and keys, and a key with two meanings on one screen, are errors.

| theme | colours |
|---|---|
";

/// The keys of an action.
fn keys(binding: &Binding) -> String {
    let all: Vec<_> = binding.keys.iter().map(|k| format!("`{}`", k.name())).collect();
    all.join(" ")
}

/// A config file with every setting commented out.
pub fn template() -> String {
    let mut out = String::from(
        "# tdtool's config file: $XDG_CONFIG_HOME/tdtool/config.toml, else ~/.config/tdtool/config.toml.\n\
         # The settings that are commented out are the defaults.\n\n",
    );
    for theme in Theme::ALL {
        let _ = writeln!(out, "# \"{theme}\": {}", theme.help());
    }
    out += "# theme = \"default\"\n\n# ASCII characters only\n# ascii = false\n\n# Wheel and clicks; the terminal then selects text with Shift only\n# mouse = false\n\n[keys]\n";
    for binding in KEYMAP {
        let keys: Vec<String> = binding.keys.iter().map(|k| quoted(&k.name())).collect();
        let _ = writeln!(out, "# {}\n# {} = [{}]", binding.help, binding.name(), keys.join(", "));
    }
    out
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn only(screen: Screen) -> Vec<&'static Binding> {
    KEYMAP.iter().filter(|b| !b.is_everywhere() && b.screens.contains(&screen)).collect()
}
