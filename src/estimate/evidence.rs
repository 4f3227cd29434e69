//! The evidence of a piece of code: a loop, a block, or several. Cycles are of all its executions in the run, or of
//! one, as long as they are all of the same. Values have intervals, or a reason why they are not known: errors of
//! independent values are combined in quadrature (first order); an interval need not be symmetric.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Why a share or a part of the evidence is not known, or what the share may be instead. A text in documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Reason {
    /// The caller's, for what it could not measure.
    Given(Given),
    /// It has no time.
    NoTime,
    /// It was not measured in isolation, for this reason.
    NotIsolated(Box<Reason>),
    /// In isolation it takes this many times as long as in the program: that was other work.
    OtherWork(f64),
    /// Its bound in isolation is not known.
    NoBoundFound,
    /// Its mispredictions are not known, for this reason.
    Mispredictions(Box<Reason>),
    /// Its loads were not recorded, for this reason.
    Loads(Box<Reason>),
    /// Some of its loads were not measured.
    SomeLoads,
    /// Its divisions were measured with other values than the program's.
    DivisionValues,
    /// The remainder could be fetching as well as waiting.
    FetchOrWait,
    /// The remainder may be this, where no evidence is missing.
    NotSeparated,
    /// Nothing accounts for what is left.
    NoCandidate,
    /// This share of the time is of dependent instructions, by their latencies.
    Dependencies(f64),
}

impl Reason {
    /// A reason of the caller's.
    pub fn given(why: impl fmt::Display + Send + Sync + 'static) -> Self {
        Self::Given(Given(Arc::new(why)))
    }
}

impl From<Reason> for String {
    fn from(of: Reason) -> Self {
        of.to_string()
    }
}

impl From<String> for Reason {
    fn from(why: String) -> Self {
        Self::given(why)
    }
}

impl From<&str> for Reason {
    fn from(why: &str) -> Self {
        Self::given(why.to_owned())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given(why) => return why.fmt(f),
            Self::NotIsolated(why) => return write!(f, "not measured in isolation: {why}"),
            Self::OtherWork(times) => {
                return write!(f, "it takes {times:.1} times as long there as in the program");
            }
            Self::Mispredictions(why) => {
                return write!(f, "its mispredictions are not known: {why}");
            }
            Self::Loads(why) => return write!(f, "its loads were not recorded: {why}"),
            Self::Dependencies(share) => {
                let share = 100.0 * share;
                return write!(f, "{share:.0} % of the time by the latencies of dependent instructions");
            }
            Self::NoTime => "it has no time",
            Self::NoBoundFound => "its bound in isolation is undecided",
            Self::SomeLoads => {
                "some of its loads, or waits for lines that threads share, were not measured: this may be why"
            }
            Self::DivisionValues => {
                "divisions take as long as their values ask for, and those of the program are not known: this may be why"
            }
            Self::FetchOrWait => {
                "fetching code, or waiting for loads or results: either could take it"
            }
            Self::NotSeparated => "nothing measured separates it from what is unexplained",
            Self::NoCandidate => "neither loads, nor stores, nor dependencies, nor code account for it",
        })
    }
}

/// A reason of the caller's: it is shown, and nothing here depends on it.
#[derive(Clone)]
pub struct Given(Arc<dyn fmt::Display + Send + Sync>);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.to_string())
    }
}

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

/// A value and the interval that it lies in.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end, at most `value`.
    pub low: f64,
    /// The upper end, at least `value`.
    pub high: f64,
}

