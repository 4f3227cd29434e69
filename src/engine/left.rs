//! The further runs of a command, or windows of a live process, that are left, and what they take: by multiples of the run
//! without probes, and by the run that counted once there is one.

use estimate::Interval;
use std::time::Duration;
use tma::text::several;

/// Seconds of a run as multiples of the run without probes: usually, at least and at most, in the programs of
/// `tests/figures/announced.py`.
type Multiple = [f64; 3];
const COUNTS: Multiple = [1.5, 0.8, 2.4];
/// Counting of several threads, which write to the same counters.
const COUNTS_AT_ONCE: Multiple = [2.0, 0.8, 4.0];
const BRANCHES: Multiple = [1.6, 1.0, 2.2];
const VALUES: Multiple = [2.0, 0.1, 3.0];
/// Addresses and latencies.
const LOADS: Multiple = [3.0, 2.0, 4.2];
/// A run with probes in windows only.
const WINDOWS: Multiple = [1.1, 1.0, 1.45];
/// A run on one CPU of threads that ran at the same time, of their processor time.
const PINNED: Multiple = [0.7, 0.0, 1.2];
/// A run that repeats one, or the one without probes with next to none.
const AGAIN: Multiple = [1.0, 0.85, 1.15];
/// Seconds of an isolated measurement, and of those that explain it: these wait for a core that nothing else uses, and
/// may run again with values.
const ISOLATED: Multiple = [0.08, 0.03, 0.15];
const EXPLAINED: Multiple = [0.4, 0.04, 1.5];
/// Seconds in which loads of known levels are timed, before and after, and those of the command are classified.
const CLASSIFIED: Multiple = [0.5, 0.3, 2.0];
/// Seconds that replaying recorded branches takes, as multiples of what is known of it.
const REPLAYED: Multiple = [1.0, 0.3, 2.0];
/// Seconds of the analysis around a run, likewise.
const SET_UP: Multiple = [1.0, 0.8, 1.5];

fn times([value, low, high]: Multiple, of: f64) -> Interval {
    Interval::new(value * of, low * of, high * of)
}

/// The steps that are left.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    pub plain: bool,
    pub counts: usize,
    pub branches: bool,
    pub values: bool,
    pub loads: bool,
    /// Branches and loads are recorded in windows of one run, not in runs of their own.
    pub windows: bool,
    /// A run on one CPU, if threads contend for cache lines.
    pub pinned: bool,
    pub isolated: usize,
    /// How many of them are explained.
    pub explained: usize,
    /// Whether loads are needed is not known yet.
    pub is_open: bool,
    /// Whether there is time to count again where they are not.
    pub again_instead: bool,
}

/// Seconds of runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Without probes.
    pub plain: f64,
    /// With counts.
    pub counted: f64,
    /// Of all threads.
    pub task: f64,
    /// To analyse what a run is to record, beside it.
    pub set_up: f64,
    /// To replay recorded branches.
    pub replay: f64,
    /// Whether threads ran at the same time.
    pub at_once: bool,
    /// Whether a run has counted.
    pub has_counted: bool,
    /// The most that all may take.
    pub budget: f64,
}

impl Times {
    /// Before a run has counted.
    pub fn of(plain: f64) -> Self {
        let counted = COUNTS[0] * plain;
        let (task, set_up, replay) = (plain, 0.1, 0.5);
        let budget = f64::INFINITY;
        Self { plain, counted, task, set_up, replay, at_once: false, has_counted: false, budget }
    }

    /// So many runs that count: all but the first only what takes next to no time.
    fn counts(&self, number: usize) -> Interval {
        let first = usize::from(number > 0 && !self.has_counted);
        let whole = if self.at_once { COUNTS_AT_ONCE } else { COUNTS };
        let again = times(AGAIN, self.plain).times((number - first) as f64);
        times(whole, self.plain).times(first as f64).plus_alike(again)
    }
}

impl Left {
    /// Runs of the command, or windows of a process.
    pub fn runs(self) -> usize {
        let once = [self.plain, self.values].map(usize::from).iter().sum::<usize>();
        let recorded = match self.windows {
            true => usize::from(self.branches || self.loads),
            false => usize::from(self.branches) + 2 * usize::from(self.loads),
        };
        self.counts + once + recorded + usize::from(self.pinned)
    }

    /// Seconds of all, about.
    pub fn seconds(self, of: Times) -> f64 {
        self.interval(of).value
    }

