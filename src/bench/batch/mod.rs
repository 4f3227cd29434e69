//! Measures many blocks in parallel: rows in, measurements out, in order. `rows` reads the rows, `pace` chooses how
//! many jobs work at once.

mod pace;
pub mod rows;

use crate::timing::DOUBT;
use crate::{BlockMeasurer, Measurement, Options, Status, rejected};
use pace::Pace;
use rows::Row;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Interval of [`Step::Wait`] while no row is done.
const TICK: Duration = Duration::from_millis(100);
/// Rows that each job may be ahead of the slowest.
const AHEAD: usize = 256;
/// Rows that a job hands over at once, and how long the first of them may wait: a thread that is woken for
/// each row disturbs the next measurement.
const HAND_OVER: usize = 32;
const HAND_OVER_AFTER: Duration = Duration::from_millis(50);
/// Minimum length and rows of a window in which the rate is measured.
const WINDOW: Duration = Duration::from_millis(30);
const WINDOW_ROWS: usize = 32;
/// Pause of a job that is idle at present.
const PARKED: Duration = Duration::from_millis(5);
/// How long a block of a batch may wait for an uncontended core on its first visit.
const FIRST_BUDGET: Duration = Duration::from_millis(100);
/// Minimum cost limit of a row: enough for any block that only computes, however small its budget.
const LEAST_COST: Duration = Duration::from_millis(500);

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
fn measure_row(measurer: &mut BlockMeasurer, row: &Row) -> Result<Measurement> {
    match row.block() {
        Ok(block) => {
            let guarded = std::panic::AssertUnwindSafe(|| measurer.measure(&block));
            // A bug of ours must cost only its own row.
            std::panic::catch_unwind(guarded).unwrap_or_else(|_| {
                Err(Error::failed(format!("internal error of tdtool on block {}", row.text))
                    .hint("please report the block; rerun with --resume to continue"))
            })
        }
        Err(error) => Ok(rejected(&row.text, error.to_string(), measurer.core())),
    }
}

/// Measures `rows` with one thread for each of `jobs`, on the processor it names, and passes each
/// measurement to `each`, in order. `each` returns whether to continue. Where fewer jobs are faster, only
/// those work; returns the share of the time that they did.
///
/// # Errors
/// The sandbox cannot be started, or what `each` returns.
pub fn run(
    rows: &[Row],
    options: &Options,
    jobs: &[Option<usize>],
    mut each: impl FnMut(Step) -> Result<bool>,
) -> Result<f64> {
    let next = AtomicUsize::new(0);
    let written = AtomicUsize::new(0);
    let rates = Rates::new(jobs.len());
    std::thread::scope(|scope| {
        // A bounded channel, and workers that do not run far ahead of the slowest row.
        let (sender, receiver) = mpsc::sync_channel(4 * jobs.len().max(1));
        for (number, cpu) in jobs.iter().enumerate() {
            let (sender, next, written, rates) = (sender.clone(), &next, &written, &rates);
            // A batch reports neither bounds nor assumptions.
            let own = Options { cpu: *cpu, explain: false, assumptions: false, ..options.clone() };
            let ahead = AHEAD * jobs.len();
            scope.spawn(move || {
                let outbox = Outbox { sender, rows: Vec::new(), since: Instant::now() };
                let revisits = VecDeque::new();
                let mut job = Job { number, rates, next, written, rows, ahead, revisits, outbox };
                let budget = own.budget;
                let mut measurer = BlockMeasurer::new(own);
                measurer.pin_to_worker_cpu();
                job.work(&mut measurer, budget);
            });
        }
        drop(sender);
        let outcome = in_order(&receiver, &written, rows.len(), &mut each);
        // Jobs end with their current block.
        next.store(rows.len(), Ordering::SeqCst);
        written.store(rows.len(), Ordering::SeqCst);
        drop(receiver);
        outcome
    })?;
    Ok(rates.fewer())
}

/// Rates of all jobs.
struct Rates {
    /// Rows measured in the present window.
    rows: AtomicUsize,
    /// Number of jobs; jobs at work (the lowest numbers); jobs at rest.
    jobs: usize,
    working: AtomicUsize,
    resting: AtomicUsize,
    /// The decision, and when the present window began; only the first job changes it.
    pace: Mutex<(Pace, Instant)>,
}

