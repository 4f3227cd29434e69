//! The table of keys as docs/keys.md, and as a config file to begin with.

use super::super::theme::Theme;
use super::{Binding, KEYMAP};
use crate::tui::state::Screen;
use std::fmt::Write as _;

/// docs/keys.md.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Keys of the interactive drill-down\n\n\
         Made from the program's own table by `tdtool keys`; a test holds it to that.\n",
    );
    let sections: [(&str, Vec<&Binding>); 5] = [
        ("On every screen", KEYMAP.iter().filter(|b| b.is_everywhere()).collect()),
        ("Tree", only(Screen::Tree)),
        ("Functions", only(Screen::Functions)),
        ("Blocks of a function", only(Screen::Blocks)),
        ("Measured block", only(Screen::Block)),
    ];
    for (title, bindings) in sections {
        let _ = writeln!(out, "\n## {title}\n\n| keys | action | what it does |\n|---|---|---|");
        for binding in bindings {
            let keys: Vec<_> = binding.keys.iter().map(|k| format!("`{}`", k.name())).collect();
            let _ = writeln!(out, "| {} | {} | {} |", keys.join(" "), binding.name(), binding.help);
        }
    }
    out += "\nIn a prompt: `Enter` takes the text, `Esc` leaves everything as it was, `Ctrl-W` and \
            `Ctrl-U` erase a word and all.\n";
    out += CONFIG;
    for theme in Theme::ALL {
        let _ = writeln!(out, "| `{}` | {} |", theme.name(), theme.help());
    }
    out += "\nColours are the terminal's own sixteen, and nothing is told by colour alone. With `NO_COLOR` in \
            the environment the theme is `mono`, whatever else is said.\n";
    out
}

const CONFIG: &str = "\n## Config file\n
`$XDG_CONFIG_HOME/tdtool/config.toml`, else `~/.config/tdtool/config.toml`, or the one that `--config FILE` names.
`tdtool keys --toml` prints one with everything in it, commented out. It is read by the interactive screens alone.

    theme = \"contrast\"
    ascii = true
    [keys]
    down = [\"j\", \"Down\", \"Ctrl-N\"]   # instead of the keys above
    again = []                        # no key

A name that is not in the tables above, a key that does not exist, and a key with two meanings on one screen are
errors before the screen opens.

| theme | what it is |
|---|---|
";

/// A config file with everything that can be chosen, commented out.
pub fn template() -> String {
    let mut out = String::from(
        "# tdtool's config file: $XDG_CONFIG_HOME/tdtool/config.toml, else ~/.config/tdtool/config.toml.\n\
         # What is commented out is as it is without this file.\n\n",
    );
    for theme in Theme::ALL {
        let _ = writeln!(out, "# \"{}\": {}", theme.name(), theme.help());
    }
    out += "# theme = \"default\"\n\n# ASCII characters only\n# ascii = false\n\n[keys]\n";
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
