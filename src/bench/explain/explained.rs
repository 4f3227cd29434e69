//! The part of a measured time that a bound explains.

use super::cycles::errors;
use crate::{Bound, Throughput};

/// The part of a time that a bound explains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Explained {
    /// All of it, within the errors.
    All,
    /// Cycles; perhaps all, since the upper end of its range reaches the time.
    PerhapsAll(f64),
    /// Cycles.
    Part(f64),
}

/// The bound's minimum: the low end of a computed bound (a sum of latency ranges), the value of a measured one.
pub fn least(bound: &Bound) -> f64 {
    if bound.is_computed { bound.low } else { bound.cycles }
}

/// The part of `time` that a bound explains.
pub fn explained(bound: &Bound, time: &Throughput) -> Explained {
    let (near, far) = errors(bound.is_computed);
    match least(bound) {
        least if least >= time.low * (1.0 - near) => Explained::All,
        least if bound.high >= time.low * (1.0 - far) => Explained::PerhapsAll(least),
        least => Explained::Part(least),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 5 % below 2.0 are 1.9, 8 % 1.84; of sums of latencies 12 %, 1.76, and 18 %, 1.64.
    #[test]
    fn a_bound_explains_a_time_only_if_all_of_its_range_reaches_it() {
        let time = Throughput { cycles: 2.0, low: 2.0, high: 2.0, modes: Vec::new(), clock: "tsc" };
        let of = |is_computed, low, cycles, high| {
            explained(&Bound { low, cycles, high, is_computed, ..Bound::default() }, &time)
        };
        assert_eq!(of(true, 1.8, 2.0, 3.0), Explained::All);
        assert_eq!(of(true, 1.0, 4.5, 8.0), Explained::PerhapsAll(1.0));
        assert_eq!(of(true, 1.0, 1.3, 1.6), Explained::Part(1.0));
        assert_eq!(of(false, 1.8, 1.91, 2.0), Explained::All);
        assert_eq!(of(false, 1.8, 1.85, 1.9), Explained::PerhapsAll(1.85));
        assert_eq!(of(false, 1.7, 1.8, 1.83), Explained::Part(1.8));
    }
}
