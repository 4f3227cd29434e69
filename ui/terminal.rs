//! Finds the abilities of the terminal (its width, keys, progress and colours), what the user wants on it, and its
//! themes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether only results and errors are printed: `--quiet`.
static QUIET: OnceLock<()> = OnceLock::new();

/// Prints neither notes nor progress from now on.
pub fn be_quiet() {
    let _ = QUIET.set(());
}

/// Whether neither notes nor progress are printed.
pub fn is_quiet() -> bool {
    QUIET.get().is_some()
}

/// Columns of the terminal that `stream` is; `None` if it is none, or does not report its size.
pub fn columns(stream: &impl AsFd) -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(stream)?;
    (width.0 > 0).then_some(usize::from(width.0))
}

/// Whether standard output is a terminal that can be drawn on, and keys can be read: from standard
/// input, or else from the controlling terminal.
pub fn is_interactive() -> bool {
    let keys = || std::io::stdin().is_terminal() || File::open("/dev/tty").is_ok();
    std::io::stdout().is_terminal() && has_attributes() && keys()
}

/// Whether the drill-down draws on the terminal.
static IS_DRAWN_ON: AtomicBool = AtomicBool::new(false);

/// The drill-down has the terminal from now on, or gives it back: nothing else may write there meanwhile.
pub fn draw_on(is_drawn_on: bool) {
    IS_DRAWN_ON.store(is_drawn_on, Ordering::SeqCst);
}

/// Whether standard error is a terminal on which a line can be overwritten, and progress is wanted.
pub fn shows_progress() -> bool {
    if is_quiet() || IS_DRAWN_ON.load(Ordering::SeqCst) {
        return false;
    }
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

/// Whether the terminal has colours and cursor movement, by `$TERM`.
pub fn has_attributes() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Whether the locale says that text is not UTF-8; one that is not set says nothing.
pub fn is_ascii_locale() -> bool {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    // As setlocale(3) has it: the first that is set.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(named);
    locale.is_some_and(|locale| !is_utf8(&locale))
}

fn is_utf8(locale: &str) -> bool {
    let charset = locale.split_once('.').map_or("", |(_, charset)| charset);
    let charset = charset.split('@').next().unwrap_or_default().to_lowercase();
    matches!(charset.as_str(), "utf-8" | "utf8")
}

/// Whether colours are permitted: <https://no-color.org>.
pub fn allows_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A choice of colours, by its name in a config file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Theme {
    #[default]
    Default,
    Light,
    Contrast,
    Mono,
}

impl fmt::Display for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Theme {
    pub const ALL: [Theme; 4] = [Theme::Default, Theme::Light, Theme::Contrast, Theme::Mono];

    /// Description of its colours.
    pub fn help(self) -> &'static str {
        match self {
            Theme::Default => "red and magenta, for dark and light backgrounds",
            Theme::Light => "red and blue, grey instead of faint, for light backgrounds",
            Theme::Contrast => {
                "white on blue and black on yellow, nothing faint: high contrast, for colour-blind users too"
            }
            Theme::Mono => "no colours: only bold, faint and reversed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf8_locales_have_other_characters() {
        for (locale, is) in [
            ("C", false),
            ("POSIX", false),
            ("de_DE.ISO-8859-1@euro", false),
            ("de_DE", false),
            ("C.UTF-8", true),
            ("en_GB.utf8", true),
        ] {
            assert_eq!(is_utf8(locale), is, "{locale}");
        }
    }
}
