//! Bounds that the measurement refutes because the block is faster.

use super::cycles::{Cycles, is_refuted};
use crate::{Assumed, Assumption, Bound, Measurement, Outcome};

/// Marks the `bounds` that exceed `time` by more than the errors.
pub fn mark(bounds: &mut [Bound], time: Cycles) {
    for bound in bounds {
        let Bound { cycles, low, high, is_computed, .. } = *bound;
        bound.refuted |= is_refuted(Cycles { best: cycles, low, high }, time, is_computed);
    }
}

/// Reports the refuted ones among `bounds`, compared with `time`, under the assumption `bounds`.
pub fn enter(measurement: &mut Measurement, bounds: &[Bound], time: Cycles) {
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
    use crate::rejected;

    fn bound(name: &'static str, low: f64, high: f64, is_computed: bool) -> Bound {
        let cycles = f64::midpoint(low, high);
        Bound { name, cycles, low, high, is_computed, ..Bound::default() }
    }

    #[test]
    fn a_bound_above_the_time_is_refuted_and_the_assumption_violated() {
        let mut bounds = [
            bound("dependency", 14.0, 30.0, true),
            bound("ports", 4.0, 4.2, false),
            bound("dependency", 0.0, 9.0, true),
        ];
        let time = Cycles::exact(4.12);
        mark(&mut bounds, time);
        assert_eq!(bounds.each_ref().map(|b| b.refuted), [true, false, false]);
        let mut measurement = rejected("90", "made up".to_owned(), &tma::Core::default());
        let how = "the throughput is not below issue-width".to_owned();
        measurement.assumptions =
            vec![Assumption { name: Assumed::Bounds, outcome: Outcome::Held, how }];
        enter(&mut measurement, &bounds[1..], time);
        assert_eq!(measurement.assumptions[0].outcome, Outcome::Held);
        enter(&mut measurement, &bounds, time);
        assert_eq!(measurement.assumptions[0].outcome, Outcome::Violated);
        let how = "dependency needs 22.000 cycles (14.000 to 30.000), more than the 4.120 measured";
        assert_eq!(measurement.assumptions[0].how, how);
    }
}
