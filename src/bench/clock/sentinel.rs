//! Detects contention with the sentinel.

use super::{Calibration, SentinelRun, TscClock, step, step_seen};

/// Readings up to the first level are always normal; up to the second they may be normal for this core.
const LEVELS: (f64, f64) = (1.02, 1.08);
/// Tolerance above its level on an uncontended core, as a factor.
const MARGIN: f64 = 1.04;

/// The sentinel's level on an uncontended core.
#[derive(Debug, Clone, Copy)]
pub struct Sentinel {
    /// Its code and length.
    run: SentinelRun,
    /// Measured over nominal cycles.
    level: f64,
    /// The smallest granularity of the counter seen, in ticks. Contention spreads readings, so that few
    /// rounds give several times too much; contended rounds would then pass, and states would merge.
    step: f64,
}

impl Default for Sentinel {
    fn default() -> Self {
        Self { run: SentinelRun::narrow(), level: LEVELS.1, step: f64::INFINITY }
    }
}

impl Sentinel {
    /// The sentinel for another core: its level may differ, its counter does not.
    pub fn elsewhere(self) -> Self {
        Self { level: LEVELS.1, ..self }
    }

    /// Another sentinel on the same core, run like this.
    pub fn run_as(self, run: SentinelRun) -> Self {
        Self { run, level: LEVELS.1, ..self }
    }

    /// Its code and length.
    pub fn run(self) -> SentinelRun {
        self.run
    }

    /// Granularity of the counter in ticks, from these rounds and all before.
    pub fn step(&mut self, rounds: &[Calibration]) -> f64 {
        if let Some(seen) = step_seen(rounds) {
            self.step = self.step.min(seen);
        }
        self.step.min(step(rounds))
    }

    /// For each round, whether it was uncontended.
    pub fn uncontended(self, rounds: &[Calibration], cycles_per_tick: f64) -> Vec<bool> {
        let overhead = TscClock::overhead(rounds, cycles_per_tick);
        // The counter's own step comes on top.
        let own = self.run.cycles * self.level * MARGIN;
        let limit = own + self.step.min(step(rounds)) * cycles_per_tick;
        let uncontended = |ticks: f64| (ticks - overhead) * cycles_per_tick <= limit;
        rounds.iter().map(|r| uncontended(r.sentinel.0) && uncontended(r.sentinel.1)).collect()
    }

    /// Learns its level from the lowest tenth of rounds.
    pub fn learn(&mut self, rounds: &[Calibration], cycles_per_tick: f64) {
        let mut all: Vec<f64> = rounds.iter().flat_map(|r| [r.sentinel.0, r.sentinel.1]).collect();
        all.sort_by(f64::total_cmp);
        let Some(low) = all.get(all.len() / 10) else { return };
        let cycles = (low - TscClock::overhead(rounds, cycles_per_tick)) * cycles_per_tick;
        let level = cycles / self.run.cycles;
        if level.is_finite() {
            self.level = self.level.min(level).max(LEVELS.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick a cycle, 80 for reading the clock; the sentinel reads this much too high.
    fn round(high: f64) -> Calibration {
        let sentinel = 80.0 + SentinelRun::narrow().cycles * high;
        Calibration { add: (2384.0, 336.0), multiply: None, sentinel: (sentinel, sentinel) }
    }

    fn uncontended(sentinel: Sentinel, high: f64) -> bool {
        // The other rounds make the counter's step small.
        let rounds = [round(high), round(1.03), round(1.033), round(1.036)];
        sentinel.uncontended(&rounds, 1.0)[0]
    }

    #[test]
    fn a_core_that_always_reads_a_little_high_is_uncontended_and_a_shared_one_never_is() {
        let mut sentinel = Sentinel::default();
        assert!(uncontended(sentinel, 1.1) && !uncontended(sentinel, 1.2));
        sentinel.learn(&[round(1.03), round(1.035), round(1.5)], 1.0);
        assert!(uncontended(sentinel, 1.05) && !uncontended(sentinel, 1.1));
        // It learns nothing from contention, and never becomes stricter than the counter's noise.
        sentinel.learn(&[round(1.9), round(1.8)], 1.0);
        assert!(uncontended(sentinel, 1.05));
        sentinel.learn(&[round(0.8)], 1.0);
        assert!(uncontended(sentinel, 1.05));
        let mut shared = Sentinel::default();
        shared.learn(&[round(1.9), round(1.8)], 1.0);
        assert!(!uncontended(shared, 1.2));
    }

    /// Uncontended rounds 3 ticks apart, and rounds with intermittent contention 45 ticks and more apart,
    /// with the same counter.
    #[test]
    fn contention_does_not_make_the_counter_coarse() {
        let uncontended: Vec<Calibration> =
            (0..8).map(|i| round(1.03 + 0.003 * f64::from(i))).collect();
        let shared: Vec<Calibration> =
            (0..8).map(|i| round(1.1 + 0.07 * f64::from(i) + 0.01 * f64::from(i * i))).collect();
        assert!(step(&shared) > 40.0, "{}", step(&shared));
        let mut sentinel = Sentinel::default();
        let known = sentinel.step(&uncontended);
        assert!(known < 4.0 && sentinel.step(&shared) <= known);
        // 16 % above the uncontended level is contention whatever the other rounds read.
        assert!(!sentinel.uncontended(&[&[round(1.2)], &shared[1..]].concat(), 1.0)[0]);
        assert!(sentinel.elsewhere().step(&shared) <= known);
    }
}
