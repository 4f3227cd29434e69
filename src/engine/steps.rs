//! Further runs of a command, or windows of a live process: those that are left and what they take, each shown as it
//! begins; one that records single instructions; addresses of code by file.

use pmu::Command;
use pmu::perf::Signals;
use probe::bursts::{Pace, Recorded, Window, record, record_process};
use probe::count::{Progress, Wanted};
use probe::facts::Function;
use probe::plan::Request;
use report::documents::count::Cost;
use report::documents::{Exit, Purpose};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tma::Result;

/// A function that is called with each `T` as it comes, from any thread.
#[derive(Clone)]
pub struct Callback<T>(Arc<dyn Fn(T) + Send + Sync>);

impl<T> Callback<T> {
    /// Calls `of`.
    pub fn new(of: impl Fn(T) + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// Calls it.
    pub(crate) fn call(&self, with: T) {
        (self.0)(with);
    }
}

impl<T> fmt::Debug for Callback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// A step that begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Its name: `counts`, `measuring loop 3 of 7`; empty at the end.
    pub what: String,
    /// Its number, from 1.
    pub number: usize,
    /// Steps in all, as far as known.
    pub of: usize,
    /// Seconds that are left, about, if the time of a run is known.
    pub seconds_left: Option<f64>,
    /// Whether the command runs meanwhile, and may write.
    pub runs: bool,
}

/// Times of a run with probes as multiples of the run without (docs/results/speed.md).
const COUNTS: f64 = 1.5;
const BRANCHES: f64 = 2.0;
const VALUES: f64 = 2.0;
const ADDRESSES: f64 = 2.0;
const LATENCIES: f64 = 1.6;
/// Seconds of an isolated measurement with its explanation.
const ISOLATED: f64 = 1.5;

/// The steps that are left.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    pub plain: bool,
    pub counts: usize,
    pub branches: bool,
    pub values: bool,
    pub loads: bool,
    pub isolated: usize,
}

impl Left {
    /// Runs of the command, or windows of a process.
    pub fn runs(self) -> usize {
        let once = [self.plain, self.branches, self.values].map(usize::from);
        self.counts + once.iter().sum::<usize>() + 2 * usize::from(self.loads)
    }

    /// Seconds, from those of a run without probes.
    pub fn seconds(self, plain: f64) -> f64 {
        let once = |is_left: bool, times: f64| if is_left { times } else { 0.0 };
        let runs = COUNTS * self.counts as f64
            + once(self.plain, 1.0)
            + once(self.branches, BRANCHES)
            + once(self.values, VALUES)
            + once(self.loads, ADDRESSES + LATENCIES);
        runs * plain + ISOLATED * self.isolated as f64
    }

    /// Seconds of a run without probes, from those of one that counted.
    pub fn plain_of(counted: f64) -> f64 {
        counted / COUNTS
    }
}

/// How many isolated measurements there are, before that is known.
const USUAL: usize = 4;

impl Left {
    /// Before anything is known.
    pub fn all() -> Self {
        Self { counts: 2, branches: true, loads: true, isolated: USUAL, ..Self::default() }
    }
}

/// The cost of estimating a command that took this many seconds, in words.
pub fn cost(plain: f64) -> String {
    let left = Left::all();
    format!(
        "up to {} further runs of the command, and a few that end at a hot loop; about {:.0} s",
        left.runs(),
        left.seconds(plain).ceil()
    )
}

/// [`cost`] in short.
pub fn brief_cost(plain: f64) -> String {
    let left = Left::all();
    format!("up to {} further runs, about {:.0} s", left.runs(), left.seconds(plain).ceil())
}

/// The cost of estimating a live process, in words.
pub fn cost_of_process(window: Duration) -> String {
    let left = Left { counts: 1, ..Left::all() };
    format!(
        "up to {} windows of {} s in which probes slow the process, and about {:.0} s",
        left.runs(),
        window.as_secs_f64(),
        left.seconds(window.as_secs_f64()).ceil()
    )
}

/// The program that is recorded, and how that went so far.
pub(crate) struct Subject<'a> {
    /// The command; not used with a process.
    pub command: &'a Command,
    /// A live process instead, and for how long each time.
    pub process: Option<(i32, Duration)>,
    pub signals: &'a Signals,
    /// Steps of the analysis before a process is stopped.
    pub progress: Progress<'a>,
    /// Seconds of a run without probes.
    pub plain: Option<f64>,
    /// The code of the process could not be put back.
    pub remains: bool,
}

impl Subject<'_> {
    /// Records what instructions of these functions do, by requests as those of [`record`].
    ///
    /// # Errors
    /// The command cannot be started, the process not be stopped; they cannot be traced.
    pub fn record(
        &mut self,
        wanted: &[Wanted],
        requests: &dyn Fn(usize, &Function) -> Vec<Request>,
        pace: Pace,
    ) -> Result<Recorded> {
        let Some((pid, length)) = self.process else {
            return record(self.command, wanted, requests, pace, self.signals);
        };
        let window = Window { pid, length, signals: self.signals };
        let found = record_process(&window, wanted, requests, pace, self.progress)?;
        let recorded = found.unwrap_or_else(Recorded::interrupted);
        self.remains |= recorded.remains;
        Ok(recorded)
    }

    /// The cost of a run, for its row in the document.
    pub fn cost(&self, run: Purpose, recorded: &Recorded) -> Cost {
        Cost {
            run,
            seconds: recorded.wall.as_secs_f64(),
            plain: self.plain,
            probes: recorded.probes,
            exit: recorded.exit.map(Exit::from),
        }
    }
}

/// Limits of a run.
pub(crate) fn notes(run: Purpose, recorded: &Recorded) -> impl Iterator<Item = String> {
    recorded.notes.iter().map(move |note| format!("{run}: {note}"))
}

/// Addresses of code (p_vaddr) by file.
pub type Places = Arc<BTreeMap<PathBuf, Vec<Range<u64>>>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2 × 1.5 + 2 + 2 + 1.6 = 8.6 runs of 2 s, and 4 × 1.5 s.
    #[test]
    fn the_cost_is_that_of_all_runs() {
        assert_eq!(Left::all().runs(), 5);
        assert!((Left::all().seconds(2.0) - 23.2).abs() < 1e-9);
        assert_eq!(
            cost(2.0),
            "up to 5 further runs of the command, and a few that end at a hot loop; about 24 s"
        );
    }
}
