//! Counts how often a loop goes round, from executions that branch stacks show in part, and finds the rate at which
//! memory serves independent misses: with prefetches, no loop goes round faster.
//!
//! A core has a limited number of misses in flight. One with m misses an iteration and room for n of them starts at
//! most n ÷ m iterations before the oldest miss is done (Little's law), however short its iterations are: a prefetch
//! from farther ahead is delayed until there is room, and a line that comes long before its use may be evicted.

use super::cost::Cost;
use super::refusal::{Refusal, Taken};

/// A number of misses in flight is enough if memory serves them this much slower than any number, at most.
const NEAR_BEST: f64 = 1.05;
/// Least ratio of an iteration's time to the time with prefetches for a gain: less is within the error of both times.
const LEAST_GAIN: f64 = 1.1;

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
            let enough = group.iter().find(|(_, time)| *time <= NEAR_BEST * best)?;
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

/// Misses of an iteration, of all loads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Misses {
    /// Sum over the loads whose misses are known.
    pub at_least: f64,
    /// Whether it is a lower bound: some loads' misses are unknown.
    pub is_bound: bool,
}

/// Limits of the loops around a load once their misses are prefetched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pace {
    /// Misses in flight; `None` where that is not known.
    pub in_flight: Option<InFlight>,
    /// Misses of an iteration by loop, the innermost first.
    pub misses: Vec<Misses>,
    /// Cycles of an iteration of the innermost loop; `None` where that is not known.
    pub taken: Option<Taken>,
}

impl Pace {
    /// Cycles until there is room for the misses of another iteration, of the loop with this number, and the range; each
    /// miss takes `latency` cycles.
    pub(super) fn cycles(&self, number: usize, latency: f64) -> Option<Cost> {
        let (flight, misses) = (self.in_flight.as_ref()?, self.misses.get(number)?);
        let of = |room: f64| misses.at_least * latency / room.max(1.0);
        let least = if misses.is_bound { "≥ " } else { "" };
        Some(Cost {
            cycles: of(flight.misses),
            range: Some((of(flight.range.1), of(flight.range.0))),
            source: format!(
                "{least}{:.2} misses an iteration, of which the core keeps {:.0} in flight",
                misses.at_least, flight.misses
            ),
        })
    }

    /// The least cycles that the misses of an iteration of the innermost loop take, with their number.
    fn memory(&self) -> Option<(f64, f64)> {
        let (flight, misses) = (self.in_flight.as_ref()?, self.misses.first()?.at_least);
        Some((misses * flight.fastest, misses))
    }

    /// The least cycles of an iteration of the innermost loop, given those without misses, if known.
    fn least(&self, ic: Option<f64>) -> Option<f64> {
        let bounds = [ic, self.memory().map(|(cycles, _)| cycles)];
        bounds.into_iter().flatten().reduce(f64::max).filter(|least| *least > 0.0)
    }

    /// How many times as fast the loop can be at most; `None` where that is not known.
    pub(super) fn speedup(&self, ic: Option<f64>) -> Option<f64> {
        let taken = self.taken.filter(|one| one.samples > 0)?;
        Some((taken.cycles / self.least(ic)?).max(1.0))
    }

    /// Why a prefetch gains nothing, or may gain nothing, given the cycles of an iteration without misses, if known.
    pub(super) fn refusal(&self, ic: Option<f64>) -> Option<Refusal> {
        let (taken, least) = (self.taken?, self.least(ic)?);
        let Some((low, _)) = taken.range() else { return Some(Refusal::NotTaken) };
        if taken.cycles >= LEAST_GAIN * least {
            return (low <= least).then_some(Refusal::VagueGain(taken, least));
        }
        Some(match self.memory() {
            Some((cycles, misses)) if cycles >= least => Refusal::Memory { taken, least, misses },
            _ => Refusal::Hidden(taken, least),
        })
    }
}

/// Ends from which a mean is taken: its standard error is then below a third.
const ENOUGH_EXITS: u64 = 10;
/// Whole executions from which equal trips are taken to be always equal.
const EQUAL: u64 = 20;

