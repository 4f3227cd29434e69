//! Two blocks measured in turn, and the difference of their times.

use crate::block::Measurer;
use crate::core_model::CoreModel;
use bench::{Measurement, Options, Status};
use isa::code::Block;
use report::documents::block_pair::{Difference, Faster};
use std::fmt;
use tma::Result;

/// Pairs of measurements. The range of six covers the median of their distribution with a probability
/// of 1 - 2/2⁶, whatever that distribution is (sign test).
const PAIRS: usize = 6;

/// Measurements of each block until one is stable.
const TRIES: usize = 2;

/// Why two blocks have no difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoDifference {
    /// The measurement of this one ended otherwise, for the reason if one is known.
    Block(&'static str, Status, Option<String>),
    /// Only this many pairs were not disturbed.
    Pairs(usize),
}

impl fmt::Display for NoDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(name, status, reason) => {
                let is = if *status == Status::Failed { "" } else { "is " };
                let reason = reason.as_deref().unwrap_or("no reason");
                write!(f, "{name} {is}{}: {reason}", status.word())
            }
            Self::Pairs(number) => {
                write!(f, "only {number} of {} pairs were uncontended", 2 * PAIRS)
            }
        }
    }
}

/// Both measurements with their explanations, and the difference or why there is none.
pub type Compared = (Measurement, Measurement, std::result::Result<Difference, NoDifference>);

/// Measures both blocks, each with its `options`, and explains them, then measures them in pairs, of which
/// every second one is in reverse order so that drift cancels.
///
/// # Errors
/// The sandbox cannot be started.
pub fn compare(
    options: [&Options; 2],
    model: &CoreModel,
    a: &Block,
    b: &Block,
) -> Result<Compared> {
    let first = settled(&mut Measurer::new(options[0].clone(), model), a)?;
    let second = settled(&mut Measurer::new(options[1].clone(), model), b)?;
    let why = not_ok("A", &first).or_else(|| not_ok("B", &second));
    if let Some(why) = why {
        return Ok((first, second, Err(why)));
    }
    let mut measurers = options.map(|options| {
        let budget = options.budget / PAIRS as u32;
        let plain = Options { explain: false, counts: false, budget, ..options.clone() };
        Measurer::new(plain, model)
    });
    let mut time = |number: usize| -> Result<Option<f64>> {
        let measurement = measurers[number].measure([a, b][number], false)?;
        let ok = measurement.status == Status::Ok;
        Ok(measurement.throughput.filter(|_| ok).map(|t| t.cycles))
    };
    let mut pairs = Vec::new();
    for pair in 0..2 * PAIRS {
        let (one, other) = match pair % 2 {
            0 => (time(0)?, time(1)?),
            _ => {
                let other = time(1)?;
                (time(0)?, other)
            }
        };
        pairs.extend(one.zip(other));
        if pairs.len() == PAIRS {
            break;
        }
    }
    let difference = match pairs.len() {
        PAIRS => Ok(difference(&pairs)),
        number => Err(NoDifference::Pairs(number)),
    };
    Ok((first, second, difference))
}

/// A measurement that is not unstable, if one of a few is.
fn settled(measurer: &mut Measurer, block: &Block) -> Result<Measurement> {
    let mut measurement = measurer.measure(block, false)?;
    for _ in 1..TRIES {
        if measurement.status != Status::Unstable {
            break;
        }
        measurement = measurer.measure(block, false)?;
    }
    Ok(measurement)
}

/// Why the measurement of `name` is not to be trusted, if it is not.
fn not_ok(name: &'static str, measurement: &Measurement) -> Option<NoDifference> {
    let Measurement { status, reason, .. } = measurement;
    (*status != Status::Ok).then(|| NoDifference::Block(name, *status, reason.clone()))
}

/// The difference of the pairs of times of A and B.
fn difference(pairs: &[(f64, f64)]) -> Difference {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    let (low, high) = differences
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), d| (low.min(*d), high.max(*d)));
    let of = |times: Vec<f64>| median(times);
    let (a, b) = pairs.iter().copied().unzip();
    Difference {
        cycles: of(differences),
        low,
        high,
        ratio: of(b) / of(a),
        pairs: pairs.len(),
        confidence: 1.0 - 2.0 * 0.5_f64.powi(i32::try_from(pairs.len()).unwrap_or(i32::MAX)),
        faster: match () {
            () if low > 0.0 => Faster::A,
            () if high < 0.0 => Faster::B,
            () => Faster::Neither,
        },
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 if middle > 0 => f64::midpoint(values[middle - 1], values[middle]),
        0 => f64::NAN,
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: differences 1.0, 1.1, 0.9, 1.0, 1.2, 0.8; 6 pairs: 1 - 2/64.
    #[test]
    fn the_interval_is_the_range_of_the_pairs() {
        let pairs = [(2.0, 3.0), (2.0, 3.1), (2.1, 3.0), (2.0, 3.0), (1.9, 3.1), (2.2, 3.0)];
        let found = difference(&pairs);
        assert!((found.cycles - 1.0).abs() < 1e-9 && (found.ratio - 1.5).abs() < 1e-9);
        assert!((found.low - 0.8).abs() < 1e-9 && (found.high - 1.2).abs() < 1e-9);
        assert_eq!((found.faster, found.confidence), (Faster::A, 0.96875));
        let even = difference(&[(2.0, 2.1), (2.0, 1.9), (2.0, 2.0)]);
        assert_eq!(even.faster, Faster::Neither);
    }
}