    /// Seconds of all. What may not be needed is not in the least.
    pub fn interval(self, of: Times) -> Interval {
        let Times { plain, task, set_up, replay, .. } = of;
        let none = Interval::default();
        let own = |is_left: bool, multiple, seconds| match is_left {
            true => times(multiple, seconds),
            false => none,
        };
        let instead = match self.again_instead && self.counts == 0 {
            true => of.counts(1).low,
            false => 0.0,
        };
        let open = |one: Interval| match self.is_open {
            true => Interval::new(one.value, instead.min(one.low), one.high),
            false => one,
        };
        let in_runs = [own(self.branches, BRANCHES, plain), open(own(self.loads, LOADS, plain))];
        let in_windows = own(self.branches || self.loads, WINDOWS, plain);
        let recorded = match self.windows {
            true if self.branches => in_windows,
            true => open(in_windows),
            false => in_runs[0].plus_alike(in_runs[1]),
        };
        let all = [
            own(self.plain, [1.0, 0.9, 1.1], plain),
            own(self.values, VALUES, plain),
            own(self.pinned, PINNED, task),
            own(self.branches, REPLAYED, replay),
            open(own(self.loads, CLASSIFIED, 1.0)),
            recorded,
            of.counts(self.counts),
            times(SET_UP, set_up * self.runs() as f64),
            times(ISOLATED, self.isolated as f64),
            times(EXPLAINED, self.explained as f64),
        ];
        all.into_iter().fold(none, Interval::plus_alike)
    }

    /// Seconds of a run without probes, from those of one that counted.
    pub fn plain_of(counted: f64) -> f64 {
        counted / COUNTS[0]
    }

    /// What is left, in words.
    pub fn words(self, of: Times) -> String {
        let recorded = match (self.branches, self.loads, self.windows) {
            (true, true, true) => Some("branches and loads in windows of one run"),
            (true, false, true) => Some("branches in windows of one run"),
            (false, true, true) => Some("loads in windows of one run"),
            (true, true, false) => Some("branches and loads in up to 3 runs"),
            (true, false, false) => Some("branches in a run"),
            (false, true, false) => Some("loads in up to 2 runs"),
            (false, false, _) => None,
        };
        let isolated = (self.isolated > 0)
            .then(|| format!("{} in isolation", several(self.isolated, "measurement")));
        let pinned = self.pinned.then_some("perhaps one on one CPU, for contention");
        let again = (self.counts > 0).then_some("counts again");
        let all: Vec<String> = isolated
            .into_iter()
            .chain([recorded, pinned, again].into_iter().flatten().map(str::to_owned))
            .collect();
        let is_range = self.is_open || self.isolated > 0 || self.pinned;
        format!("{}; {}", all.join(", "), of.about(self.interval(of), is_range))
    }
}

impl Times {
    /// `about 2.4 s`, `about 2.0 to 12 s`, or `at most 2.0 s by --budget`.
    pub fn about(&self, of: Interval, is_range: bool) -> String {
        let number = |seconds: f64| match seconds {
            short if short < 10.0 => format!("{:.1}", short.max(0.1)),
            long => format!("{long:.0}"),
        };
        let most = if is_range { of.high } else { of.value };
        match is_range {
            _ if most > self.budget => format!("at most {} s by --budget", number(self.budget)),
            true => format!("about {} to {} s", number(of.low), number(of.high)),
            false => format!("about {} s", number(of.value)),
        }
    }
}

/// How many isolated measurements, and explained ones, there are, before that is known.
const USUAL: (usize, usize) = (20, 6);

/// What is known of the cost of estimating a command that took this many seconds, in words.
pub fn cost(plain: f64) -> String {
    format!("{}; it shows which others are needed", brief_cost(plain))
}

/// [`cost`] in short.
pub fn brief_cost(plain: f64) -> String {
    format!("in further runs: the first counts, about {:.0} s", Times::of(plain).counted.ceil())
}

/// The cost of estimating a live process, in words.
pub fn cost_of_process(window: Duration) -> String {
    let (isolated, explained) = USUAL;
    let left =
        Left { counts: 1, branches: true, loads: true, isolated, explained, ..Left::default() };
    format!(
        "up to {} windows of {} s in which probes slow the process, and about {:.0} s",
        left.runs(),
        window.as_secs_f64(),
        left.seconds(Times::of(window.as_secs_f64())).ceil()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2 s × 1.6 and × 3, 0.5 s of replay and 0.5 s for loads, two that count again in 2 s, 5 runs of 0.1 s, 10 × 0.08 s,
    /// 4 × 0.4 s; in windows 1.1 runs instead of 4.6, and 2 runs fewer.
    #[test]
    fn the_cost_is_that_of_all_runs() {
        let (isolated, explained) = (10, 4);
        let left =
            Left { counts: 2, branches: true, loads: true, isolated, explained, ..Left::default() };
        let times = Times { counted: 2.5, has_counted: true, ..Times::of(2.0) };
        assert_eq!(left.runs(), 5);
        assert!((left.seconds(times) - 17.1).abs() < 1e-9);
        let left = Left { windows: true, ..left };
        assert_eq!(left.runs(), 3);
        assert!((left.seconds(times) - 9.9).abs() < 1e-9);
        let once = Left { counts: 0, isolated: 0, explained: 0, ..left };
        assert_eq!(once.words(times), "branches and loads in windows of one run; about 3.3 s");
        // Nothing of what may not be needed is in the least.
        let open = Left { branches: false, counts: 1, is_open: true, ..once };
        assert_eq!(
            open.words(times),
            "loads in windows of one run, counts again; about 1.9 to 7.5 s"
        );
        assert_eq!(
            cost(2.0),
            "in further runs: the first counts, about 3 s; it shows which others are needed"
        );
    }
}