/// Recorded trips of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trips {
    /// Trips of executions seen from beginning to end, and how many had them.
    pub whole: Vec<(u64, u64)>,
    /// How often the head was entered again, as by the back edge.
    pub taken: u64,
    /// How often the loop was seen to be entered, …
    pub entered: u64,
    /// … and to be left.
    pub left: u64,
    /// Most trips seen of an execution that is not whole.
    pub at_least: Option<u64>,
    /// Whether that is all there was: counts, not samples.
    pub is_complete: bool,
}

/// How often an execution enters the head of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TripCount {
    /// Always this number, as far as was seen.
    Exactly(u64),
    /// This number on average: entries of the head ÷ ends, both as recorded.
    About(f64),
    /// Executions are longer than what is recorded of one: at least so often on average. With at most k ends
    /// seen, the expected number is below k + 2 √k + 3 with 95 % confidence (for k = 0: Hanley and
    /// Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983).
    AtLeast(f64),
    /// Nothing was recorded.
    Unknown,
}

impl Trips {
    /// The trip count.
    pub fn count(&self) -> TripCount {
        let whole: u64 = self.whole.iter().map(|(_, n)| n).sum();
        if let [(trips, _)] = self.whole[..]
            && whole >= EQUAL
            && self.at_least.is_none_or(|least| least <= trips)
        {
            return TripCount::Exactly(trips);
        }
        let entries = (self.taken + self.entered) as f64;
        if entries == 0.0 {
            return TripCount::Unknown;
        }
        if self.left >= ENOUGH_EXITS || self.is_complete && self.left > 0 {
            return about(entries, self.left as f64);
        }
        if self.taken == 0 {
            return TripCount::Unknown;
        }
        let most = self.left as f64 + 2.0 * (self.left as f64).sqrt() + 3.0;
        let seen = self.at_least.map_or(0.0, |least| least as f64);
        // Several executions must have been seen before one of them shows the mean.
        TripCount::AtLeast((entries / most).max(if self.left == 0 { seen } else { 1.0 }))
    }
}

/// The mean. An execution enters the head at least once: where far more ends than entries are seen, the addresses are no
/// loop with one head, as in code that is not known.
fn about(entries: f64, ends: f64) -> TripCount {
    match entries / ends {
        mean if mean >= 1.0 - 2.0 / ends.sqrt() => TripCount::About(mean.max(1.0)),
        _ => TripCount::Unknown,
    }
}

impl TripCount {
    /// The number, or the least that it can be.
    pub fn least(self) -> Option<f64> {
        match self {
            Self::Exactly(trips) => Some(trips as f64),
            Self::About(trips) | Self::AtLeast(trips) => Some(trips),
            Self::Unknown => None,
        }
    }

    /// Whether it is at least so often; `None` if that is not known.
    pub fn is_at_least(self, times: f64) -> Option<bool> {
        match self {
            Self::AtLeast(trips) => (trips >= times).then_some(true),
            other => other.least().map(|trips| trips >= times),
        }
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
        let misses = [0.5, 4.0].map(|at_least| Misses { at_least, is_bound: false }).to_vec();
        let mut pace = Pace { in_flight: Some(found), misses, taken: None };
        assert_eq!(pace.cycles(0, 400.0).unwrap().cycles, 20.0);
        assert_eq!(pace.cycles(1, 400.0).unwrap().cycles, 160.0);
        assert!(pace.cycles(2, 400.0).is_none() && pace.speedup(Some(1.0)).is_none());
        pace.misses[0].is_bound = true;
        assert!(pace.cycles(0, 400.0).unwrap().source.starts_with("≥ 0.50 misses"));
    }

    fn pace(cycles: f64, samples: u64) -> Pace {
        let in_flight = Some(InFlight { misses: 10.0, fastest: 40.0, ..InFlight::default() });
        let misses = vec![Misses { at_least: 1.0, is_bound: false }];
        Pace { in_flight, misses, taken: Some(Taken { cycles, samples }) }
    }

