//! Progress on standard error: of a batch a bar on a terminal, else a line every ten seconds; of a block the current step.

use crate::cli::progress::Clock;
use crate::terminal;
use bench::{Progress, Status};
use std::io::Write as _;
use std::time::{Duration, Instant};
use tma::text::several;

/// Time between updates on a terminal, and between lines elsewhere.
const BAR_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Cells of the bar.
const BAR: usize = 24;

/// Counts what is done and shows it.
pub struct BatchProgress {
    start: Instant,
    shown: Option<Instant>,
    all: usize,
    before: usize,
    counts: [usize; 4],
    ascii: bool,
    terminal: bool,
}

impl BatchProgress {
    /// A bar of `all` rows, `before` of them written by an earlier run.
    pub fn new(all: usize, before: usize, ascii: bool) -> Self {
        let now = Instant::now();
        let terminal = terminal::shows_progress();
        Self {
            start: now,
            shown: (!terminal).then_some(now),
            all,
            before,
            counts: [0; 4],
            ascii,
            terminal,
        }
    }

    /// Counts a row.
    pub fn count(&mut self, status: Status) {
        self.counts[status as usize] += 1;
    }

    /// Rows written so far.
    pub fn rows(&self) -> usize {
        self.before + self.measured()
    }

    fn measured(&self) -> usize {
        self.counts.iter().sum()
    }

    fn rate(&self) -> f64 {
        self.measured() as f64 / self.start.elapsed().as_secs_f64().max(1e-3)
    }

    /// Updates the bar, or prints a line, if that is due.
    pub fn show(&mut self) {
        let due = if self.terminal { BAR_INTERVAL } else { LINE_INTERVAL };
        if self.shown.is_some_and(|shown| shown.elapsed() < due) {
            return;
        }
        self.shown = Some(Instant::now());
        let now = Now {
            rows: self.rows(),
            all: self.all,
            ok: share(self.counts[Status::Ok as usize], self.measured()),
            rate: self.rate(),
        };
        let mut err = std::io::stderr().lock();
        // A failure to show progress does not end the batch.
        let _ = if self.terminal {
            let width = terminal::columns(&std::io::stderr()).unwrap_or(80);
            write!(err, "\r{}\x1b[K", now.bar(width, self.ascii)).and_then(|()| err.flush())
        } else {
            writeln!(err, "{}", now.words())
        };
    }

    /// Prints the summary.
    pub fn end(&self) {
        let [ok, unstable, failed, rejected] = self.counts;
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        let (measured, before) = (self.measured(), self.before);
        let mut err = std::io::stderr().lock();
        if measured == 0 && before > 0 {
            let left = self.all - before.min(self.all);
            let _ = match left {
                0 => writeln!(err, "{clear}no rows left: an earlier run wrote all {before}"),
                _ => writeln!(err, "{clear}no new rows; an earlier run wrote {before}"),
            };
            return;
        }
        let earlier = match before {
            0 => String::new(),
            n => format!("; {} from an earlier run", several(n, "row")),
        };
        let _ = writeln!(
            err,
            "{clear}{} measured, {:.0}/s: {ok} ok, {unstable} unstable, {failed} failed, \
             {rejected} rejected{earlier}",
            several(measured, "block"),
            self.rate(),
        );
    }
}

/// The progress at one moment.
struct Now {
    rows: usize,
    all: usize,
    ok: Option<f64>,
    rate: f64,
}

impl Now {
    /// The numbers.
    fn words(&self) -> String {
        let ok = self.ok.map(|ok| format!(", {ok:.1} % ok")).unwrap_or_default();
        let left = (self.all - self.rows.min(self.all)) as f64 / self.rate;
        let left = if left.is_finite() { format!(", {} left", clock(left)) } else { String::new() };
        format!("{}/{} blocks{ok}, {:.0}/s{left}", self.rows, self.all, self.rate)
    }

    /// A bar and the numbers; on a narrow terminal no bar, and the numbers cut off.
    fn bar(&self, width: usize, ascii: bool) -> String {
        let words = self.words();
        // The last column stays free: some terminals wrap when it is written.
        let room = width.saturating_sub(1);
        if room < words.len() + BAR + 3 {
            return words.chars().take(room).collect();
        }
        let filled = BAR * self.rows.min(self.all) / self.all.max(1);
        let (full, empty) = if ascii { ("#", ".") } else { ("█", "░") };
        format!("{}{} {words}", full.repeat(filled), empty.repeat(BAR - filled))
    }
}

fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| 100.0 * part as f64 / all as f64)
}

/// Seconds as `h:mm:ss` or `m:ss`.
fn clock(seconds: f64) -> String {
    let all = seconds.ceil().min(359_999.0) as u64;
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// Nothing is shown before: most measurements end sooner.
const DELAY: Duration = Duration::from_secs(1);
/// Time between updates.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows the step that `watch` reports until the clock is dropped; nothing where standard error is no terminal.
pub fn show_step(watch: &Progress) -> Option<Clock> {
    let watch = watch.clone();
    let line = move |elapsed: Duration| {
        if elapsed < DELAY {
            return String::new();
        }
        let step = watch.step();
        let step = if step.is_empty() { "measuring" } else { &*step };
        let line = format!("{} s, {}; {step}", elapsed.as_secs(), several(watch.passes(), "pass"));
        let room = terminal::columns(&std::io::stderr()).unwrap_or(80) - 1;
        line.chars().take(room).collect()
    };
    terminal::shows_progress().then(|| Clock::of(INTERVAL, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fits_every_terminal_width() {
        let now = Now { rows: 5000, all: 20000, ok: Some(98.64), rate: 512.3 };
        assert_eq!(now.words(), "5000/20000 blocks, 98.6 % ok, 512/s, 0:30 left");
        assert_eq!(now.bar(80, true), format!("######.................. {}", now.words()));
        for width in 0..100 {
            let bar = now.bar(width, false);
            assert!(bar.chars().count() < width.max(1), "{width}: {bar}");
        }
        let fresh = Now { rows: 0, all: 0, ok: None, rate: 0.0 };
        assert_eq!(fresh.words(), "0/0 blocks, 0/s");
        assert_eq!(clock(3725.0), "1:02:05");
    }
}
