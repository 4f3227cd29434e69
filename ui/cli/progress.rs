//! Progress of something long on standard error: a line that is overwritten on a terminal, else one every
//! ten seconds.

use crate::{message, terminal};
use engine::steps::Step;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between lines where none can be overwritten.
const LINES: Duration = Duration::from_secs(10);

/// Time between two readings of a clock that is shown.
const TICK: Duration = Duration::from_secs(1);

/// Progress of one thing.
pub struct Progress {
    what: &'static str,
    begun: Instant,
    is_terminal: bool,
    /// When a line was shown, or it was begun.
    shown: Option<Instant>,
    is_open: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new(what: &'static str) -> Self {
        let begun = Instant::now();
        Self { what, begun, is_terminal: terminal::shows_progress(), shown: None, is_open: false }
    }

    /// Shows how much of all is done.
    pub fn show(&mut self, done: usize, all: usize) {
        if done >= all {
            return self.end();
        }
        let share = 100.0 * done as f64 / all as f64;
        let text = format!("{}: {share:.0} %{}", self.what, left(self.begun.elapsed(), done, all));
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

/// `, 12 s left` if the rest takes as long as what is done; nothing before that can be told.
pub fn left(elapsed: Duration, done: usize, all: usize) -> String {
    if done == 0 || elapsed < TICK || done >= all {
        return String::new();
    }
    let left = elapsed.as_secs_f64() * (all - done) as f64 / done as f64;
    format!(", {:.0} s left", left.ceil())
}

/// Shows a step that begins over the one before; `false` where that cannot be, without a terminal.
pub fn step(step: &Step) -> bool {
    let is_terminal = terminal::shows_progress();
    if is_terminal && step.what.is_empty() {
        message::plain("\r\x1b[K");
    } else if is_terminal {
        let left = step.seconds_left.map(|left| format!(", {:.0} s left", left.ceil()));
        let (number, of, what) = (step.number, step.of, &step.what);
        let text = format!("{number} of {of}: {what}{}", left.unwrap_or_default());
        let most = terminal::columns(&std::io::stderr()).map_or(usize::MAX, |columns| columns - 1);
        message::plain(&format!("\r{}\x1b[K", text.chars().take(most).collect::<String>()));
    }
    is_terminal
}

/// A clock on a terminal: the time left of something, or that it takes so far.
pub struct Clock {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Clock {
    /// Runs until dropped; shows nothing where standard error is no terminal, or is `taken` by the output
    /// of a command.
    pub fn start(what: &'static str, expected: Option<Duration>, taken: bool) -> Self {
        if taken || !terminal::shows_progress() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = channel::<()>();
        let begun = Instant::now();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(TICK) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let text = clock(begun.elapsed(), expected);
                message::plain(&format!("\r{what}: {text}\x1b[K"));
            }
            message::plain("\r\x1b[K");
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn clock(elapsed: Duration, expected: Option<Duration>) -> String {
    match expected.map(|all| all.saturating_sub(elapsed)) {
        Some(left) => format!("{:.0} s left", left.as_secs_f64().ceil()),
        None => format!("{} s", elapsed.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(10), 1, 4), ", 30 s left");
        assert_eq!(left(seconds(10), 3, 4), ", 4 s left");
        for (elapsed, done, all) in [(10, 0, 4), (0, 1, 4), (10, 4, 4)] {
            assert_eq!(left(seconds(elapsed), done, all), "");
        }
        assert_eq!(clock(seconds(3), Some(seconds(10))), "7 s left");
        assert_eq!(clock(seconds(12), Some(seconds(10))), "0 s left");
        assert_eq!(clock(seconds(12), None), "12 s");
    }
}
