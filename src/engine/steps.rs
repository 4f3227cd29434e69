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
use tma::text::several;

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
    /// Whether it says what follows, and so is to stay in sight.
    pub is_plan: bool,
}

/// Times of a run with probes as multiples of the run without (docs/results/speed.md).
const COUNTS: f64 = 1.5;
const BRANCHES: f64 = 2.0;
const VALUES: f64 = 2.0;
const ADDRESSES: f64 = 2.0;
const LATENCIES: f64 = 1.6;
/// The same of a run with probes in windows only.
const WINDOWS: f64 = 1.35;
/// The same of a run on one CPU of threads that ran on two.
const PINNED: f64 = 2.0;
/// Seconds of an isolated measurement, and of those that explain it.
const ISOLATED: f64 = 0.12;
const EXPLAINED: f64 = 0.25;

/// The steps that are left.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    pub plain: bool,
    pub counts: usize,
    pub branches: bool,
    pub values: bool,
    pub loads: bool,
    /// Branches and loads are recorded in windows of one run, not in runs of their own.
    pub windows: bool,
    /// A run on one CPU, if threads contend for cache lines.
    pub pinned: bool,
    pub isolated: usize,
    /// How many of them are explained.
    pub explained: usize,
}

/// Seconds of a run without probes, and of one that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub plain: f64,
    pub counted: f64,
}

impl Times {
    /// Before a run has counted.
    pub fn of(plain: f64) -> Self {
        Self { plain, counted: COUNTS * plain }
    }
}

impl Left {
    /// Runs of the command, or windows of a process.
    pub fn runs(self) -> usize {
        let once = [self.plain, self.values].map(usize::from).iter().sum::<usize>();
        let recorded = match self.windows {
            true => usize::from(self.branches || self.loads),
            false => usize::from(self.branches) + 2 * usize::from(self.loads),
        };
        self.counts + once + recorded + usize::from(self.pinned)
    }

    /// Seconds of all.
    pub fn seconds(self, of: Times) -> f64 {
        let once = |is_left: bool, times: f64| if is_left { times } else { 0.0 };
        let recorded = match self.windows {
            true => once(self.branches || self.loads, WINDOWS),
            false => once(self.branches, BRANCHES) + once(self.loads, ADDRESSES + LATENCIES),
        };
        let runs = once(self.plain, 1.0)
            + once(self.pinned, PINNED)
            + once(self.values, VALUES)
            + recorded;
        let isolated = ISOLATED * self.isolated as f64 + EXPLAINED * self.explained as f64;
        runs * of.plain + of.counted * self.counts as f64 + isolated
    }

    /// Seconds of a run without probes, from those of one that counted.
    pub fn plain_of(counted: f64) -> f64 {
        counted / COUNTS
    }

    /// What is left, in words.
    pub fn words(self, of: Times) -> String {
        let recorded = match (self.branches, self.loads, self.windows) {
            (true, true, true) => Some("branches and loads in windows of one run"),
            (true, false, true) => Some("branches in windows of one run"),
            (false, true, true) => Some("loads in windows of one run"),
            (true, true, false) => Some("branches and loads in up to 3 runs"),
            (true, false, false) => Some("branches in a run"),
            (false, true, false) => Some("loads in up to 2 runs"),
            (false, false, _) => None,
        };
        let isolated = (self.isolated > 0)
            .then(|| format!("{} in isolation", several(self.isolated, "measurement")));
        let pinned = self.pinned.then_some("perhaps one on one CPU, for contention");
        let again = (self.counts > 0).then_some("counts again");
        let all: Vec<String> = isolated
            .into_iter()
            .chain([recorded, pinned, again].into_iter().flatten().map(str::to_owned))
            .collect();
        format!("{}; about {:.0} s", all.join(", "), self.seconds(of).ceil())
    }
}

/// How many isolated measurements, and explained ones, there are, before that is known.
const USUAL: (usize, usize) = (20, 6);

/// What is known of the cost of estimating a command that took this many seconds, in words.
pub fn cost(plain: f64) -> String {
    format!("{}; it shows which others are needed", brief_cost(plain))
}

/// [`cost`] in short.
pub fn brief_cost(plain: f64) -> String {
    format!("in further runs: the first counts, about {:.0} s", Times::of(plain).counted.ceil())
}

/// The cost of estimating a live process, in words.
pub fn cost_of_process(window: Duration) -> String {
    let (isolated, explained) = USUAL;
    let left =
        Left { counts: 1, branches: true, loads: true, isolated, explained, ..Left::default() };
    format!(
        "up to {} windows of {} s in which probes slow the process, and about {:.0} s",
        left.runs(),
        window.as_secs_f64(),
        left.seconds(Times::of(window.as_secs_f64())).ceil()
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
        let window = Window { pid, is_child: false, length, signals: self.signals };
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

    /// By hand: 2 + 2 + 1.6 runs of 2 s, two that count in 2.5 s, 10 × 0.12 s, 4 × 0.25 s; in windows 1.35 runs instead
    /// of 5.6.
    #[test]
    fn the_cost_is_that_of_all_runs() {
        let (isolated, explained) = (10, 4);
        let left =
            Left { counts: 2, branches: true, loads: true, isolated, explained, ..Left::default() };
        let times = Times { counted: 2.5, ..Times::of(2.0) };
        assert_eq!(left.runs(), 5);
        assert!((left.seconds(times) - 18.4).abs() < 1e-9);
        let left = Left { windows: true, ..left };
        assert_eq!(left.runs(), 3);
        assert!((left.seconds(times) - 9.9).abs() < 1e-9);
        assert_eq!(
            Left { counts: 0, ..left }.words(times),
            "10 measurements in isolation, branches and loads in windows of one run; about 5 s"
        );
        assert_eq!(
            cost(2.0),
            "in further runs: the first counts, about 3 s; it shows which others are needed"
        );
    }
}
