//! How far a batch is, on standard error: a bar on a terminal, else a line every ten seconds.

use bench::Status;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Time between two pictures on a terminal, and between two lines elsewhere.
const PICTURE: Duration = Duration::from_millis(200);
const LINE: Duration = Duration::from_secs(10);
/// Cells of the bar.
const BAR: usize = 24;

/// Counts what is done and shows it.
pub struct Progress {
    start: Instant,
    shown: Option<Instant>,
    all: usize,
    before: usize,
    counts: [usize; 4],
    ascii: bool,
    terminal: bool,
}

impl Progress {
    /// Of `all` rows, `before` are there from an earlier run.
    pub fn new(all: usize, before: usize, ascii: bool) -> Self {
        let now = Instant::now();
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = std::io::stderr().is_terminal() && !dumb;
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

    /// One row more.
    pub fn count(&mut self, status: Status) {
        self.counts[status as usize] += 1;
    }

    /// Rows that are there.
    pub fn rows(&self) -> usize {
        self.before + self.measured()
    }

    fn measured(&self) -> usize {
        self.counts.iter().sum()
    }

    fn rate(&self) -> f64 {
        self.measured() as f64 / self.start.elapsed().as_secs_f64().max(1e-3)
    }

    /// Shows how far it is, if that is due.
    pub fn show(&mut self) {
        let due = if self.terminal { PICTURE } else { LINE };
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
        // Progress that cannot be shown is no reason to stop.
        let _ = if self.terminal {
            let width = crate::width::columns(&std::io::stderr());
            let width = width.unwrap_or(80);
            write!(err, "\r{}\x1b[K", now.picture(width, self.ascii)).and_then(|()| err.flush())
        } else {
            writeln!(err, "{}", now.words())
        };
    }

    /// The summary.
    pub fn end(&self) {
        let [ok, unstable, failed, rejected] = self.counts;
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        let (measured, before) = (self.measured(), self.before);
        let mut err = std::io::stderr().lock();
        if measured == 0 && before > 0 {
            let left = self.all - before.min(self.all);
            let _ = match left {
                0 => writeln!(err, "{clear}all {before} rows are there from an earlier run"),
                _ => writeln!(err, "{clear}{before} rows are there from an earlier run, no more"),
            };
            return;
        }
        let kept = match before {
            0 => String::new(),
            n => format!("; {n} rows kept from an earlier run"),
        };
        let _ = writeln!(
            err,
            "{clear}{measured} blocks measured, {:.0}/s: {ok} ok, {unstable} unstable, \
             {failed} failed, {rejected} rejected{kept}",
            self.rate(),
        );
    }
}

/// A moment of a batch.
struct Now {
    rows: usize,
    all: usize,
    ok: Option<f64>,
    rate: f64,
}

impl Now {
    /// Everything in words.
    fn words(&self) -> String {
        let ok = self.ok.map(|ok| format!(", {ok:.1} % ok")).unwrap_or_default();
        let left = (self.all - self.rows.min(self.all)) as f64 / self.rate;
        let left = if left.is_finite() { format!(", {} left", clock(left)) } else { String::new() };
        format!("{}/{} blocks{ok}, {:.0}/s{left}", self.rows, self.all, self.rate)
    }

    /// A bar and the words; without the bar, and cut off, where the terminal is narrow.
    fn picture(&self, width: usize, ascii: bool) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_fits_its_terminal_whatever_its_width() {
        let now = Now { rows: 5000, all: 20000, ok: Some(98.64), rate: 512.3 };
        assert_eq!(now.words(), "5000/20000 blocks, 98.6 % ok, 512/s, 0:30 left");
        assert_eq!(now.picture(80, true), format!("######.................. {}", now.words()));
        for width in 0..100 {
            let picture = now.picture(width, false);
            assert!(picture.chars().count() < width.max(1), "{width}: {picture}");
        }
        let fresh = Now { rows: 0, all: 0, ok: None, rate: 0.0 };
        assert_eq!(fresh.words(), "0/0 blocks, 0/s");
        assert_eq!(clock(3725.0), "1:02:05");
    }
}
