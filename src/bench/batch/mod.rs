//! Thousands of blocks: rows in, rows out, in order.

pub mod rows;
mod visits;

use super::{Measurement, Options, Profiler, Status, rejected};
use crate::batch::rows::Row;
use crate::batch::visits::settled;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tma::{Error, Result};

/// How often [`Step::Wait`] comes while no row is done.
const TICK: Duration = Duration::from_millis(100);
/// Rows that each job may be ahead of the slowest.
const AHEAD: usize = 256;
/// How long a block of a batch may wait for a calm core the first time.
const FIRST: Duration = Duration::from_millis(100);

/// What a batch tells while it runs.
#[derive(Debug)]
pub enum Step {
    /// The next row's report, in the order of the rows.
    Row(Box<Measurement>),
    /// Nothing for a while: an occasion to stop.
    Wait,
}

/// One row's report: a malformed row is rejected.
///
/// # Errors
/// The sandbox cannot be started.
pub fn measure_row(profiler: &mut Profiler, row: &Row) -> Result<Measurement> {
    match row.block() {
        Ok(block) => {
            let guarded = std::panic::AssertUnwindSafe(|| profiler.measure(&block));
            // One row that trips over a mistake of ours must not take the others with it.
            std::panic::catch_unwind(guarded).unwrap_or_else(|_| {
                Err(Error::failed(format!("a mistake of tdtool's own on block {}", row.text))
                    .hint("report the block; --resume goes on from there once it is repaired"))
            })
        }
        Err(error) => Ok(rejected(&row.text, error.to_string(), profiler.core())),
    }
}

/// Measures `rows`, each of `jobs` on the processor it names, and gives each report to `each`, in
/// order. `each` returns whether to go on.
///
/// # Errors
/// The sandbox cannot be started, or what `each` returns.
pub fn run(
    rows: &[Row],
    options: &Options,
    jobs: &[Option<usize>],
    mut each: impl FnMut(Step) -> Result<bool>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let written = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // A bounded channel, and workers that do not run far ahead of the slowest row.
        let (sender, receiver) = mpsc::sync_channel(4 * jobs.len().max(1));
        for cpu in jobs {
            let (sender, next, written) = (sender.clone(), &next, &written);
            // Bounds and assumptions are for a block by itself.
            let own = Options { cpu: *cpu, explain: false, assumptions: false, ..options.clone() };
            let ahead = AHEAD * jobs.len();
            scope.spawn(move || {
                let mut job = Job { next, written, rows, ahead, again: VecDeque::new() };
                let budget = own.budget;
                let mut profiler = Profiler::new(own);
                profiler.pin_to_worker_cpu();
                job.work(&mut profiler, budget, &sender);
            });
        }
        drop(sender);
        let outcome = in_order(&receiver, &written, rows.len(), &mut each);
        // Jobs end with the block they are at.
        next.store(rows.len(), Ordering::SeqCst);
        written.store(rows.len(), Ordering::SeqCst);
        drop(receiver);
        outcome
    })
}

/// One thread's share of a batch.
struct Job<'a> {
    next: &'a AtomicUsize,
    /// Rows handed on; all of them when the batch is to stop.
    written: &'a AtomicUsize,
    rows: &'a [Row],
    /// How far it may run ahead of the slowest row.
    ahead: usize,
    /// Rows whose first visit gave no number.
    again: VecDeque<Again>,
}

/// A row that is visited once more.
struct Again {
    row: usize,
    /// Which row it is tried again before.
    before: usize,
    /// What the first visit said.
    first: Measurement,
}

impl Job<'_> {
    /// Measures until no row is left. A block that finds the core shared, or does not reproduce, is
    /// put back for a while rather than waited for, and gets its full time when its turn comes again.
    /// There is no third visit.
    fn work(
        &mut self,
        profiler: &mut Profiler,
        budget: Duration,
        sender: &mpsc::SyncSender<(usize, Result<Measurement>)>,
    ) {
        while let Some((row, first)) = self.take() {
            profiler.set_budget(if first.is_some() { budget } else { budget.min(FIRST) });
            let measurement = match (measure_row(profiler, &self.rows[row]), first) {
                (Ok(first), None) if first.status == Status::Unstable => {
                    self.again.push_back(Again { row, before: row + self.ahead / 4, first });
                    continue;
                }
                (Ok(second), Some(first)) => Ok(settled(&first, second)),
                (measurement, _) => measurement,
            };
            let failed = measurement.is_err();
            if sender.send((row, measurement)).is_err() || failed {
                return;
            }
        }
    }

    /// The next row, and what its first visit said if there was one. Waits while the slowest row is
    /// too far behind and none of them is its own.
    fn take(&mut self) -> Option<(usize, Option<Measurement>)> {
        let all = self.rows.len();
        loop {
            let (next, written) =
                (self.next.load(Ordering::SeqCst), self.written.load(Ordering::SeqCst));
            if written >= all {
                return None;
            }
            let full = next >= all || next > written.saturating_add(self.ahead);
            if self.again.front().is_some_and(|again| full || again.before <= next) {
                return self.again.pop_front().map(|again| (again.row, Some(again.first)));
            }
            if next >= all {
                return None;
            }
            if full {
                std::thread::sleep(Duration::from_millis(1));
            } else if self.exchange(next) {
                return Some((next, None));
            }
        }
    }

    fn exchange(&self, next: usize) -> bool {
        self.next.compare_exchange(next, next + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// Hands on what arrives out of order in order, until all rows are there.
fn in_order(
    receiver: &mpsc::Receiver<(usize, Result<Measurement>)>,
    written: &AtomicUsize,
    all: usize,
    each: &mut impl FnMut(Step) -> Result<bool>,
) -> Result<()> {
    let mut waiting = BTreeMap::new();
    let mut done = 0;
    while done < all {
        match receiver.recv_timeout(TICK) {
            Ok((row, measurement)) => {
                waiting.insert(row, measurement?);
            }
            Err(RecvTimeoutError::Timeout) => {
                if !each(Step::Wait)? {
                    return Ok(());
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::failed("a job of the batch ended before its rows"));
            }
        }
        while let Some(measurement) = waiting.remove(&done) {
            if !each(Step::Row(Box::new(measurement)))? {
                return Ok(());
            }
            done += 1;
            written.store(done, Ordering::SeqCst);
        }
    }
    Ok(())
}
