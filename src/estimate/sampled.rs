//! The parts of pieces of code whose times are counted in samples of one run, each and together.

use crate::divide::{divide_alike, divide_all, retired, whole};
use crate::evidence::{Evidence, Interval};
use crate::part::Part;
use crate::parts::Parts;

/// By how much the mean of what is cut off at 0 or 1 can be off, as a share of two standard deviations: that of the
/// positive half of a normal distribution is 0.4 of one.
const CUT_OFF: f64 = 0.2;

/// The parts of a piece of code, and what they would be with only the errors that all pieces have alike: not that of its
/// number of samples, nor all of what it takes among other code.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// Its parts.
    pub parts: Parts,
    settled: Parts,
    retired: Retired,
}

/// What µops take of the time of a piece.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Retired {
    /// Their share of the time that was sampled.
    share: Interval,
    /// The relative error of that time by its number of samples, and the one that the times of all pieces have alike.
    sampling: f64,
    common: f64,
}

impl Retired {
    fn of(all: &[Evidence], common: f64) -> Self {
        let time = whole(all);
        if time.value <= 0.0 {
            return Self::default();
        }
        let error = time.error() / time.value;
        let sampling = (error.powi(2) - common.powi(2)).max(0.0).sqrt();
        Self { share: retired(all, time.value), sampling, common }
    }

    /// Of several pieces with their shares of the time: a piece with too many samples leaves others too few, so that
    /// only the error of the number of all is left.
    fn sum(all: impl Iterator<Item = (f64, Self)> + Clone) -> Interval {
        let weighted = all.clone().map(|(own, one)| one.share.times(own));
        let sampling = all.clone().map(|(own, one)| (own * one.sampling).powi(2)).sum::<f64>();
        let common = all.map(|(_, one)| one.common).fold(0.0, f64::max);
        weighted
            .fold(Interval::default(), Interval::plus_alike)
            .widened(sampling.sqrt().hypot(common))
    }
}

impl Sampled {
    /// Divides the time of evidence as one. `common`: the relative error that the times of all pieces have alike, that
    /// of the clock.
    pub fn divided(all: &[Evidence], common: f64) -> Self {
        let settled = |one: &Evidence| Evidence {
            cycles: Interval::relative(one.cycles.value, common),
            ..one.clone()
        };
        let settled: Vec<Evidence> = all.iter().map(settled).collect();
        let retired = Retired::of(all, common);
        Self { parts: divide_all(all), settled: divide_alike(&settled), retired }
    }

    /// The parts of several pieces together, each with its time. Errors of samples are independent, others add up as in
    /// [`Parts::sum`].
    pub fn sum<'a>(all: impl Iterator<Item = (f64, &'a Self)> + Clone) -> Parts {
        let time: f64 = all.clone().map(|(time, _)| time).sum();
        let parts = Parts::sum(all.clone().map(|(time, one)| (time, &one.parts)));
        let settled = Parts::sum(all.clone().map(|(time, one)| (time, &one.settled)));
        // How far samples move an end of the interval, `more` being that of a piece.
        let sampling = |part: Part, more: fn(Interval, Interval) -> f64| {
            let own = all.clone().map(|(own, one)| {
                more(one.parts.most(part), one.settled.most(part)).max(0.0) * own / time
            });
            CUT_OFF * own.clone().sum::<f64>() + own.map(|one| one.powi(2)).sum::<f64>().sqrt()
        };
        let retired = Retired::sum(all.clone().map(|(own, one)| (own / time, one.retired)));
        let value = parts.of(Part::Retiring).value;
        // Where it gave way to other evidence, it may be as much less.
        let least = value - (retired.value - value).max(0.0) - retired.below();
        let narrower = |part: Part, of: Interval| {
            let common = settled.most(part);
            let low = common.low - sampling(part, |sampled, settled| settled.low - sampled.low);
            let high = common.high + sampling(part, |sampled, settled| sampled.high - settled.high);
            let low = if part == Part::Retiring { low.max(least) } else { low };
            Interval::new(of.value, low.max(of.low), high.min(of.high))
        };
        parts.narrowed(narrower)
    }
}

