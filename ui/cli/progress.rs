//! Progress of something long on standard error: a line that is overwritten on a terminal, else one every
//! ten seconds.

use crate::{message, terminal};
use std::time::{Duration, Instant};

/// Time between lines where none can be overwritten.
const LINES: Duration = Duration::from_secs(10);

/// Progress of one thing.
pub struct Progress {
    what: &'static str,
    is_terminal: bool,
    /// When a line was shown, or it was begun.
    shown: Option<Instant>,
    is_open: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new(what: &'static str) -> Self {
        Self { what, is_terminal: terminal::shows_progress(), shown: None, is_open: false }
    }

    /// Shows how much of all is done.
    pub fn show(&mut self, done: usize, all: usize) {
        if done >= all {
            return self.end();
        }
        let text = format!("{}: {:.0} %", self.what, 100.0 * done as f64 / all as f64);
        if self.is_terminal {
            self.is_open = true;
            return message::plain(&format!("\r{text}\x1b[K"));
        }
        let shown = *self.shown.get_or_insert_with(Instant::now);
        if shown.elapsed() >= LINES {
            self.shown = Some(Instant::now());
            message::plain(&format!("{text}\n"));
        }
    }

    /// Removes the line.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            message::plain("\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
