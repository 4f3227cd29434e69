//! Records single instructions in a further run of a command or a further window of a live process; addresses of
//! code by file, which such runs count or record.

use pmu::Command;
use pmu::perf::Signals;
use probe::bursts::{Pace, Recorded, Window, record, record_process};
use probe::count::{Progress, Wanted};
use probe::facts::Function;
use probe::plan::Request;
use report::documents::count::Cost;
use report::documents::{Exit, Purpose};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tma::Result;

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
