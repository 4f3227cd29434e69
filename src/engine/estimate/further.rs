//! Makes the further runs of the command, with their counts by module and address.

use super::ask::{EstimateAsk, Functions, Parallel};
use super::pinned;
use super::repeated::{Repeated, is_by_the_clock, rare};
use crate::count::{CountAsk, First};
use crate::processes::of_children;
use crate::steps::Places;
use pmu::perf::Signals;
use probe::bursts::Spread;
use report::documents::Purpose;
use report::documents::count::{BranchKind, BranchRow, Count, LoadRow};
use report::documents::estimate::Run;
use report::documents::evidence::{Pinned, Why};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tma::Result;

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
    pub values: Option<Run>,
    /// A run on one CPU.
    alone: Option<Run>,
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
            command: pmu::Command { stdout: pmu::Stdout::Dropped, ..ask.command.clone() },
            process: ask.process,
            windows: false,
            modules: Vec::new(),
            functions: Vec::new(),
            hot: Some(found.counted()),
            plain: false,
            loads: false,
            loads_of: None,
            values: None,
            branches: None,
            branches_of: None,
            rarest: RAREST,
            only: None,
            watch: None,
        };
        let mut first = First::of(&ask, None, &signals, &mut |_, _| {})?;
        let interrupted = first.further(&ask, &signals, &mut |_, _| {})?;
        Ok(Self { ask, signals, first, values: None, alone: None, interrupted })
    }

    /// Records mispredictions, of functions that begin in some code, if that is given.
    ///
    /// # Errors
    /// The command cannot be started or traced.
    pub fn branches(&mut self, ask: &EstimateAsk, of: Option<Places>) -> Result<()> {
        let branches = Some(ask.model.core.clone());
        self.run(&CountAsk { branches, branches_of: of, ..self.ask.clone() })
    }

    /// Records branches and loads, as far as wanted, in windows of one run: the kinds that saw enough. Branches are those of
    /// functions that begin in some code, if that is given.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn in_windows(
        &mut self,
        ask: &EstimateAsk,
        wanted: Wanted,
        (branches_of, loads_of): (Option<Places>, Places),
        spread: Spread,
    ) -> Result<Wanted> {
        let asked = CountAsk {
            branches: wanted.branches.then(|| ask.model.core.clone()),
            loads: wanted.loads,
            branches_of,
            loads_of: Some(loads_of),
            ..self.ask.clone()
        };
        let found = self.first.in_windows(&asked, &self.signals, spread)?;
        self.interrupted = found.interrupted;
        Ok(Wanted { branches: found.branches, loads: found.loads })
    }

    /// Whether the command is one process.
    pub fn is_one_process(&self) -> bool {
        self.first.is_one_process()
    }

    fn run(&mut self, ask: &CountAsk) -> Result<()> {
        self.interrupted = self.first.further(ask, &self.signals, &mut |_, _| {})?;
        Ok(())
    }

    /// Records addresses and latencies of the loads of some code.
    ///
    /// # Errors
    /// As [`Further::branches`].
    pub fn loads(&mut self, of: Places) -> Result<()> {
        self.run(&CountAsk { loads: true, loads_of: Some(of), ..self.ask.clone() })?;
        if self.interrupted.is_some() {
            // Interrupted, they are of a part of the run.
            let document = &mut self.first.document;
            document.loads.clear();
            document.timer = None;
        }
        Ok(())
    }

    /// Samples a run on one CPU, to be compared with the sampled one.
    pub fn pinned(&mut self, ask: &EstimateAsk, of: Parallel) -> Pinned {
        let found = pinned::run(ask, of, &self.signals, &mut self.interrupted);
        let whole = |error: tma::Error| match error.cause() {
            Some(cause) => Why(format!("{error}: {cause}")),
            None => Why(error.to_string()),
        };
        let failed = |error| Pinned { failed: Some(whole(error)), ..Pinned::default() };
        let found = found.unwrap_or_else(failed);
        let run = Run { run: Purpose::Pinned, seconds: found.seconds };
        self.alone = (found.seconds > 0.0).then_some(run);
        found
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

    /// Counts once more, in a run of the command that takes hardly longer than one without probes: how it differs from the
    /// counted one; `None` if it was interrupted.
    ///
    /// # Errors
    /// As [`Further::branches`].
    pub fn repeated(&mut self, found: &Functions) -> Result<Option<Repeated>> {
        let before = of_children();
        let only = Some(Arc::new(rare(self.counts(), found.hot.seconds)));
        let ask = CountAsk { only, ..self.ask.clone() };
        let mut second = First::of(&ask, None, &self.signals, &mut |_, _| {})?;
        self.interrupted = second.further(&ask, &self.signals, &mut |_, _| {})?;
        let cost = second.document.cost.iter().filter(|cost| cost.run == Purpose::Counts).cloned();
        self.first.document.cost.extend(cost);
        let is_whole = self.interrupted.is_none();
        // Others may have taken more of the time that a clock gives it.
        let spent = of_children() - before;
        let time = found.task.filter(|_| spent > 0.0).map_or(1.0, |task| task / spent);
        Ok(is_whole.then(|| Repeated::of(self.counts(), &second.document, &found.hot, time)))
    }

    /// Whether a clock may have ended the counted run.
    pub fn is_by_the_clock(&self, found: &Functions) -> bool {
        is_by_the_clock(self.counts(), self.seconds_of(Purpose::Counts), found)
    }

    /// The counts so far.
    pub fn counts(&self) -> &Count {
        &self.first.document
    }

    /// The runs so far; those for values are the last of them.
    pub fn runs(&self) -> Vec<Run> {
        let probed = self.counts().cost.iter().filter(|cost| cost.run != Purpose::Samples);
        let probed = probed.map(|cost| Run { run: cost.run, seconds: cost.seconds });
        probed.chain(self.alone.clone()).chain(self.values.clone()).collect()
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

/// Why the entries of a block are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Uncounted {
    /// No probe was in its function.
    NotProbed,
    /// As the document of the counts or of the evidence says.
    Told(String),
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotProbed => "its entries were not counted",
            Self::Told(why) => why,
        })
    }
}

