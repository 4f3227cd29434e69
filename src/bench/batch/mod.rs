//! Measures many blocks in parallel: rows in, measurements out, in order.

pub mod rows;
mod visits;

use super::{Measurement, Options, Profiler, Status, rejected};
use crate::batch::rows::Row;
use crate::batch::visits::merge_visits;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tma::{Error, Result};

/// Interval of [`Step::Wait`] while no row is done.
const TICK: Duration = Duration::from_millis(100);
/// Rows that each job may be ahead of the slowest.
const AHEAD: usize = 256;
/// How long a block of a batch may wait for an uncontended core on its first visit.
const FIRST_BUDGET: Duration = Duration::from_millis(100);

/// Progress of a batch.
#[derive(Debug)]
pub enum Step {
    /// The next row's measurement, in order.
    Row(Box<Measurement>),
    /// No row for a while: an opportunity to stop.
    Wait,
}

/// Measures one row; a malformed one is rejected.
///
/// # Errors
/// The sandbox cannot be started.
pub fn measure_row(profiler: &mut Profiler, row: &Row) -> Result<Measurement> {
    match row.block() {
        Ok(block) => {
            let guarded = std::panic::AssertUnwindSafe(|| profiler.measure(&block));
            // A bug of ours must cost only its own row.
            std::panic::catch_unwind(guarded).unwrap_or_else(|_| {
                Err(Error::failed(format!("internal error of tdtool on block {}", row.text))
                    .hint("please report the block; rerun with --resume to continue"))
            })
        }
        Err(error) => Ok(rejected(&row.text, error.to_string(), profiler.core())),
    }
}

/// Measures `rows` with one thread for each of `jobs`, on the processor it names, and passes each
/// measurement to `each`, in order. `each` returns whether to continue.
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
            // A batch reports neither bounds nor assumptions.
            let own = Options { cpu: *cpu, explain: false, assumptions: false, ..options.clone() };
            let ahead = AHEAD * jobs.len();
            scope.spawn(move || {
                let mut job = Job { next, written, rows, ahead, revisits: VecDeque::new() };
                let budget = own.budget;
                let mut profiler = Profiler::new(own);
                profiler.pin_to_worker_cpu();
                job.work(&mut profiler, budget, &sender);
            });
        }
        drop(sender);
        let outcome = in_order(&receiver, &written, rows.len(), &mut each);
        // Jobs end with their current block.
        next.store(rows.len(), Ordering::SeqCst);
        written.store(rows.len(), Ordering::SeqCst);
        drop(receiver);
        outcome
    })
}

/// One thread's share of a batch.
struct Job<'a> {
    next: &'a AtomicUsize,
    /// Rows passed on; all of them when the batch is to stop.
    written: &'a AtomicUsize,
    rows: &'a [Row],
    /// How far it may run ahead of the slowest row.
    ahead: usize,
    /// Rows whose first visit was unstable.
    revisits: VecDeque<Revisit>,
}

/// A row to visit again.
struct Revisit {
    row: usize,
    /// The row that it is visited before.
    before: usize,
    /// The measurement of the first visit.
    first: Measurement,
}

impl Job<'_> {
    /// Measures until no row is left. A block that is unstable on its first visit is visited again some
    /// rows later, with its full budget. There is no third visit.
    fn work(
        &mut self,
        profiler: &mut Profiler,
        budget: Duration,
        sender: &mpsc::SyncSender<(usize, Result<Measurement>)>,
    ) {
        while let Some((row, first)) = self.take() {
            profiler.set_budget(if first.is_some() { budget } else { budget.min(FIRST_BUDGET) });
            let measurement = match (measure_row(profiler, &self.rows[row]), first) {
                (Ok(first), None) if first.status == Status::Unstable => {
                    self.revisits.push_back(Revisit { row, before: row + self.ahead / 4, first });
                    continue;
                }
                (Ok(second), Some(first)) => Ok(merge_visits(&first, second)),
                (measurement, _) => measurement,
            };
            let failed = measurement.is_err();
            if sender.send((row, measurement)).is_err() || failed {
                return;
            }
        }
    }

    /// The next row, with the measurement of its first visit if there was one. Waits while the slowest
    /// row lags too far and there is no row to revisit.
    fn take(&mut self) -> Option<(usize, Option<Measurement>)> {
        let all = self.rows.len();
        loop {
            let (next, written) =
                (self.next.load(Ordering::SeqCst), self.written.load(Ordering::SeqCst));
            if written >= all {
                return None;
            }
            let full = next >= all || next > written.saturating_add(self.ahead);
            if self.revisits.front().is_some_and(|revisits| full || revisits.before <= next) {
                return self
                    .revisits
                    .pop_front()
                    .map(|revisits| (revisits.row, Some(revisits.first)));
            }
            if next >= all {
                return None;
            }
            if full {
                std::thread::sleep(Duration::from_millis(1));
            } else if self.claim(next) {
                return Some((next, None));
            }
        }
    }

    fn claim(&self, next: usize) -> bool {
        self.next.compare_exchange(next, next + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// Passes measurements on in order until all rows are done.
fn in_order(
    receiver: &mpsc::Receiver<(usize, Result<Measurement>)>,
    written: &AtomicUsize,
    all: usize,
    each: &mut impl FnMut(Step) -> Result<bool>,
) -> Result<()> {
    let mut arrived = BTreeMap::new();
    let mut done = 0;
    while done < all {
        match receiver.recv_timeout(TICK) {
            Ok((row, measurement)) => {
                arrived.insert(row, measurement?);
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
        while let Some(measurement) = arrived.remove(&done) {
            if !each(Step::Row(Box::new(measurement)))? {
                return Ok(());
            }
            done += 1;
            written.store(done, Ordering::SeqCst);
        }
    }
    Ok(())
}
