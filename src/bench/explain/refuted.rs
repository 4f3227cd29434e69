//! Bounds that the measurement refutes: a time that the block cannot beat, and does.

use super::model::{Cycles, is_refuted};
use crate::{Bound, Holds, Invariant, Report};

/// Marks those of `bounds` that lie above `time` by more than the errors.
pub fn mark(bounds: &mut [Bound], time: Cycles) {
    for bound in bounds {
        let Bound { cycles, low, high, .. } = *bound;
        let computed = bound.how.starts_with(super::names::COMPUTED);
        bound.refuted |= is_refuted(Cycles { best: cycles, low, high }, time, computed);
    }
}

/// Enters the refuted ones among `bounds` under the assumption `bounds` of a report; `time` is what
/// they were compared with.
pub fn enter(report: &mut Report, bounds: &[Bound], time: Cycles) {
    let refuted = bounds.iter().filter(|b| b.refuted);
    let broken: Vec<String> = refuted.map(|b| b.needs_more(time.best)).collect();
    if broken.is_empty() {
        return;
    }
    let mut how = broken.join("; ");
    let verdict = Holds::Violated;
    match report.invariants.iter_mut().find(|i| i.name == "bounds") {
        Some(known) => {
            if known.verdict == Holds::Violated {
                how = format!("{}; {how}", known.how);
            }
            (known.verdict, known.how) = (verdict, how);
        }
        None => report.invariants.push(Invariant { name: "bounds", verdict, how }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rejected;

    fn bound(name: &'static str, low: f64, high: f64, how: &str) -> Bound {
        let cycles = f64::midpoint(low, high);
        Bound { name, cycles, low, high, how: how.to_owned(), refuted: false }
    }

    #[test]
    fn a_bound_above_the_time_is_refuted_and_the_assumption_violated() {
        let mut bounds = [
            bound("dependency", 14.0, 30.0, "computed from latencies: gather"),
            bound("ports", 4.0, 4.2, "measured"),
            bound("dependency", 0.0, 9.0, "computed from latencies: copy"),
        ];
        let time = Cycles::exact(4.12);
        mark(&mut bounds, time);
        assert_eq!(bounds.each_ref().map(|b| b.refuted), [true, false, false]);
        let mut report = rejected("90", "made up".to_owned(), &tma::Core::default());
        let how = "the throughput is not below issue-width".to_owned();
        report.invariants = vec![Invariant { name: "bounds", verdict: Holds::Held, how }];
        enter(&mut report, &bounds[1..], time);
        assert_eq!(report.invariants[0].verdict, Holds::Held);
        enter(&mut report, &bounds, time);
        assert_eq!(report.invariants[0].verdict, Holds::Violated);
        let how = "dependency needs 22.000 cycles (14.000 to 30.000), more than the 4.120 measured";
        assert_eq!(report.invariants[0].how, how);
    }
}
