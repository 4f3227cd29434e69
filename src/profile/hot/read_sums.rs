//! Sums of readings, in little memory however many there are.

use std::collections::BTreeMap;

/// Most parts that readings are summed to: at least half of them, with so many readings, are enough for a jackknife,
/// and readings near one another, which are not independent, share a part.
const MOST: usize = 128;

/// Counts and times between two readings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read<'a> {
    /// Nanoseconds that the group was enabled.
    pub enabled: u64,
    /// Nanoseconds that it counted.
    pub running: u64,
    /// Counts of its events.
    pub values: &'a [u64],
}

/// Readings, summed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadSum {
    /// How many there are.
    pub readings: u64,
    /// Nanoseconds that the group was enabled.
    pub enabled: f64,
    /// Numbers of a part: time enabled, time running, and a count of each event.
    wide: usize,
    /// The parts, one after another.
    parts: Vec<u64>,
    /// Readings of a part, and of the last one so far.
    each: u64,
    in_last: u64,
}

/// Successive readings, summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Nanoseconds that the group was enabled.
    pub enabled: u64,
    /// Nanoseconds that it counted.
    pub running: u64,
    /// Counts, in the order of [`Reads::events`](super::Reads::events).
    pub values: &'a [u64],
}

impl ReadSum {
    pub(super) fn add(&mut self, read: Read<'_>) {
        self.wide = 2 + read.values.len();
        if self.parts.is_empty() || self.in_last == self.each {
            if self.parts.len() == MOST * self.wide {
                self.halve();
            }
            self.parts.resize(self.parts.len() + self.wide, 0);
            self.in_last = 0;
        }
        self.each = self.each.max(1);
        let numbers = [read.enabled, read.running].into_iter().chain(read.values.iter().copied());
        let last = self.parts.len() - self.wide;
        for (sum, number) in self.parts[last..].iter_mut().zip(numbers) {
            *sum = sum.saturating_add(number);
        }
        self.in_last += 1;
        self.readings += 1;
        self.enabled += read.enabled as f64;
    }

    /// Sums each two parts to one.
    fn halve(&mut self) {
        let pairs = self.parts.chunks(2 * self.wide).flat_map(|two| {
            let (first, second) = two.split_at(self.wide);
            first.iter().zip(second).map(|(a, b)| a.saturating_add(*b))
        });
        self.parts = pairs.collect();
        self.each *= 2;
    }

    /// Parts of as many successive readings each, but for the last.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.chunks(self.wide.max(2)).filter_map(|part| {
            let [enabled, running, values @ ..] = part else { return None };
            Some(Part { enabled: *enabled, running: *running, values })
        })
    }
}

/// The median of numbers, to the nearest 128th.
#[derive(Debug, Clone, Default)]
pub(super) struct Median {
    /// How many numbers begin with the same bits, and their sum.
    alike: BTreeMap<u32, (u64, f64)>,
}

impl Median {
    pub fn add(&mut self, number: u64) {
        let bits = u64::BITS - number.leading_zeros();
        let first = number >> bits.saturating_sub(8);
        let alike = self.alike.entry(bits << 8 | first as u32).or_default();
        *alike = (alike.0 + 1, alike.1 + number as f64);
    }

    pub fn get(&self) -> f64 {
        let half = self.alike.values().map(|(count, _)| count).sum::<u64>() / 2;
        let mut before = 0;
        let middle = self.alike.values().find(|(count, _)| {
            before += count;
            before > half
        });
        middle.map_or(0.0, |(count, sum)| sum / *count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_readings_are_a_hundred_parts() {
        let mut sum = ReadSum::default();
        for number in 0..1_000_000 {
            sum.add(Read { enabled: 10, running: 5, values: &[number, 1] });
        }
        let parts: Vec<_> = sum.parts().collect();
        assert!((64..=128).contains(&parts.len()), "{}", parts.len());
        assert_eq!((sum.readings, sum.enabled), (1_000_000, 1e7));
        let of = |at: usize| parts.iter().map(|part| part.values[at]).sum::<u64>();
        assert_eq!((of(0), of(1)), (999_999 * 500_000, 1_000_000));
        assert!(
            parts
                .windows(2)
                .all(|two| two[0].values[0] < two[1].values[0]
                    || two[1].values[1] < two[0].values[1]),
            "in order of time"
        );
        let whole = &parts[..parts.len() - 1];
        assert!(
            whole
                .iter()
                .all(|part| part.running == 5 * part.values[1]
                    && part.values[1] == whole[0].values[1])
        );
    }

    #[test]
    fn few_readings_are_kept_apart() {
        let mut sum = ReadSum::default();
        (0..128).for_each(|_| sum.add(Read { enabled: 1, running: 1, values: &[] }));
        assert_eq!(sum.parts().count(), 128);
        assert_eq!(ReadSum::default().parts().count(), 0);
    }

    #[test]
    fn the_median_is_known_to_a_128th() {
        let mut median = Median::default();
        assert_eq!(median.get(), 0.0);
        for number in [1_000_000, 1_000_000, 3, 5_000_000_000, 1_000_000] {
            median.add(number);
        }
        assert_eq!(median.get(), 1e6, "alike ones are exact");
        let mut median = Median::default();
        (0..100_001).for_each(|number| median.add(number));
        assert!((median.get() / 50_000.0 - 1.0).abs() < 1.0 / 128.0, "{}", median.get());
    }
}
