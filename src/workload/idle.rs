//! `idle`: sleeps. What a top-down analysis cannot show: time in which nothing runs.

use super::{Program, Setup};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tma::Result;

/// One nap.
const NAP: Duration = Duration::from_millis(1);

/// Naps of a millisecond; control: as long, but computing.
pub(super) fn idle(setup: Setup) -> Result<Box<dyn Program>> {
    Ok(Box::new(Idle { control: setup.control, naps: 0 }))
}

struct Idle {
    control: bool,
    naps: u64,
}

impl Program for Idle {
    fn slice(&mut self) -> u64 {
        if self.control {
            let begin = Instant::now();
            while begin.elapsed() < NAP {
                (0..1000u64).for_each(|i| {
                    black_box(i);
                });
            }
        } else {
            std::thread::sleep(NAP);
        }
        self.naps += 1;
        1
    }

    fn per_repeat(&self) -> u64 {
        1
    }

    fn checksum(&self) -> u64 {
        self.naps
    }
}
