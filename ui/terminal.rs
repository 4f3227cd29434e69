//! What the terminal can do: its width, whether it takes keys, progress and colours.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Whether standard error is a terminal on which a line can be overwritten.
pub fn shows_progress() -> bool {
    if IS_DRAWN_ON.load(Ordering::SeqCst) {
        return false;
    }
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

/// Whether the terminal has colours and cursor movement, by `$TERM`.
pub fn has_attributes() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Whether colours are permitted: <https://no-color.org>.
pub fn allows_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
