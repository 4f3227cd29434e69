//! A distribution of whole numbers: cycles or trips.

use std::collections::BTreeMap;

/// A mode has at least this share of all values (design: APT-GET's peaks of the iteration times).
const LEAST_SHARE: f64 = 0.02;

/// Values below this are counted in place: most are.
const LOW: usize = 64;

/// How often each value occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Counts of the values below [`LOW`]; empty if there are none.
    low: Vec<u64>,
    high: BTreeMap<u64, u64>,
}

impl Distribution {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        *self.slot(value) += 1;
    }

    /// Adds the values of another.
    pub fn add_all(&mut self, other: &Self) {
        for (value, n) in other.counts() {
            *self.slot(value) += n;
        }
    }

    fn slot(&mut self, value: u64) -> &mut u64 {
        if value >= LOW as u64 {
            return self.high.entry(value).or_default();
        }
        if self.low.is_empty() {
            self.low.resize(LOW, 0);
        }
        &mut self.low[value as usize]
    }

    /// How often a value occurred.
    pub fn count(&self, value: u64) -> u64 {
        match self.low.get(value as usize).filter(|_| value < LOW as u64) {
            Some(n) => *n,
            None => self.high.get(&value).copied().unwrap_or(0),
        }
    }

    /// How many values there are.
    pub fn number(&self) -> u64 {
        self.counts().map(|(_, n)| n).sum()
    }

    /// Values and how often they occurred, in order of value.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let low = (0..).zip(self.low.iter().copied()).filter(|(_, n)| *n > 0);
        low.chain(self.high.iter().map(|(value, n)| (*value, *n)))
    }

    /// The mean, if there are values.
    pub fn mean(&self) -> Option<f64> {
        let number = self.number();
        let sum: f64 = self.counts().map(|(value, n)| value as f64 * n as f64).sum();
        (number > 0).then(|| sum / number as f64)
    }

    /// The median, if there are values; between the two middle ones of an even number.
    pub fn median(&self) -> Option<f64> {
        let number = self.number();
        let at = |rank: u64| {
            let mut below = 0;
            self.counts().find_map(|(value, n)| {
                below += n;
                (below > rank).then_some(value)
            })
        };
        let upper = at(number / 2)?;
        let lower = if number.is_multiple_of(2) { at(number / 2 - 1)? } else { upper };
        Some((lower + upper) as f64 / 2.0)
    }

    /// The smallest value that this share of all is not above; none if there are no values.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let most = share * self.number() as f64;
        let mut below = 0;
        self.counts().find_map(|(value, n)| {
            below += n;
            (below as f64 >= most).then_some(value)
        })
    }

    /// The values around which others gather: no adjacent value is more frequent, and the value and the next one
    /// together have at least 2 % of all.
    pub fn modes(&self) -> Vec<u64> {
        let all = self.number() as f64;
        let of = |value: u64| self.count(value);
        self.counts()
            .filter(|(value, n)| {
                let (before, after) = (value.checked_sub(1).map_or(0, of), of(value + 1));
                (n + after) as f64 >= LEAST_SHARE * all && *n > before && *n >= after
            })
            .map(|(value, _)| value)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand.
    #[test]
    fn mean_median_and_modes() {
        let mut values = Distribution::default();
        assert_eq!((values.mean(), values.median()), (None, None));
        for value in [4, 4, 4, 5, 40, 41, 41] {
            values.add(value);
        }
        assert_eq!(values.median(), Some(5.0));
        assert_eq!(values.mean(), Some(139.0 / 7.0));
        assert_eq!(values.modes(), [4, 41]);
        values.add(3);
        assert_eq!(values.median(), Some(4.5), "between 4 and 5");
    }
}
