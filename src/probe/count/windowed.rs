//! Counts in windows of one run of a command, which runs without probes in between: a sample of a long run.

use super::counting::{Counting, Running};
use super::counts::Counts;
use super::interrupted;
use super::result::{Found, Run, counts};
use crate::patch::{Blocks, Patcher, Wanted, Window, targets, watched_again};
use crate::process::{Untraced, Watched};
use pmu::Command;
use pmu::perf::Signals;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::text::several;
use tma::{Error, Result};

/// Share of the time in windows, in which probes slow a program two to five times.
const SHARE: f64 = 0.2;
/// Before the first window, on average; and the shortest window.
const FIRST: Duration = Duration::from_millis(200);
const SHORTEST: Duration = Duration::from_millis(50);
/// Share of the time before by which windows become longer: those of a long run are few.
const GROWTH: f64 = 0.05;

/// Runs the command and counts the blocks of these functions in windows, a fifth of the time.
///
/// # Errors
/// The command cannot be started, or ends before it was counted.
pub fn count_windows(command: &Command, wanted: &[Wanted], signals: &Signals) -> Result<Counts> {
    let targets = targets(wanted, Blocks::All, signals);
    let mut running = match Untraced::start(command, signals)? {
        Ok(running) => running,
        Err(signal) => return Ok(interrupted(wanted, signal)),
    };
    let begin = Instant::now();
    let mut all = Windows::default();
    let mut pause = FIRST;
    for number in 0.. {
        if all.remains || !running.pauses(number, pause) {
            break;
        }
        let length = SHORTEST.max(begin.elapsed().mul_f64(GROWTH));
        let of = Window { pid: running.pid(), is_child: true, length, signals };
        let code = if running.handles() { Running::Live } else { Running::Joined };
        let collect = |patcher: Patcher<Counting>, watched: &Watched| {
            (Run::of_window(watched, 0), Found::of(patcher))
        };
        let start = Instant::now();
        match watched_again(&of, Arc::clone(&targets), Counting::new(code, &targets), &collect) {
            Ok(Ok((run, found))) => {
                running.interrupted = run.interrupted;
                all.add(&run, found);
            }
            Ok(Err(signal)) => running.interrupted = Some(signal),
            // It is as it was: perhaps the next one.
            Err(_) => all.failed += 1,
        }
        // Plans may need the processor of the command.
        let beside = start.elapsed().saturating_sub(length);
        pause = length.max(beside).mul_f64(1.0 / SHARE - 1.0);
    }
    let followed = running.end();
    let Some(found) = all.found.take() else {
        if let Some(signal) = followed.interrupted {
            return Ok(interrupted(wanted, signal));
        }
        let ran = format!("it ran for {:.2} s", followed.wall.as_secs_f64());
        return Err(Error::failed("the command ended before it was counted")
            .because(ran)
            .hint("count all of it: leave out --windows"));
    };
    let run = Run {
        is_window: true,
        remains: all.remains,
        notes: all.notes(followed.wall),
        slack: all.slack,
        ..Run::of_command(&followed)
    };
    Ok(counts(found, wanted, run))
}

/// All windows so far.
#[derive(Default)]
struct Windows {
    number: u64,
    /// Those in which the process could not be stopped.
    failed: u64,
    wall: Duration,
    slack: u64,
    found: Option<Found>,
    remains: bool,
}

impl Windows {
    fn add(&mut self, run: &Run, found: Found) {
        self.number += 1;
        self.wall += run.wall;
        self.slack += run.slack;
        self.remains |= run.remains;
        match &mut self.found {
            Some(all) => all.add(found),
            None => self.found = Some(found),
        }
    }

    fn notes(&self, wall: Duration) -> Vec<String> {
        let windows = several(self.number, "window");
        let [own, all] = [self.wall, wall].map(|time| time.as_secs_f64());
        let mut notes = vec![format!("counted in {windows}, {own:.1} s of {all:.1}: a sample")];
        if self.failed > 0 {
            let failed = several(self.failed, "further window");
            notes.push(format!("in {failed} the process could not be stopped"));
        }
        if self.remains {
            notes.push(
                "the code could not be restored after a window; no other followed".to_owned(),
            );
        }
        notes
    }
}
