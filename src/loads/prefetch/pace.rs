//! How fast memory serves misses that do not wait for each other: with prefetches, no loop goes round faster.
//!
//! A core keeps a limited number of misses in flight. One with m misses an iteration and room for n of them starts at
//! most n ÷ m iterations before the oldest miss is done (Little's law), however short its iterations are: a prefetch
//! from farther ahead waits for room, and a line that comes long before its use may be evicted.

use super::cost::Cost;

/// A number of misses in flight is enough if memory serves them this much slower than any number, at most.
const ENOUGH: f64 = 1.05;
/// An iteration must take so many times what it needs with prefetches, else there is nothing to gain: less than this is
/// within the error of both times.
const LEAST_GAIN: f64 = 1.1;
/// Fewer samples do not tell how long an iteration takes: their standard error is above 18 %.
const LEAST_SAMPLES: u64 = 30;

/// Misses in flight at a time, as measured on this host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InFlight {
    /// The fewest misses in flight with which memory is about as fast as with any number: the median of several groups of
    /// rounds.
    pub misses: f64,
    /// The least and the most of them.
    pub range: (f64, f64),
    /// Cycles from one such miss to the next: the least.
    pub cycles: f64,
    /// The least and the most of the groups.
    pub cycles_range: (f64, f64),
    /// Cycles per miss without walks of page tables: no program's misses take less.
    pub fastest: f64,
}

impl InFlight {
    /// From times per miss by the number of misses in flight (ascending), for each group of rounds; times are turned into
    /// cycles by `cycles_per_time`, and the least time per miss. `None` without any.
    pub fn of(groups: &[Vec<(usize, f64)>], fastest: f64, cycles_per_time: f64) -> Option<Self> {
        let knee = |group: &[(usize, f64)]| {
            let best = group.iter().map(|(_, time)| *time).min_by(f64::total_cmp)?;
            let enough = group.iter().find(|(_, time)| *time <= ENOUGH * best)?;
            Some((enough.0 as f64, best * cycles_per_time))
        };
        let mut knees: Vec<(f64, f64)> = groups.iter().filter_map(|group| knee(group)).collect();
        knees.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The median: one lucky time moves a knee.
        let (misses, _) = *knees.get(knees.len() / 2)?;
        let range = |of: fn(&(f64, f64)) -> f64| {
            let all = || knees.iter().map(of);
            (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max))
        };
        let (range, cycles_range) = (range(|one| one.0), range(|one| one.1));
        // Other programs only make memory slower.
        Some(Self {
            misses,
            range,
            cycles: cycles_range.0,
            cycles_range,
            fastest: fastest * cycles_per_time,
        })
    }
}

/// What the program took for an iteration, without probes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Taken {
    /// Cycles.
    pub cycles: f64,
    /// The samples that say so.
    pub samples: u64,
}

/// What bounds the iterations of the loops around a load once their misses are prefetched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pace {
    /// Misses in flight; `None` where that is not known.
    pub in_flight: Option<InFlight>,
    /// Misses of an iteration, of all loads, by loop, the innermost first.
    pub misses: Vec<f64>,
    /// What an iteration of the innermost loop takes.
    pub taken: Option<Taken>,
}

impl Pace {
    /// Cycles until there is room for the misses of another iteration, of the loop with this number, and the range; each
    /// miss takes `latency` cycles.
    pub(super) fn cycles(&self, number: usize, latency: f64) -> Option<Cost> {
        let (flight, misses) = (self.in_flight.as_ref()?, *self.misses.get(number)?);
        let of = |room: f64| misses * latency / room.max(1.0);
        Some(Cost {
            cycles: of(flight.misses),
            range: Some((of(flight.range.1), of(flight.range.0))),
            source: format!(
                "{misses:.2} misses an iteration, of which the core keeps {:.0} in flight",
                flight.misses
            ),
        })
    }

    /// The least cycles of an iteration of the innermost loop, given those without misses.
    fn least(&self, ic: f64) -> Option<f64> {
        let (flight, misses) = (self.in_flight.as_ref()?, *self.misses.first()?);
        Some(ic.max(misses * flight.fastest))
    }

    /// How many times as fast the loop can be at most; `None` where that is not known.
    pub(super) fn speedup(&self, ic: f64) -> Option<f64> {
        let taken = self.taken.filter(|one| one.samples >= LEAST_SAMPLES)?;
        Some((taken.cycles / self.least(ic)?).max(1.0))
    }

    /// Why a prefetch gains nothing, given the cycles of an iteration without misses.
    pub(super) fn refusal(&self, ic: f64) -> Option<String> {
        let (speedup, taken, least) = (self.speedup(ic)?, self.taken?, self.least(ic)?);
        if speedup >= LEAST_GAIN {
            return None;
        }
        let why = match least > ic {
            true => format!(
                "memory already sets the pace: {:.2} misses an iteration take at least {least:.0} cycles, however many \
                 are in flight",
                self.misses.first()?
            ),
            false => {
                format!("its misses are already hidden: without any it takes {least:.0} cycles")
            }
        };
        Some(format!("{why}, and an iteration takes {:.0}", taken.cycles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core with room for 10 misses of 100 ns: 100 ÷ k ns each, until 10.
    #[test]
    fn the_knee_is_the_number_of_misses_in_flight() {
        let group = |noise: f64| -> Vec<(usize, f64)> {
            let time = |k: usize| (k, (100.0 / k as f64).max(10.0) * noise);
            [1, 2, 4, 8, 10, 16, 32].map(time).to_vec()
        };
        let found = InFlight::of(&[group(1.3), group(1.0), group(1.1)], 8.0, 4.0).unwrap();
        assert_eq!((found.misses, found.range), (10.0, (10.0, 10.0)));
        assert_eq!((found.cycles, found.cycles_range), (40.0, (40.0, 52.0)));
        assert_eq!(found.fastest, 32.0);
        assert_eq!(InFlight::of(&[], 8.0, 4.0), None);
        let pace = Pace { in_flight: Some(found), misses: vec![0.5, 4.0], taken: None };
        assert_eq!(pace.cycles(0, 400.0).unwrap().cycles, 20.0);
        assert_eq!(pace.cycles(1, 400.0).unwrap().cycles, 160.0);
        assert!(pace.cycles(2, 400.0).is_none() && pace.speedup(1.0).is_none());
    }

    /// A miss each 40 cycles: 60 cycles of computing hide it, 10 do not.
    #[test]
    fn what_memory_or_computing_needs_cannot_be_gained() {
        let in_flight = InFlight { misses: 10.0, fastest: 40.0, ..InFlight::default() };
        let pace = |cycles, samples| Pace {
            in_flight: Some(in_flight.clone()),
            misses: vec![1.0],
            taken: Some(Taken { cycles, samples }),
        };
        assert_eq!(pace(80.0, 1000).speedup(10.0), Some(2.0));
        assert_eq!(pace(80.0, 1000).refusal(10.0), None);
        assert!(
            pace(42.0, 1000).refusal(10.0).unwrap().starts_with("memory already sets the pace")
        );
        assert!(pace(62.0, 1000).refusal(60.0).unwrap().contains("already hidden"));
        assert_eq!(pace(42.0, 10).refusal(10.0), None, "too few samples");
    }
}
