//! `idle`: sleeps, invisible to a top-down analysis.

use super::{Program, Setup};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tma::Result;

/// Duration of one iteration.
const PERIOD: Duration = Duration::from_millis(1);

/// Sleeps of a millisecond; control: computing for a millisecond.
pub(super) fn idle(setup: Setup) -> Result<Box<dyn Program>> {
    Ok(Box::new(Idle { control: setup.control, iterations: 0 }))
}

struct Idle {
    control: bool,
    iterations: u64,
}

impl Program for Idle {
    fn slice(&mut self) -> u64 {
        if self.control {
            let begin = Instant::now();
            while begin.elapsed() < PERIOD {
                (0..1000u64).for_each(|i| {
                    black_box(i);
                });
            }
        } else {
            std::thread::sleep(PERIOD);
        }
        self.iterations += 1;
        1
    }

    fn per_repeat(&self) -> u64 {
        1
    }

    fn checksum(&self) -> u64 {
        self.iterations
    }
}
