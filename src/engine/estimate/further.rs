//! Further runs of the command.

use super::ask::EstimateAsk;
use super::functions::Functions;
use crate::count::{CountAsk, counted};
use crate::documents::Exit;
use crate::documents::count::Count;
use crate::documents::estimate::Run;
use tma::Result;

/// Notes of counts that were ended begin so.
const INTERRUPTED: &str = "interrupted";

/// What is recorded beside counts, each in runs of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub branches: bool,
    pub loads: bool,
}

impl Wanted {
    /// In words.
    pub fn name(self) -> &'static str {
        match (self.branches, self.loads) {
            (true, true) => "counts, branches and loads",
            (true, false) => "counts and branches",
            (false, true) => "counts and loads",
            (false, false) => "counts",
        }
    }
}

/// Counts the hot functions; with branches and loads in further runs. The signal that interrupted them.
///
/// # Errors
/// The command cannot be started or traced; none of the functions can be counted.
pub(super) fn run(
    ask: &EstimateAsk,
    found: &Functions,
    wanted: Wanted,
) -> Result<(Count, Option<i32>)> {
    let ask = CountAsk {
        // Its output belongs where that of the first run went once only.
        command: pmu::Command { stdout_to_stderr: true, ..ask.command.clone() },
        process: None,
        modules: Vec::new(),
        functions: Vec::new(),
        hot: Some(found.hot.clone()),
        plain: false,
        loads: wanted.loads,
        values: None,
        branches: wanted.branches.then(|| ask.model.core.clone()),
    };
    let (count, code) = counted(&ask, &mut |_, _| {})?;
    let interrupted = count.notes.iter().any(|note| note.starts_with(INTERRUPTED));
    Ok((count, interrupted.then_some(code - 128)))
}

/// The runs that a document of counts is from.
pub(super) fn runs(count: &Count) -> impl Iterator<Item = Run> + '_ {
    let probed = count.cost.iter().filter(|cost| cost.run != "samples");
    probed.map(|cost| Run { run: cost.run.clone(), seconds: cost.seconds })
}

/// Whether two runs entered all blocks equally often.
pub(super) fn same(one: &Count, other: &Count) -> bool {
    let sorted = |count: &Count| {
        let row = |row: &crate::documents::count::BlockRow| {
            (row.module.clone(), row.start.clone(), row.count)
        };
        let mut rows: Vec<(String, String, u64)> = count.blocks.iter().map(row).collect();
        rows.sort();
        rows
    };
    sorted(one) == sorted(other)
}

/// An end as probes report it.
pub(super) fn ended(exit: Exit) -> pmu::Exit {
    match exit {
        Exit::Status(status) => pmu::Exit::Status(status),
        Exit::Signal(signal) => pmu::Exit::Signal(signal),
    }
}
