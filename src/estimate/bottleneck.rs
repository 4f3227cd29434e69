//! Which part is the largest, if the intervals allow to say.

use crate::parts::{Part, Parts};

/// The part with the largest share. `None` (*undecided*) where another one, or what is unexplained, may be as
/// large: where the difference of the two shares is not above their errors, combined in quadrature.
pub fn bottleneck(parts: &Parts) -> Option<Part> {
    let named = parts.iter().filter(|(part, _)| *part != Part::Unexplained);
    let (most, own) = named.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let is_less = |(part, other): (Part, &crate::Share)| {
        let apart = own.value - other.value;
        part == most || apart > own.interval().below().hypot(other.interval().above())
    };
    (own.value > 0.0 && parts.iter().all(is_less)).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Reason, Share, Source};

    fn parts(all: &[(Part, f64, f64)]) -> Parts {
        let mut parts = Parts::default();
        for (part, value, half) in all {
            let share = Interval::new(*value, value - half, value + half);
            parts.set(*part, Share::known(share, Source::Counted));
        }
        parts
    }

    /// By hand: 0.6 − 0.4 = 0.2 against √(0.12² + 0.12²) = 0.17 and √(0.15² + 0.15²) = 0.21.
    #[test]
    fn parts_within_their_errors_are_undecided() {
        use Part::{CoreBound, MemoryBound, Unexplained};
        let of = |half| bottleneck(&parts(&[(CoreBound, 0.6, half), (MemoryBound, 0.4, half)]));
        assert_eq!((of(0.12), of(0.15)), (Some(CoreBound), None));
        assert_eq!(bottleneck(&parts(&[(CoreBound, 0.4, 0.0), (Unexplained, 0.6, 0.0)])), None);
        assert_eq!(bottleneck(&Parts::unknown(Reason::NoTime)), None);
    }
}