impl Rates {
    fn new(jobs: usize) -> Self {
        let pace = Mutex::new((Pace::new(jobs), Instant::now()));
        let (rows, resting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { rows, jobs, working: AtomicUsize::new(jobs), resting, pace }
    }

    /// Job `number` has measured a row.
    fn count(&self, number: usize) {
        self.rows.fetch_add(1, Ordering::SeqCst);
        if number > 0 {
            return;
        }
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let working = self.working.load(Ordering::SeqCst);
        // Others finish their rows first, which may take a while where they slow each other down.
        if self.resting.load(Ordering::SeqCst) < self.jobs - working {
            self.rows.store(0, Ordering::SeqCst);
            pace.1 = Instant::now();
            return;
        }
        let took = pace.1.elapsed();
        if took >= WINDOW && self.rows.load(Ordering::SeqCst) >= WINDOW_ROWS {
            pace.0.end_window(self.rows.swap(0, Ordering::SeqCst), took.as_secs_f64());
            pace.1 = Instant::now();
            self.working.store(pace.0.jobs(), Ordering::SeqCst);
        }
    }

    /// Whether job `number` works at present.
    fn works(&self, number: usize) -> bool {
        number < self.working.load(Ordering::SeqCst)
    }

    /// The share of the time in which fewer jobs worked.
    fn fewer(&self) -> f64 {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).0.fewer()
    }
}

/// One thread's share of a batch.
struct Job<'a> {
    /// Its number, from 0.
    number: usize,
    rates: &'a Rates,
    next: &'a AtomicUsize,
    /// Rows passed on; all of them when the batch is to stop.
    written: &'a AtomicUsize,
    rows: &'a [Row],
    /// Rows that it may run ahead of the slowest.
    ahead: usize,
    /// Rows whose first visit was unstable.
    revisits: VecDeque<Revisit>,
    outbox: Outbox,
}

/// A row's number and its measurement.
type Done = (usize, Result<Measurement>);

/// Measurements to hand over.
struct Outbox {
    sender: mpsc::SyncSender<Vec<Done>>,
    rows: Vec<Done>,
    /// When it was empty last.
    since: Instant,
}

impl Outbox {
    /// Adds a row; whether anybody still wants more.
    fn add(&mut self, row: Done) -> bool {
        self.rows.push(row);
        self.rows.len() < HAND_OVER && self.since.elapsed() < HAND_OVER_AFTER || self.hand_over()
    }

    /// Hands all rows over; whether anybody took them.
    fn hand_over(&mut self) -> bool {
        self.since = Instant::now();
        self.rows.is_empty() || self.sender.send(std::mem::take(&mut self.rows)).is_ok()
    }
}

/// A row to visit again.
struct Revisit {
    row: usize,
    /// Visited before this row.
    before: usize,
    /// The measurement of the first visit.
    first: Measurement,
    /// Time that the row may still take.
    left: Duration,
}