impl From<Parts> for Sampled {
    /// Parts that no samples change.
    fn from(parts: Parts) -> Self {
        Self { settled: parts.clone(), parts, retired: Retired::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part::Retiring;
    use crate::{BoundBy, Isolated, Reason, within};

    fn isolated(cycles: Interval) -> Isolated {
        Isolated { cycles, bound: BoundBy::Core, loads: 0.0, among: 0.0 }
    }

    /// A loop of 100 cycles, of which half retire, as long in isolation; samples have this error, the clock 4 %.
    fn evidence(samples: f64) -> Evidence {
        Evidence {
            cycles: Interval::relative(100.0, samples).widened(0.04),
            retiring: Ok(Interval::exact(50.0)),
            isolated: Ok(isolated(Interval::exact(100.0))),
            ..within::tests::evidence()
        }
    }

    /// By hand: each has 50 ± 10.2 %, of which the clock has 2; 100 of them ± 2 of the clock, and of samples a tenth of
    /// 8.2, and a fifth of it as what is cut off: ± 4.5.
    #[test]
    fn errors_of_samples_are_independent_and_those_of_the_clock_are_not() {
        let all = vec![Sampled::divided(&[evidence(0.2)], 0.04); 100];
        let of = |many: usize| {
            let sum = Sampled::sum(all[..many].iter().map(|one| (1.0, one)));
            sum.of(Retiring).interval()
        };
        assert!((of(1).below() - 0.102).abs() < 0.001, "{:?}", of(1));
        assert!((of(100).above() - 0.045).abs() < 0.001, "{:?}", of(100));
        assert!((of(100).value - 0.5).abs() < 1e-9);
    }

    /// By hand: 142.5 / 137.6 of the time in isolation is believed, 142.5 / 104 not, so that without the error of samples
    /// nothing is Core Bound for certain: no number of such pieces makes it more certain than one.
    #[test]
    fn evidence_that_only_samples_let_stand_makes_nothing_more_certain() {
        let alone = isolated(Interval::relative(150.0, 0.05));
        let piece = Sampled::divided(&[Evidence { isolated: Ok(alone), ..evidence(0.37) }], 0.04);
        let sum = Sampled::sum(vec![piece.clone(); 20].iter().map(|one| (1.0, one)));
        let low = |of: &Parts| of.of(Part::CoreBound).low;
        assert!(low(&sum) <= low(&piece.parts) + 1e-9, "{}", low(&sum));
    }

    /// By hand: 50 % of which 4 % are of the clock and 0.2 / √100 of samples: 2.2 points less.
    #[test]
    fn what_retires_has_the_error_of_all_samples_only() {
        let piece = Sampled::divided(&[evidence(0.2)], 0.04);
        let sum = Sampled::sum(vec![piece; 100].iter().map(|one| (1.0, one)));
        assert!((sum.of(Retiring).interval().below() - 0.022).abs() < 0.001, "{sum:?}");
    }

    /// By hand: 10 cycles by the table, 20 to 40 in isolation, all of it slots: 30 % ± 10.
    #[test]
    fn slots_that_the_table_lacks_keep_the_error_of_their_measurement() {
        let alone = Isolated {
            bound: BoundBy::IssueWidth,
            ..isolated(Interval::relative(30.0, 1.0 / 3.0))
        };
        let retiring = Ok(Interval::exact(10.0));
        let piece = Evidence { retiring, isolated: Ok(alone), ..evidence(0.0) };
        let sum = Sampled::sum([(1.0, &Sampled::divided(&[piece], 0.0))].into_iter());
        assert!((sum.of(Retiring).low - 0.2).abs() < 0.01, "{sum:?}");
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        let unknown = Sampled::from(Parts::unknown(Reason::NoTime));
        let sum = Sampled::sum([(1.0, &unknown), (1.0, &unknown)].into_iter());
        assert_eq!((sum.of(Retiring).low, sum.of(Retiring).high), (0.0, 1.0));
    }
}