impl Interval {
    /// A value between two ends, which are moved out to it if it is not between them.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, low: low.min(value), high: high.max(value) }
    }

    /// A value without error.
    pub fn exact(value: f64) -> Self {
        Self::new(value, value, value)
    }

    /// A value with a relative error.
    pub fn relative(value: f64, error: f64) -> Self {
        let half = (value * error).abs();
        Self::new(value, value - half, value + half)
    }

    /// How far the value may be too high.
    pub fn below(self) -> f64 {
        self.value - self.low
    }

    /// How far the value may be too low.
    pub fn above(self) -> f64 {
        self.high - self.value
    }

    /// The larger of both errors.
    pub fn error(self) -> f64 {
        self.below().max(self.above())
    }

    /// With another relative error, independent of its own.
    #[must_use]
    pub fn widened(self, error: f64) -> Self {
        let more = (self.value * error).abs();
        let (below, above) = (self.below().hypot(more), self.above().hypot(more));
        Self::new(self.value, self.value - below, self.value + above)
    }

    /// The sum of two independent values.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let value = self.value + other.value;
        let (below, above) = (self.below().hypot(other.below()), self.above().hypot(other.above()));
        Self::new(value, value - below, value + above)
    }

    /// The difference of two independent values.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    /// The sum of two values whose errors may have the same cause: they add up.
    #[must_use]
    pub fn plus_alike(self, other: Self) -> Self {
        Self::new(self.value + other.value, self.low + other.low, self.high + other.high)
    }

    /// The sum of values whose errors have this share alike, which adds up; the rest of them is independent.
    pub fn sum(all: &[Self], alike: f64) -> Self {
        let error = |of: fn(Self) -> f64| {
            let (sum, squares) = all.iter().fold((0.0, 0.0), |(sum, squares), one| {
                (sum + of(*one), squares + of(*one).powi(2))
            });
            ((alike * sum).powi(2) + (1.0 - alike * alike) * squares).sqrt()
        };
        let value = all.iter().map(|one| one.value).sum::<f64>();
        Self::new(value, value - error(Self::below), value + error(Self::above))
    }

    /// Without a relative error that is part of its own, in quadrature.
    #[must_use]
    pub fn without(self, error: f64) -> Self {
        let part = self.value * error;
        let left = |whole: f64| (whole.powi(2) - part.powi(2)).max(0.0).sqrt();
        Self::new(self.value, self.value - left(self.below()), self.value + left(self.above()))
    }

    /// A multiple.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let (low, high) = (self.low * factor, self.high * factor);
        Self::new(self.value * factor, low.min(high), low.max(high))
    }

    /// The quotient of two independent values; 0 if the divisor is not above 0.
    #[must_use]
    pub fn over(self, divisor: Self) -> Self {
        if divisor.value <= 0.0 {
            return Self::default();
        }
        let error = divisor.error() / divisor.value;
        self.times(1.0 / divisor.value).widened(error)
    }

    /// Both ends and the value within limits.
    #[must_use]
    pub fn clamped(self, low: f64, high: f64) -> Self {
        let within = |x: f64| x.clamp(low, high.max(low));
        Self { value: within(self.value), low: within(self.low), high: within(self.high) }
    }
}

/// The bound of a piece of code in isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundBy {
    /// Slots of the core's width: the µop table has too few.
    IssueWidth,
    /// Fetching and decoding.
    FrontEnd,
    /// Ports, dependencies, store forwarding, dividers: whatever is behind the front end.
    Core,
    /// None that is known.
    Unknown,
}

/// A measurement in isolation: its data in the first cache, its branches predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Isolated {
    /// Cycles.
    pub cycles: Interval,
    /// Their bound.
    pub bound: BoundBy,
    /// The share of what it takes beyond retiring, 0 to 1, in which loads wait for L1 or for earlier stores: the trees
    /// of Intel and AMD have it in Memory Bound.
    pub loads: f64,
    /// By how much it takes less or more among other code, relative to its cycles: an error beside that of the measurement, and
    /// in part another one in each piece.
    pub among: f64,
}

impl Isolated {
    /// The cycles with all of their error.
    pub fn whole(&self) -> Interval {
        self.cycles.widened(self.among)
    }
}

/// Its divisions and roots.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Divisions {
    /// It has none.
    #[default]
    Absent,
    /// They take this share, 0 to 1, of what is Core Bound in isolation.
    Take(f64),
    /// They take this share of it at least, by how long they occupy the divider.
    AtLeast(f64),
    /// They take some of it, or none.
    Unknown,
}

/// Its mispredictions, as far as known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mispredicted {
    /// Cycles of those whose number and cost are known.
    pub cycles: Interval,
    /// The most cycles that others can take, and why not more is known of them.
    pub unknown: Option<(f64, Reason)>,
}

impl Mispredicted {
    /// All mispredictions are known, and cost this many cycles.
    pub fn known(cycles: Interval) -> Self {
        Self { cycles, unknown: None }
    }

    /// The most that those can take of which the number or the cost is not known.
    pub fn most(&self) -> f64 {
        self.unknown.as_ref().map_or(0.0, |(most, _)| *most)
    }
}

/// What a piece takes longer than where its threads cannot contend for cache lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contention {
    /// Cycles.
    pub cycles: Interval,
    /// For what.
    pub by: Contending,
}

