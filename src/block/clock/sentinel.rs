//! What the sentinel says: whether something else used the core.

use super::tsc::{Calibration, TscClock, step};

/// How high the sentinel reads is taken for granted up to the first, and believed to be the core's
/// own up to the second.
const LEVELS: (f64, f64) = (1.02, 1.08);
/// How far above its level the sentinel may read on a core to itself.
const MARGIN: f64 = 1.04;

/// Knows how high the sentinel reads when nothing shares the core.
#[derive(Debug, Clone, Copy)]
pub struct Sentinel {
    /// What it takes, of what it should.
    level: f64,
}

impl Default for Sentinel {
    fn default() -> Self {
        Self { level: LEVELS.1 }
    }
}

impl Sentinel {
    /// For each round, whether nothing else used the core in it.
    pub fn calm(self, rounds: &[Calibration], cycles_per_tick: f64) -> Vec<bool> {
        let overhead = TscClock::overhead(rounds, cycles_per_tick);
        // The counter's own step comes on top.
        let own = TscClock::sentinel_cycles() * self.level * MARGIN;
        let limit = own + step(rounds) * cycles_per_tick;
        let calm = |ticks: f64| (ticks - overhead) * cycles_per_tick <= limit;
        rounds.iter().map(|r| calm(r.sentinel.0) && calm(r.sentinel.1)).collect()
    }

    /// Learns from rounds how high it reads at best: their lowest tenth.
    pub fn learn(&mut self, rounds: &[Calibration], cycles_per_tick: f64) {
        let mut all: Vec<f64> = rounds.iter().flat_map(|r| [r.sentinel.0, r.sentinel.1]).collect();
        all.sort_by(f64::total_cmp);
        let Some(low) = all.get(all.len() / 10) else { return };
        let cycles = (low - TscClock::overhead(rounds, cycles_per_tick)) * cycles_per_tick;
        let level = cycles / TscClock::sentinel_cycles();
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
        let sentinel = 80.0 + TscClock::sentinel_cycles() * high;
        Calibration { add: (2384.0, 336.0), multiply: None, sentinel: (sentinel, sentinel) }
    }

    fn calm(sentinel: Sentinel, high: f64) -> bool {
        // The other rounds make the counter's step small.
        let rounds = [round(high), round(1.03), round(1.033), round(1.036)];
        sentinel.calm(&rounds, 1.0)[0]
    }

    #[test]
    fn a_core_that_always_reads_a_little_high_is_calm_and_a_shared_one_never_is() {
        let mut sentinel = Sentinel::default();
        assert!(calm(sentinel, 1.1) && !calm(sentinel, 1.2));
        sentinel.learn(&[round(1.03), round(1.035), round(1.5)], 1.0);
        assert!(calm(sentinel, 1.05) && !calm(sentinel, 1.1));
        // Contention teaches nothing, and nothing makes it stricter than the counter's noise.
        sentinel.learn(&[round(1.9), round(1.8)], 1.0);
        assert!(calm(sentinel, 1.05));
        sentinel.learn(&[round(0.8)], 1.0);
        assert!(calm(sentinel, 1.05));
        let mut shared = Sentinel::default();
        shared.learn(&[round(1.9), round(1.8)], 1.0);
        assert!(!calm(shared, 1.2));
    }
}
