//! Runs the clock's segments alone: cycles per tick, and contention on the core.

use super::{Runner, Segment};
use crate::clock::{CHAINS, Calibration, SentinelRun, TscClock};
use crate::sandbox::{Ended, layout as at};
use tma::{Core, Result};

impl Runner {
    /// The clock's segments: add chain long and short, multiply chain long and short, sentinel.
    pub fn clock_segments(&self) -> [Segment; 5] {
        let places = self.clock;
        let segment = |entry, repeat| Segment { entry, repeat };
        let sentinel = if self.wide { places.wide } else { places.sentinel };
        [
            segment(places.add, CHAINS.add.0),
            segment(places.add, CHAINS.add.1),
            segment(places.multiply, CHAINS.multiply.0),
            segment(places.multiply, CHAINS.multiply.1),
            segment(sentinel, self.sentinel.run().repeat),
        ]
    }

    /// Current core cycles per tick of the time-stamp counter; `None` under contention.
    pub fn cycles_per_tick(&mut self) -> Result<Option<f64>> {
        let rounds = self.calibrations(64)?;
        Ok(TscClock::cycles_per_tick(&rounds).ok())
    }

    /// Calibration rounds without a block; none if they did not run.
    fn calibrations(&mut self, rounds: usize) -> Result<Vec<Calibration>> {
        self.worker()?;
        let segments = self.clock_segments();
        let plan: Vec<_> = (0..rounds.max(4) + 1)
            .flat_map(|_| [4, 0, 1, 4])
            .map(|segment| (segment, 1 + (self.random() % 100) as u16))
            .collect();
        let (ended, ticks) = self.run(&segments, &plan)?;
        if ended != Ended::Done {
            return Ok(Vec::new());
        }
        let rounds =
            ticks.chunks_exact(4).skip(1).map(|t| [t[0], t[1], t[2], t[3]].map(f64::from)).map(
                |[before, long, short, behind]| Calibration {
                    add: (long, short),
                    multiply: None,
                    sentinel: (before, behind),
                },
            );
        Ok(rounds.collect())
    }

    /// Share of `rounds` calibration rounds without contention.
    pub fn uncontended_share(&mut self, rounds: usize) -> Result<f64> {
        let rounds = self.calibrations(rounds)?;
        let Ok(ratio) = TscClock::cycles_per_tick(&rounds) else { return Ok(0.0) };
        self.sentinel.step(&rounds);
        self.sentinel.learn(&rounds, ratio);
        let uncontended =
            self.sentinel.uncontended(&rounds, ratio).into_iter().filter(|c| *c).count();
        Ok(uncontended as f64 / rounds.len() as f64)
    }

    /// Makes the self-test of the core with `ask`, if this is its first use, and uses the sentinel that it found: a
    /// narrow one misses siblings that only load; memory blocks then read 16 % high.
    pub fn select_sentinel(&mut self, ask: fn(&mut Self, &Core)) -> Result<()> {
        if self.tested {
            return Ok(());
        }
        if self.blocks > 0 {
            // Answers of the self-test are stored on disk: no block may influence them.
            self.discard();
        }
        self.worker()?;
        let core = self.core.clone();
        ask(self, &core);
        self.tested = true;
        if let Some((_, run)) = SentinelRun::wide(core.answers()) {
            self.sentinel = self.sentinel.run_as(run);
            self.wide = true;
            self.worker()?;
            self.write_clock();
        }
        Ok(())
    }

    /// Writes the clock's segments into the worker.
    pub(super) fn write_clock(&mut self) {
        let mix = SentinelRun::wide(self.core.answers()).map(|(mix, _)| mix);
        let (code, places) = TscClock::code(at::CODE, mix);
        self.clock = places;
        if let Some(worker) = &mut self.worker {
            worker.write(at::CODE, &code);
        }
    }
}