/// What threads contend for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contending {
    /// The same bytes of a line.
    SameBytes,
    /// Different bytes of a line.
    OtherBytes,
    /// Bytes that locked instructions access.
    Locked,
}

/// Its loads, as far as known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loads {
    /// Their latencies beyond the first cache, summed as if none overlapped: the most that they can cost.
    pub at_most: Interval,
    /// The part of it of loads that are themselves the loop-carried dependency (pointer chases): they do not overlap.
    pub carried: Interval,
    /// The most that others can cost, of which nothing was measured.
    pub unknown: f64,
    /// What is from the second cache, from the third and from memory, and of stores; what is not known apart is in the
    /// upper end of each that it may be.
    pub levels: [Interval; 4],
}

/// Everything known of a piece of code, or why it is not.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Cycles in the program: sampled.
    pub cycles: Interval,
    /// Cycles that its retired µops take at the core's full width.
    pub retiring: Result<Interval, Reason>,
    /// Its mispredictions.
    pub mispredicted: Mispredicted,
    /// Contention of threads, where addresses show any.
    pub contention: Option<Contention>,
    /// The code in isolation.
    pub isolated: Result<Isolated, Reason>,
    /// Whether its divisions and roots were measured with other values than the program's, on which their time depends.
    pub other_values: bool,
    /// Its divisions and roots.
    pub divisions: Divisions,
    /// The share of the latency of loads in a chain with other instructions, 0 to 1, that is Memory Bound for certain, as
    /// counters of its core have it.
    pub certain: f64,
    /// Whether it is a loop, whose executions follow each other in isolation as they do in the program.
    pub is_loop: bool,
    /// Cycles of the longest paths of dependencies through its executions, each after the other, with loads that hit the
    /// first cache: the most that its instructions can wait for each other.
    pub latency: f64,
    /// Its loads.
    pub loads: Result<Loads, Reason>,
    /// The most that fetching its code from beyond the first cache can cost; 0 where the hot code fits.
    pub fetch: f64,
    /// The most that translating the addresses of its code can cost beyond that; 0 where the first TLB maps it.
    pub translation: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 10 ± 3 and 20 ± 4 are 30 ± 5, and -10 ± 5.
    #[test]
    fn independent_errors_add_in_quadrature() {
        let (a, b) = (Interval::new(10.0, 7.0, 13.0), Interval::new(20.0, 16.0, 24.0));
        assert_eq!(a.plus(b), Interval::new(30.0, 25.0, 35.0));
        assert_eq!(a.minus(b), Interval::new(-10.0, -15.0, -5.0));
        assert_eq!(a.plus_alike(b), Interval::new(30.0, 23.0, 37.0));
        assert_eq!(Interval::sum(&[a, b], 1.0), a.plus_alike(b));
        assert_eq!(Interval::sum(&[a, b], 0.0), a.plus(b));
        // √(0.6² × 7² + 0.8² × (3² + 4²)) = √33.64 = 5.8.
        let part = Interval::sum(&[a, b], 0.6);
        assert!((part.below() - 5.8).abs() < 1e-9 && (part.above() - 5.8).abs() < 1e-9, "{part:?}");
        // Of an error of 5, 3 are left without 4.
        let less = Interval::relative(10.0, 0.5).without(0.4);
        assert!((less.below() - 3.0).abs() < 1e-9 && (less.above() - 3.0).abs() < 1e-9, "{less:?}");
    }

    /// By hand: 30 % and 40 % make 50 % of 10 / 20.
    #[test]
    fn relative_errors_of_a_quotient_add_in_quadrature() {
        let found = Interval::relative(10.0, 0.3).over(Interval::relative(20.0, 0.4));
        assert!((found.low - 0.25).abs() < 1e-12 && (found.high - 0.75).abs() < 1e-12, "{found:?}");
        assert_eq!(Interval::exact(1.0).over(Interval::exact(0.0)), Interval::default());
    }

    #[test]
    fn unsymmetric_errors_keep_their_sides() {
        let found = Interval::exact(5.0).minus(Interval::new(2.0, 1.0, 2.0));
        assert_eq!(found, Interval::new(3.0, 3.0, 4.0));
        assert_eq!(Interval::new(1.0, 2.0, 0.5), Interval::exact(1.0));
        assert_eq!(Interval::new(0.5, -1.0, 2.0).clamped(0.0, 1.0), Interval::new(0.5, 0.0, 1.0));
    }
}