    fn why(cycles: f64, samples: u64, ic: Option<f64>) -> String {
        pace(cycles, samples).refusal(ic).map_or(String::new(), |one| one.to_string())
    }

    /// A miss each 40 cycles: 60 cycles of computing hide it, 10 do not.
    #[test]
    fn what_memory_or_computing_needs_cannot_be_gained() {
        assert_eq!(pace(80.0, 1000).speedup(Some(10.0)), Some(2.0));
        assert_eq!(pace(80.0, 1000).refusal(Some(10.0)), None);
        assert!(why(42.0, 1000, Some(10.0)).starts_with("memory already sets the pace"));
        assert!(why(42.0, 1000, None).starts_with("memory already sets the pace"));
        assert!(why(62.0, 1000, Some(60.0)).contains("already hidden"));
        let slow_memory = Pace { in_flight: None, ..pace(62.0, 1000) };
        assert!(slow_memory.refusal(Some(60.0)).is_some() && slow_memory.refusal(None).is_none());
    }

    /// The rule holds with few samples, too, within their error: of 10 samples it is 4.8 to 18.4, of 100 81 to 122 (the
    /// exact limits of a Poisson mean: Garwood, Biometrika 1936).
    #[test]
    fn few_samples_do_not_excuse_from_the_rule() {
        let close = |(low, high): (f64, f64), of: [f64; 2]| {
            (low - of[0]).abs() < 0.05 && (high - of[1]).abs() < 0.05
        };
        let range = |samples: u64| Taken { cycles: samples as f64, samples }.range().unwrap();
        assert!(close(range(10), [4.80, 18.39]) && close(range(100), [81.36, 121.63]));
        assert!(close(range(1), [0.03, 5.57]), "{:?}", range(1));
        // 11 cycles as the program runs, 11.9 without misses.
        let fast = Pace { misses: vec![Misses::default()], ..pace(11.0, 12) };
        let refused = fast.refusal(Some(11.9)).unwrap();
        assert!(!refused.is_undecided() && refused.to_string().contains("by 12 samples"));
        // Twice as long, but maybe not: 80 × 0.48 is less than 40.
        assert!(pace(80.0, 10).refusal(Some(10.0)).is_some_and(|why| why.is_undecided()));
        assert!(why(80.0, 10, Some(10.0)).contains("too few samples"));
        assert_eq!(why(80.0, 100, Some(10.0)), "");
        assert_eq!(why(0.0, 0, Some(10.0)), "no sample of the run is in its loop");
    }

    #[test]
    fn trips_are_exact_a_mean_or_a_bound() {
        let inner = Trips {
            whole: vec![(4, 482)],
            taken: 1655,
            entered: 540,
            left: 545,
            at_least: Some(4),
            is_complete: false,
        };
        assert_eq!(inner.count(), TripCount::Exactly(4));
        let varied = Trips { whole: vec![(3, 10), (5, 10)], ..inner };
        assert_eq!(varied.count(), TripCount::About(2195.0 / 545.0));
        // 836 back edges and no end: 3 ends could have been expected to go unseen.
        let long = Trips { taken: 836, at_least: Some(32), ..Trips::default() };
        assert_eq!(long.count(), TripCount::AtLeast(836.0 / 3.0));
        assert_eq!(long.count().is_at_least(40.0), Some(true));
        assert_eq!(long.count().is_at_least(1000.0), None);
        // Counts of all there was: 2 ends are enough.
        let counted =
            Trips { taken: 98, entered: 2, left: 2, is_complete: true, ..Trips::default() };
        assert_eq!(counted.count(), TripCount::About(50.0));
        assert_eq!(Trips::default().count(), TripCount::Unknown);
        assert_eq!(Trips { left: 50, ..Trips::default() }.count(), TripCount::Unknown);
        // Fewer than one trip is none: by the error of the ends about one, or no loop.
        let once = |entered| Trips { entered, left: 100, ..Trips::default() }.count();
        assert_eq!((once(90), once(30)), (TripCount::About(1.0), TripCount::Unknown));
    }
}
