//! Times with their errors: compares bounds with the measured time, and finds bounds that it refutes.

use crate::{Assumed, Assumption, Bound, Measurement, Outcome, Throughput};
use std::fmt;

/// A time in core cycles per iteration, with its error.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cycles {
    /// Best estimate.
    pub best: f64,
    /// Least it may be.
    pub low: f64,
    /// Most it may be.
    pub high: f64,
}

impl Cycles {
    /// A time without error.
    #[cfg(test)]
    pub fn exact(cycles: f64) -> Self {
        Self { best: cycles, low: cycles, high: cycles }
    }

    /// Per iteration, where one measured iteration holds the block `copies` times.
    pub fn of(throughput: &Throughput, copies: f64) -> Self {
        let Throughput { cycles, low, high, .. } = *throughput;
        Self { best: cycles, low, high }.per(copies)
    }

    /// The cycles of a bound.
    pub fn of_bound(bound: &Bound) -> Self {
        Self { best: bound.cycles, low: bound.low, high: bound.high }
    }

    /// The headline of a measurement; 0 without one.
    pub fn of_headline(measurement: &Measurement) -> Self {
        measurement.throughput.as_ref().map(|t| Self::of(t, 1.0)).unwrap_or_default()
    }

    /// Per copy, given the time of `copies`.
    pub(super) fn per(self, copies: f64) -> Self {
        self.map(|cycles| cycles / copies)
    }

    /// Changes the estimate and both ends.
    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { best: change(self.best), low: change(self.low), high: change(self.high) }
    }

    /// The larger of two.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            best: self.best.max(other.best),
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// With the range, where two digits show it: `3.50 (3.00 to 4.00)`.
impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (best, span) = (format!("{:.2}", self.best), span(self.low, self.high));
        if best == span { f.write_str(&best) } else { write!(f, "{best} ({span})") }
    }
}

/// A number, or from where to where it is known: `3.00 to 4.00`.
pub(super) fn span(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(|cycles| format!("{cycles:.2}"));
    if low == high { low } else { format!("{low} to {high}") }
}

/// A measured bound this close to the time explains it: the spread of block measurements is below
/// 5 % for 95 of 100 blocks (docs/results/accuracy.md).
pub(super) const NEAR: f64 = 0.05;

/// Between [`NEAR`] and this it is undecided whether a bound explains the time.
pub(super) const FAR: f64 = 0.08;

/// [`NEAR`] and [`FAR`] for sums of latencies, whose terms are rounded.
const LATENCY_NEAR: f64 = 0.12;
const LATENCY_FAR: f64 = 0.18;

/// Whether a bound reaches the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaches {
    Yes,
    Perhaps,
    No,
}

/// The shares of a time up to which a bound explains it, and perhaps does. `computed` bounds are sums of latencies.
pub(super) fn errors(computed: bool) -> (f64, f64) {
    if computed { (LATENCY_NEAR, LATENCY_FAR) } else { (NEAR, FAR) }
}

/// Whether the time refutes a bound: the bound's low end is above it by more than the errors.
/// `computed` bounds are sums of latencies.
pub fn is_refuted(bound: Cycles, time: Cycles, computed: bool) -> bool {
    bound.low > time.high * (1.0 + errors(computed).0)
}

/// Whether `bound` reaches `time`; a bound above it by more than the error is wrong and explains
/// nothing. `computed` bounds are sums of latencies.
pub(super) fn reaches(bound: Cycles, time: Cycles, computed: bool) -> Reaches {
    let (near, far) = errors(computed);
    let short = |share: f64| bound.high < time.low * (1.0 - share);
    let beyond = |share: f64| bound.low > time.high * (1.0 + share);
    match (short(far) || beyond(far), short(near) || beyond(near)) {
        (true, _) => Reaches::No,
        (_, true) => Reaches::Perhaps,
        _ => Reaches::Yes,
    }
}

/// Marks the `bounds` that exceed `time` by more than the errors.
pub fn mark_refuted(bounds: &mut [Bound], time: Cycles) {
    for bound in bounds {
        bound.refuted |= is_refuted(Cycles::of_bound(bound), time, bound.is_sum());
    }
}

/// Reports the refuted ones among `bounds`, compared with `time`, under the assumption `bounds`.
pub fn enter_refuted(measurement: &mut Measurement, bounds: &[Bound], time: Cycles) {
    let refuted = bounds.iter().filter(|b| b.refuted);
    let exceeding: Vec<String> = refuted.map(|b| b.needs_more(time.best)).collect();
    if exceeding.is_empty() {
        return;
    }
    let mut how = exceeding.join("; ");
    let outcome = Outcome::Violated;
    match measurement.assumptions.iter_mut().find(|i| i.name == Assumed::Bounds) {
        Some(known) => {
            if known.outcome == Outcome::Violated {
                how = format!("{}; {how}", known.how);
            }
            (known.outcome, known.how) = (outcome, how);
        }
        None => measurement.assumptions.push(Assumption { name: Assumed::Bounds, outcome, how }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Found, rejected};

    fn bound(name: &'static str, low: f64, high: f64, found: Found) -> Bound {
        let cycles = f64::midpoint(low, high);
        Bound { name, cycles, low, high, found, ..Bound::default() }
    }

    #[test]
    fn a_bound_above_the_time_is_refuted_and_the_assumption_violated() {
        let mut bounds = [
            bound("dependency", 14.0, 30.0, Found::Latencies),
            bound("ports", 4.0, 4.2, Found::Measured),
            bound("dependency", 0.0, 9.0, Found::Latencies),
        ];
        let time = Cycles::exact(4.12);
        mark_refuted(&mut bounds, time);
        assert_eq!(bounds.each_ref().map(|b| b.refuted), [true, false, false]);
        let mut measurement = rejected("90", "made up".to_owned(), &tma::Core::default());
        let how = "the throughput is not below issue-width".to_owned();
        measurement.assumptions =
            vec![Assumption { name: Assumed::Bounds, outcome: Outcome::Held, how }];
        enter_refuted(&mut measurement, &bounds[1..], time);
        assert_eq!(measurement.assumptions[0].outcome, Outcome::Held);
        enter_refuted(&mut measurement, &bounds, time);
        assert_eq!(measurement.assumptions[0].outcome, Outcome::Violated);
        let how = "dependency needs 22.000 cycles (14.000 to 30.000), more than the 4.120 measured";
        assert_eq!(measurement.assumptions[0].how, how);
    }
}
