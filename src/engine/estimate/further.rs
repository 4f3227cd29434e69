//! Further runs of the command.

use super::ask::EstimateAsk;
use super::functions::Functions;
use crate::count::{CountAsk, First};
use crate::places::Places;
use pmu::perf::Signals;
use report::documents::Purpose;
use report::documents::count::{BlockRow, Count};
use report::documents::estimate::Run;
use tma::{Address, Result};

/// Mispredictions of a branch that goes one way less often than this would not matter, while its records take time.
const RAREST: f64 = 1e-3;

/// Recordings beside counts, each in runs of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub branches: bool,
    pub loads: bool,
}

/// The runs of one estimate.
pub(super) struct Further {
    ask: CountAsk,
    signals: Signals,
    first: First,
    /// Runs for values.
    values: Option<Run>,
    /// The signal that interrupted one.
    pub interrupted: Option<i32>,
}

impl Further {
    /// Counts the hot functions.
    ///
    /// # Errors
    /// The command cannot be started or traced; none of the functions can be counted.
    pub fn count(ask: &EstimateAsk, found: &Functions, signals: Signals) -> Result<Self> {
        let ask = CountAsk {
            // Its output belongs where that of the first run went once only.
            command: pmu::Command { stdout_to_stderr: true, ..ask.command.clone() },
            process: ask.process,
            modules: Vec::new(),
            functions: Vec::new(),
            hot: Some(found.hot.clone()),
            plain: false,
            loads: false,
            loads_of: None,
            values: None,
            branches: None,
            rarest: RAREST,
            watch: None,
        };
        let mut first = First::of(&ask, None, &signals, &mut |_, _| {})?;
        let interrupted = first.further(&ask, &signals, &mut |_, _| {})?;
        Ok(Self { ask, signals, first, values: None, interrupted })
    }

    /// Records mispredictions.
    ///
    /// # Errors
    /// The command cannot be started or traced.
    pub fn branches(&mut self, ask: &EstimateAsk) -> Result<()> {
        let ask = CountAsk { branches: Some(ask.model.core.clone()), ..self.ask.clone() };
        self.interrupted = self.first.further(&ask, &self.signals, &mut |_, _| {})?;
        Ok(())
    }

    /// Records addresses and latencies of the loads of some code.
    ///
    /// # Errors
    /// As [`Further::branches`].
    pub fn loads(&mut self, of: Places) -> Result<()> {
        let ask = CountAsk { loads: true, loads_of: Some(of), ..self.ask.clone() };
        self.interrupted = self.first.further(&ask, &self.signals, &mut |_, _| {})?;
        if self.interrupted.is_some() {
            // Interrupted, they are of a part of the run.
            let document = &mut self.first.document;
            document.loads.clear();
            document.timer = None;
        }
        Ok(())
    }

    /// The signals that end a run, or a measurement.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Whether a run was interrupted, or a signal has come since.
    pub fn is_interrupted(&mut self) -> bool {
        let since = || self.signals.next().map(|(signal, _)| signal);
        self.interrupted = self.interrupted.or_else(since);
        self.interrupted.is_some()
    }

    /// Counts once more: whether both runs entered all blocks equally often; `None` if it was interrupted.
    ///
    /// # Errors
    /// As [`Further::branches`].
    pub fn repeated(&mut self) -> Result<Option<bool>> {
        let mut second = First::of(&self.ask, None, &self.signals, &mut |_, _| {})?;
        self.interrupted = second.further(&self.ask, &self.signals, &mut |_, _| {})?;
        let cost = second.document.cost.iter().filter(|cost| cost.run == Purpose::Counts).cloned();
        self.first.document.cost.extend(cost);
        let is_whole = self.interrupted.is_none();
        Ok(is_whole.then(|| same(self.counts(), &second.document)))
    }

    /// The counts so far.
    pub fn counts(&self) -> &Count {
        &self.first.document
    }

    /// There were these runs, too, for values.
    pub fn add_values(&mut self, run: Option<Run>) {
        self.values = run;
    }

    /// The runs so far; those for values are the last of them.
    pub fn runs(&self) -> Vec<Run> {
        let probed = self.counts().cost.iter().filter(|cost| cost.run != Purpose::Samples);
        let probed = probed.map(|cost| Run { run: cost.run, seconds: cost.seconds });
        probed.chain(self.values.clone()).collect()
    }

    /// Processor time of a live process in the counted window.
    pub fn spent(&self) -> Option<f64> {
        self.first.spent
    }

    /// Seconds of the last run of this kind.
    pub fn seconds_of(&self, run: Purpose) -> f64 {
        let runs = self.runs();
        runs.iter().rev().find(|one| one.run == run).map_or(0.0, |one| one.seconds)
    }

    /// Seconds of all further runs.
    pub fn seconds(&self) -> f64 {
        self.runs().iter().map(|run| run.seconds).sum()
    }
}

/// Whether two runs entered all blocks equally often.
fn same(one: &Count, other: &Count) -> bool {
    let sorted = |count: &Count| {
        let row = |row: &BlockRow| (row.module.clone(), row.start, row.count);
        let mut rows: Vec<(String, Address, u64)> = count.blocks.iter().map(row).collect();
        rows.sort();
        rows
    };
    sorted(one) == sorted(other)
}
