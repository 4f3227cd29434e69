//! Combines the two visits to a block of a batch.
//!
//! A block that is unstable on its first visit is visited again some rows later, and the second
//! measurement counts, unless the two contradict each other: if rounds of an uncontended first visit were
//! much faster than the second visit, the second saw only a slower state, and there is no single number.

use crate::measurement::{Measurement, Status};
use crate::timing::state::DOUBT;

/// The measurement of the second visit, unstable if the first contradicts it. A contended first visit is
/// ignored.
pub fn merge_visits(first: &Measurement, second: Measurement) -> Measurement {
    let (Some(then), Some(now)) = (&first.throughput, &second.throughput) else { return second };
    let is_slower = now.cycles > then.low * (1.0 + DOUBT);
    if second.status != Status::Ok || first.is_contended() || !is_slower {
        return second;
    }
    let reason = format!(
        "two visits disagree: the first measured {:.3} to {:.3} cycles without a common state, the \
         second {:.3}",
        then.low, then.high, now.cycles
    );
    let mut merged = second;
    merged.distrust(Status::Unstable, reason, false);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Throughput;

    fn measurement(status: Status, cycles: f64, low: f64, high: f64) -> Measurement {
        let throughput = Throughput { cycles, low, high, modes: Vec::new(), clock: "tsc" };
        Measurement {
            status,
            throughput: Some(throughput),
            ..crate::rejected("90", String::new(), &tma::Core::default())
        }
    }

    #[test]
    fn the_second_visit_decides_unless_the_first_was_much_faster() {
        let first = measurement(Status::Unstable, 1.1, 1.0, 1.3);
        let again =
            |cycles| merge_visits(&first, measurement(Status::Ok, cycles, cycles, cycles)).status;
        // As fast as the first at its fastest, faster, and up to a tenth slower.
        assert_eq!((again(1.0), again(0.9), again(1.09)), (Status::Ok, Status::Ok, Status::Ok));
        assert_eq!((again(1.11), again(1.3)), (Status::Unstable, Status::Unstable));
        let still = merge_visits(&first, measurement(Status::Unstable, 1.0, 0.9, 1.2));
        assert_eq!((still.status, still.throughput.unwrap().low), (Status::Unstable, 0.9));
    }

    #[test]
    fn a_first_visit_beside_a_neighbour_says_nothing() {
        let mut first = measurement(Status::Unstable, 1.1, 0.5, 1.3);
        (first.samples.accepted, first.samples.contended) = (100, 60);
        let second = merge_visits(&first, measurement(Status::Ok, 1.0, 1.0, 1.0));
        assert_eq!(second.status, Status::Ok);
    }
}