impl Job<'_> {
    /// Measures until no row is left. A block that is unstable on its first visit is visited again some
    /// rows later, with the rest of its budget. There is no third visit. No row costs more than its budget.
    fn work(&mut self, measurer: &mut BlockMeasurer, budget: Duration) {
        while let Some((row, first)) = self.take() {
            let (first, left) =
                first.map_or((None, budget.max(LEAST_COST)), |(first, left)| (Some(first), left));
            measurer.set_budget(if first.is_some() {
                budget.min(left)
            } else {
                budget.min(FIRST_BUDGET)
            });
            let start = Instant::now();
            measurer.set_end(Some(start + left));
            let measured = measure_row(measurer, &self.rows[row]);
            let left = left.saturating_sub(start.elapsed());
            self.rates.count(self.number);
            let measurement = match (measured, first) {
                (Ok(first), None) if first.status == Status::Unstable && left >= FIRST_BUDGET => {
                    let before = row + self.ahead / 4;
                    self.revisits.push_back(Revisit { row, before, first, left });
                    continue;
                }
                (Ok(second), Some(first)) => Ok(merge_visits(&first, second)),
                (measurement, _) => measurement,
            };
            let failed = measurement.is_err();
            if !self.outbox.add((row, measurement)) || failed {
                break;
            }
        }
        self.outbox.hand_over();
    }

    /// The next row, with the measurement of its first visit if there was one. Waits while the slowest
    /// row lags too far, or while fewer jobs work, unless there is a row to revisit.
    fn take(&mut self) -> Option<(usize, Option<(Measurement, Duration)>)> {
        let all = self.rows.len();
        loop {
            let (next, written) =
                (self.next.load(Ordering::SeqCst), self.written.load(Ordering::SeqCst));
            if written >= all {
                return None;
            }
            let full = next >= all || next > written.saturating_add(self.ahead);
            if self.revisits.front().is_some_and(|revisits| full || revisits.before <= next) {
                let next = self.revisits.pop_front();
                return next.map(|revisit| (revisit.row, Some((revisit.first, revisit.left))));
            }
            if next >= all {
                return None;
            }
            if full || !self.rates.works(self.number) {
                self.outbox.hand_over();
                self.rates.resting.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(if full { Duration::from_millis(1) } else { PARKED });
                self.rates.resting.fetch_sub(1, Ordering::SeqCst);
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
    receiver: &mpsc::Receiver<Vec<Done>>,
    written: &AtomicUsize,
    all: usize,
    each: &mut impl FnMut(Step) -> Result<bool>,
) -> Result<()> {
    let mut arrived = BTreeMap::new();
    let mut done = 0;
    while done < all {
        match receiver.recv_timeout(TICK) {
            Ok(rows) => {
                for (row, measurement) in rows {
                    arrived.insert(row, measurement?);
                }
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

/// The measurement of the second visit to a block that was unstable on its first, some rows earlier; unstable if the
/// first contradicts it: if rounds of an uncontended first visit were much faster, the second saw only a slower
/// state, and there is no single number. A contended first visit is ignored.
fn merge_visits(first: &Measurement, second: Measurement) -> Measurement {
    let (Some(then), Some(now)) = (&first.throughput, &second.throughput) else { return second };
    let is_slower = now.cycles > then.low * (1.0 + DOUBT);
    if second.status != Status::Ok || first.is_contended() || !is_slower {
        return second;
    }
    let reason = format!(
        "two visits disagree: the first measured {:.3} to {:.3} cycles without a common state, the \
         second {:.3}",
        then.low, then.high, now.cycles
    );
    let mut merged = second;
    merged.distrust(Status::Unstable, reason, false);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Throughput;

    fn measurement(status: Status, cycles: f64, low: f64, high: f64) -> Measurement {
        let throughput = Throughput { cycles, low, high, modes: Vec::new(), clock: "tsc" };
        Measurement {
            status,
            throughput: Some(throughput),
            ..crate::rejected("90", String::new(), &tma::Core::default())
        }
    }

    #[test]
    fn the_second_visit_decides_unless_the_first_was_much_faster() {
        let first = measurement(Status::Unstable, 1.1, 1.0, 1.3);
        let again =
            |cycles| merge_visits(&first, measurement(Status::Ok, cycles, cycles, cycles)).status;
        // As fast as the first at its fastest, faster, and up to a tenth slower.
        assert_eq!((again(1.0), again(0.9), again(1.09)), (Status::Ok, Status::Ok, Status::Ok));
        assert_eq!((again(1.11), again(1.3)), (Status::Unstable, Status::Unstable));
        let still = merge_visits(&first, measurement(Status::Unstable, 1.0, 0.9, 1.2));
        assert_eq!((still.status, still.throughput.unwrap().low), (Status::Unstable, 0.9));
    }

    #[test]
    fn a_first_visit_beside_a_neighbour_says_nothing() {
        let mut first = measurement(Status::Unstable, 1.1, 0.5, 1.3);
        (first.samples.accepted, first.samples.contended) = (100, 60);
        let second = merge_visits(&first, measurement(Status::Ok, 1.0, 1.0, 1.0));
        assert_eq!(second.status, Status::Ok);
    }
}
