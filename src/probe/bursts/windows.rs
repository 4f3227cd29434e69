//! Recordings of several kinds in one run of a command, which runs untraced but for windows: each has the probes of one
//! kind, in turn, so that what one kind costs is not in what another one sees.

use super::observing::{Observing, recorded_of};
use super::request::{Pace, Recorded};
use crate::facts::Function;
use crate::patch::{Blocks, Patcher, Target, Wanted, Window, targets, watched_again};
use crate::plan::{Request, What};
use crate::process::{Untraced, Watched};
use pmu::Command;
use pmu::perf::Signals;
use std::sync::Arc;
use std::time::Duration;
use tma::Result;
use tma::text::several;

/// How windows are spread over a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Length of each.
    pub length: Duration,
    /// Time between two, on average, for which the command runs without probes.
    pub pause: Duration,
    /// The most of each kind.
    pub most: usize,
}

/// Kinds of recordings of the same functions.
pub struct Windows<'a> {
    targets: Arc<[Target]>,
    kinds: Vec<(Observing, Recorded)>,
    signals: &'a Signals,
    /// Windows in which the process could not be stopped.
    failed: usize,
}

impl<'a> Windows<'a> {
    /// Analyses the functions.
    pub fn of(wanted: &[Wanted], signals: &'a Signals) -> Self {
        Self {
            targets: targets(wanted, Blocks::All, signals),
            kinds: Vec::new(),
            signals,
            failed: 0,
        }
    }

    /// Adds a kind, with the instructions of each function, by its index, and the pace in each window. Allocations are not
    /// recorded: their probes make calls, which may last longer than a window.
    pub fn add(&mut self, requests: &dyn Fn(usize, &Function) -> Vec<Request>, pace: Pace) {
        let without_calls = |number: usize, function: &Function| {
            let mut all = requests(number, function);
            all.retain(|request| !matches!(request.what, What::Allocated { .. }));
            all
        };
        let observing = Observing::new(&self.targets, &without_calls, pace, true);
        let recorded = Recorded { observed: observing.unobserved(), ..Recorded::default() };
        self.kinds.push((observing, recorded));
    }

    /// Runs the command once; what was recorded of each kind, in the order in which they were added. A window in which the
    /// process cannot be stopped is left out.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn run(mut self, command: &Command, spread: Spread) -> Result<Vec<Recorded>> {
        let mut running = match Untraced::start(command, self.signals)? {
            Ok(running) => running,
            Err(signal) => {
                return Ok(self.kinds.iter().map(|_| Recorded::interrupted(signal)).collect());
            }
        };
        for window in 0..spread.most * self.kinds.len() {
            if !running.pauses(window, spread.pause)
                || !self.record(window, &mut running, spread.length)
            {
                break;
            }
        }
        let followed = running.end();
        if let (Some((_, first)), 1..) = (self.kinds.first_mut(), self.failed) {
            let failed = self.failed;
            first
                .notes
                .push(format!("in {} the process could not be stopped", several(failed, "window")));
        }
        if let Some((_, first)) = self.kinds.iter_mut().find(|(_, recorded)| recorded.remains) {
            first.notes.push(
                "the code could not be restored after a window; no other followed".to_owned(),
            );
        }
        let whole = |(_, recorded): (Observing, Recorded)| Recorded {
            wall: followed.wall,
            exit: followed.exit,
            interrupted: followed.interrupted,
            remains: false,
            ..recorded
        };
        Ok(self.kinds.into_iter().map(whole).collect())
    }

    /// Records the kind whose turn it is; whether there may be other windows.
    fn record(&mut self, window: usize, running: &mut Untraced, length: Duration) -> bool {
        let number = window % self.kinds.len();
        let (observing, recorded) = &mut self.kinds[number];
        let of = Window { pid: running.pid(), is_child: true, length, signals: self.signals };
        let collect =
            |patcher: Patcher<Observing>, watched: &Watched| recorded_of(patcher, watched);
        // Its calls are not replaced, so that only a handler of a signal returns to the middle of its code.
        let joins = !running.handles();
        let again = observing.again(joins);
        match watched_again(&of, Arc::clone(&self.targets), again, &collect) {
            Ok(Ok(found)) => {
                running.interrupted = found.interrupted;
                recorded.add(found);
            }
            Ok(Err(signal)) => running.interrupted = Some(signal),
            // It is as it was: perhaps the next one.
            Err(_) => self.failed += 1,
        }
        !recorded.remains
    }
}
