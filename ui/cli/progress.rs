//! Shows the progress of something long on standard error: a line that is overwritten on a terminal, else one every
//! ten seconds.

use crate::{message, terminal};
use engine::steps::Step;
use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
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
    /// Where only the begin and the end are told: the time of the work in between, as a multiple of that until it.
    times: Option<f64>,
    clock: Option<Clock>,
    /// When a line was shown, or it was begun.
    shown: Option<Instant>,
    is_open: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new(what: &'static str) -> Self {
        let begun = Instant::now();
        let is_terminal = terminal::shows_progress();
        let (times, clock, shown, is_open) = (None, None, None, false);
        Self { what, begun, is_terminal, times, clock, shown, is_open }
    }

    /// As [`Self::new`], of a run of the command `times` as long as what came before.
    pub fn of_run(what: &'static str, times: f64) -> Self {
        let mut new = Self::new(what);
        new.times = Some(times);
        new
    }

    /// Shows how much of all is done.
    pub fn show(&mut self, done: usize, all: usize) {
        if done >= all || terminal::is_quiet() {
            return self.end();
        }
        if let (Some(times), true) = (self.times, self.is_terminal) {
            return self.run(self.begun.elapsed().as_secs_f64() * times);
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

    /// A run begins that takes about so many seconds.
    fn run(&mut self, seconds: f64) {
        if std::io::stdout().is_terminal() {
            // The command's output comes below.
            return message::plain(&format!("{}, {} left\n", self.what, time(seconds)));
        }
        let expected = Some(Duration::from_secs_f64(seconds));
        self.clock = Some(Clock::start(self.what, expected, false));
    }

    /// Removes the line.
    pub fn end(&mut self) {
        drop(self.clock.take());
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
    format!(", {} left", time(left))
}

/// As [`left`], of what ends at a limit at the latest.
pub fn until(elapsed: Duration, done: usize, all: usize, limit: Duration) -> String {
    let (known, limit) = (elapsed >= TICK && done > 0, limit.as_secs_f64());
    let left = elapsed.as_secs_f64() * all.saturating_sub(done) as f64 / done.max(1) as f64;
    match known && left < limit {
        true => format!(", {} left", time(left)),
        false => format!(", at most {} left", time(limit)),
    }
}

/// `12 s`, `5 min`, `3 h`: as exact as what is expected can be.
fn time(seconds: f64) -> String {
    match seconds.ceil() {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

/// The step that is shown; its time counts down.
static STEP: Mutex<Option<Clock>> = Mutex::new(None);

/// Shows a step that begins over the one before; `false` where that cannot be, without a terminal.
pub fn step(step: &Step) -> bool {
    if !terminal::shows_progress() {
        return false;
    }
    let mut shown = STEP.lock().unwrap_or_else(PoisonError::into_inner);
    drop(shown.take());
    let (step, columns) = (step.clone(), columns());
    if step.runs && std::io::stdout().is_terminal() {
        // The command's output comes below.
        message::plain(&format!("{}\n", line(&step, Duration::ZERO, columns)));
    } else if !step.what.is_empty() {
        *shown = Some(Clock::of(TICK, move |elapsed| line(&step, elapsed, columns)));
    }
    true
}

/// Columns of a line that does not wrap.
fn columns() -> usize {
    terminal::columns(&std::io::stderr()).map_or(usize::MAX, |columns| columns - 1)
}

/// `2 of 4: counts, 12 s left`, no wider than this.
fn line(step: &Step, elapsed: Duration, columns: usize) -> String {
    let left = step.seconds_left.map(|left| (left - elapsed.as_secs_f64()).max(0.0));
    let left = left.map(|left| format!(", {} left", time(left))).unwrap_or_default();
    let number = format!("{} of {}: ", step.number, step.of);
    let room = columns.saturating_sub(number.len() + left.len());
    let what: String = step.what.chars().take(room).collect();
    format!("{number}{what}{left}")
}

/// A line on a terminal that changes every second.
pub struct Clock {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Clock {
    /// The time left of something, or that it takes so far, until dropped; shows nothing where standard error is
    /// no terminal, or is `taken` by the output of a command.
    pub fn start(what: &'static str, expected: Option<Duration>, taken: bool) -> Self {
        if taken || !terminal::shows_progress() {
            return Self { stop: None, thread: None };
        }
        Self::of(TICK, move |elapsed| match elapsed < TICK {
            true => String::new(),
            false => format!("{what}: {}", clock(elapsed, expected)),
        })
    }

    /// As [`Self::start`], with the line at a time, which changes after each `tick`.
    pub fn of(tick: Duration, line: impl Fn(Duration) -> String + Send + 'static) -> Self {
        let (stop, stopped) = channel::<()>();
        let begun = Instant::now();
        let mut is_shown = overwrite(&line(Duration::ZERO), false);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                is_shown = overwrite(&line(begun.elapsed()), is_shown);
            }
            overwrite("", is_shown);
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

/// Writes a line over the one before; whether there is one now.
fn overwrite(line: &str, is_shown: bool) -> bool {
    if is_shown || !line.is_empty() {
        message::plain(&format!("\r{line}\x1b[K"));
    }
    !line.is_empty()
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
        Some(left) => format!("{} left", time(left.as_secs_f64())),
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
        let limit = seconds(600);
        assert_eq!(until(seconds(0), 0, 348, limit), ", at most 10 min left");
        assert_eq!(until(seconds(90), 9, 348, limit), ", at most 10 min left");
        assert_eq!(until(seconds(90), 90, 140, limit), ", 50 s left");
        assert_eq!([119.0, 600.0, 7200.0].map(time), ["119 s", "10 min", "2 h"]);
    }

    #[test]
    fn a_step_keeps_its_time_on_a_narrow_terminal() {
        let what = "measuring 1 of 7 in isolation".to_owned();
        let step =
            Step { what, number: 3, of: 12, seconds_left: Some(90.0), runs: false, is_plan: false };
        assert_eq!(
            line(&step, Duration::from_secs(30), 79),
            "3 of 12: measuring 1 of 7 in isolation, 60 s left"
        );
        assert_eq!(line(&step, Duration::from_secs(99), 28), "3 of 12: measuring, 0 s left");
    }
}
