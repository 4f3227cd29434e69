//! A command that runs untraced, but for windows in which it is watched.

use super::followed::{Followed, passed_on};
use super::seize::{handles, threads};
use pmu::Command;
use pmu::perf::{Child, Signals};
use std::time::{Duration, Instant};
use tma::Result;

/// Poll interval.
const POLL: Duration = Duration::from_millis(1);

/// A command that has been started.
pub struct Untraced<'a> {
    child: Child,
    signals: &'a Signals,
    begin: Instant,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
}

impl<'a> Untraced<'a> {
    /// Starts it; `None` after a signal, which is its number.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        command: &Command,
        signals: &'a Signals,
    ) -> Result<std::result::Result<Self, i32>> {
        if let Some((signal, _)) = signals.next() {
            return Ok(Err(signal));
        }
        let mut child = Child::prepare(command)?;
        child.start()?;
        Ok(Ok(Self { child, signals, begin: Instant::now(), interrupted: None }))
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.pid
    }

    /// Whether a thread of it may be in a signal handler.
    pub fn handles(&self) -> bool {
        threads(self.child.pid).into_iter().any(handles)
    }

    /// Lets it run for the pause of a number, which is so long on average: pauses differ, as the program may have periods.
    pub fn pauses(&mut self, number: usize, mean: Duration) -> bool {
        self.runs_for(mean.mul_f64(0.5 + spaced(number)))
    }

    /// Lets it run for a time; whether it still does, and was not interrupted.
    fn runs_for(&mut self, time: Duration) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < time && self.interrupted.is_none() && !self.child.has_ended() {
            self.interrupted = passed_on(self.signals, self.child.pid, self.interrupted);
            std::thread::sleep(POLL.min(time));
        }
        self.interrupted.is_none() && !self.child.has_ended()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Followed {
        while !self.child.has_ended() {
            self.interrupted = passed_on(self.signals, self.child.pid, self.interrupted);
            std::thread::sleep(POLL);
        }
        let wall = self.begin.elapsed();
        let exit = self.child.reap().map(|(exit, _)| exit);
        Followed { wall, exit, interrupted: self.interrupted, tasks: 0, processes: 0 }
    }
}

/// Numbers between 0 and 1 of which any that follow one another are far apart: multiples of the golden ratio.
fn spaced(number: usize) -> f64 {
    (number as f64 * 0.618_033_988_749_894_9).fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_and_average_out() {
        let all: Vec<f64> = (0..89).map(spaced).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert!(all.windows(2).all(|two| (two[0] - two[1]).abs() > 0.3));
    }
}
