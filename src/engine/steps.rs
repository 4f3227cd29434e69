//! Further runs of a command, or windows of a live process, each shown as it begins; one that records single instructions;
//! addresses of code by file.

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
    /// Whether it says what follows, and so is to stay in sight.
    pub is_plan: bool,
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