/// The rows of a document of counts.
pub(super) struct Counted<'a> {
    /// The document.
    pub count: &'a Count,
    /// Entries by module and first address, with the address after.
    blocks: HashMap<&'a str, BTreeMap<u64, (u64, u64)>>,
    edges: HashMap<(&'a str, u64, u64), u64>,
    branches: HashMap<&'a str, BTreeMap<u64, &'a BranchRow>>,
    loads: HashMap<&'a str, BTreeMap<u64, &'a LoadRow>>,
    stores: HashMap<&'a str, BTreeMap<u64, &'a LoadRow>>,
    refused: HashMap<(&'a str, u64), &'a str>,
}

impl<'a> Counted<'a> {
    /// Indexes the rows of a document.
    pub fn new(count: &'a Count) -> Self {
        let mut found = Self {
            count,
            blocks: HashMap::new(),
            edges: HashMap::new(),
            branches: HashMap::new(),
            loads: HashMap::new(),
            stores: HashMap::new(),
            refused: HashMap::new(),
        };
        for row in &count.blocks {
            let of = found.blocks.entry(&row.module).or_default();
            of.insert(row.start.0, (row.end.0, row.count));
        }
        for row in &count.edges {
            if let Some(count) = row.count {
                found.edges.insert((&row.module, row.from.0, row.to.0), count);
            }
        }
        for row in count.branches.iter().filter(|row| row.kind != BranchKind::Return) {
            found.branches.entry(&row.module).or_default().insert(row.address.0, row);
        }
        for row in &count.loads {
            found.loads.entry(&row.module).or_default().insert(row.address.0, row);
        }
        for row in &count.stores {
            found.stores.entry(&row.module).or_default().insert(row.address.0, row);
        }
        for row in &count.refused {
            found.refused.insert((&row.module, row.start.0), &row.reason);
        }
        found
    }

    /// Entries of the block that begins at an address, or has it inside.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn entries(&self, module: &str, at: u64) -> std::result::Result<u64, Uncounted> {
        let before = self.blocks.get(module).and_then(|all| all.range(..=at).next_back());
        match before {
            Some((_, (end, count))) if at < *end => Ok(*count),
            _ => Err(match self.refused.get(&(module, at)) {
                Some(why) => Uncounted::Told((*why).to_owned()),
                None => Uncounted::NotProbed,
            }),
        }
    }

    /// Whether any block in a range was entered.
    pub fn ran(&self, module: &str, range: Range<u64>) -> bool {
        let mut own = self.blocks.get(module).into_iter().flat_map(|all| all.range(range.clone()));
        own.any(|(_, (_, count))| *count > 0)
    }

    /// How often an edge was taken.
    pub fn edge(&self, module: &str, from: u64, to: u64) -> Option<u64> {
        self.edges.get(&(module, from, to)).copied()
    }

    /// The branches in a range.
    pub fn branches(&self, module: &str, range: Range<u64>) -> impl Iterator<Item = &'a BranchRow> {
        within(&self.branches, module, range)
    }

    /// The loads in a range.
    pub fn loads(&self, module: &str, range: Range<u64>) -> impl Iterator<Item = &'a LoadRow> {
        within(&self.loads, module, range)
    }

    /// The stores in a range.
    pub fn stores(&self, module: &str, range: Range<u64>) -> impl Iterator<Item = &'a LoadRow> {
        within(&self.stores, module, range)
    }
}

fn within<'a, R>(
    rows: &HashMap<&'a str, BTreeMap<u64, &'a R>>,
    module: &str,
    range: Range<u64>,
) -> impl Iterator<Item = &'a R> {
    let own = rows.get(module).into_iter();
    own.flat_map(move |all| all.range(range.clone())).map(|(_, row)| *row)
}
