//! Describes the values of a register at the sampled entries of a block, in few words.

use report::documents::count::{RegionShare, RegisterRow, ValueKind, ValueShare};
use std::collections::BTreeMap;

/// Most distinct values that are all listed.
const FEW: usize = 8;
/// Share of consecutive entries between which a value advances by the same distance.
const STEADY: f64 = 0.75;
/// Share of the values that lie in mapped memory, if it is a pointer; the others are ends of lists.
const POINTERS: f64 = 0.99;
/// Below the lowest address that may be mapped (vm.mmap_min_addr).
const LOWEST: u64 = 64 << 10;

/// A value at one entry.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The register, with the bits that are read.
    pub value: u64,
    /// Whether the sample before it is of the previous entry in the same thread, as far as known.
    pub follows: bool,
    /// The memory that it points to.
    pub place: Option<&'a str>,
}

/// Describes a register of which the lower `bits` are read.
pub fn describe(name: &str, bits: u32, samples: &[Sample<'_>]) -> RegisterRow {
    let mut row = RegisterRow { register: name.to_owned(), bits, ..RegisterRow::default() };
    let Some(first) = samples.first() else {
        return row;
    };
    let mut values: BTreeMap<i64, u64> = BTreeMap::new();
    samples.iter().for_each(|s| *values.entry(signed(s.value, bits)).or_default() += 1);
    let share = |n: u64| n as f64 / samples.len() as f64;
    let is_pointer = bits == 64 && is_pointer(samples);
    if is_pointer {
        point(&mut row, samples);
    }
    let step = step(samples, bits);
    row.kind = match values.len() {
        1 => {
            row.value = Some(signed(first.value, bits));
            ValueKind::Constant
        }
        2..=FEW => {
            let all =
                values.iter().map(|(value, n)| ValueShare { value: *value, share: share(*n) });
            row.values = all.collect();
            row.values.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.value.cmp(&b.value)));
            ValueKind::Few
        }
        _ if is_pointer => ValueKind::Pointer,
        _ if step.is_some() => ValueKind::Range,
        _ => ValueKind::Spread,
    };
    if values.len() > FEW {
        row.stride = step.map(|(distance, _)| distance);
        row.stride_share = step.map(|(_, share)| share);
        if !is_pointer {
            row.min = values.keys().next().copied();
            row.max = values.keys().next_back().copied();
            row.median = median(&values, samples.len() as u64);
        }
    }
    row
}

/// The lower bits as a number: signed where they are 32 or 64.
fn signed(value: u64, bits: u32) -> i64 {
    match bits {
        8 => i64::from(value as u8),
        16 => i64::from(value as u16),
        32 => i64::from((value as u32).cast_signed()),
        _ => value.cast_signed(),
    }
}

fn is_pointer(samples: &[Sample<'_>]) -> bool {
    let points = samples.iter().filter(|s| s.value >= LOWEST && s.place.is_some()).count();
    let none = samples.iter().filter(|s| s.value == 0).count();
    points > 0 && points as f64 >= POINTERS * (samples.len() - none) as f64
}

/// Adds where a pointer points to, and how it is aligned.
fn point(row: &mut RegisterRow, samples: &[Sample<'_>]) {
    let set: Vec<&Sample<'_>> = samples.iter().filter(|s| s.value != 0).collect();
    let bits = set.iter().fold(0, |all, sample| all | sample.value);
    row.alignment = Some(1 << bits.trailing_zeros().min(63));
    let mut regions: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in samples {
        let name = match (sample.value, sample.place) {
            (0, _) => "null",
            (_, Some(place)) => place,
            _ => "unmapped",
        };
        *regions.entry(name).or_default() += 1;
    }
    let share = |(region, n): (&str, u64)| RegionShare {
        region: region.to_owned(),
        share: n as f64 / samples.len() as f64,
    };
    row.regions = regions.into_iter().map(share).collect();
    row.regions.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.region.cmp(&b.region)));
}

/// The distance by which most values differ from those before them, other than 0, and their share.
fn step(samples: &[Sample<'_>], bits: u32) -> Option<(i64, f64)> {
    let mut distances: BTreeMap<i64, u64> = BTreeMap::new();
    let mut pairs = 0;
    for pair in samples.windows(2).filter(|pair| pair[1].follows) {
        let of = |s: &Sample<'_>| signed(s.value, bits);
        *distances.entry(of(&pair[1]).wrapping_sub(of(&pair[0]))).or_default() += 1;
        pairs += 1;
    }
    let (distance, n) = distances.into_iter().max_by_key(|(_, n)| *n)?;
    let share = n as f64 / f64::from(pairs);
    (distance != 0 && share >= STEADY).then_some((distance, share))
}

/// The lower median.
fn median(values: &BTreeMap<i64, u64>, all: u64) -> Option<i64> {
    let mut seen = 0;
    let is_half = |(_, n): &(&i64, &u64)| {
        seen += **n;
        2 * seen >= all
    };
    values.iter().find(is_half).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(bits: u32, values: &[u64]) -> RegisterRow {
        let sample = |value: &u64| Sample { value: *value, follows: true, place: None };
        let samples: Vec<Sample<'_>> = values.iter().map(sample).collect();
        describe("x", bits, &samples)
    }

    /// By hand.
    #[test]
    fn kinds_of_numbers() {
        let constant = described(32, &[0xffff_ffff, 0xffff_ffff]);
        assert_eq!((constant.kind, constant.value), (ValueKind::Constant, Some(-1)));
        let few = described(64, &[7, 3, 7, 7]);
        let shares: Vec<_> = few.values.iter().map(|v| (v.value, v.share)).collect();
        assert_eq!((few.kind, shares), (ValueKind::Few, vec![(7, 0.75), (3, 0.25)]));
        // 0, 3, … 27, and again: 9 of 10 steps, and 9 of 9 at the end.
        let all: Vec<u64> = (0..20).map(|n| n % 10 * 3).collect();
        let range = described(32, &all);
        assert_eq!(
            (range.kind, range.stride, range.min, range.max),
            (ValueKind::Range, Some(3), Some(0), Some(27))
        );
        assert!((range.stride_share.unwrap() - 18.0 / 19.0).abs() < 1e-9);
        let spread = described(64, &[1, 100, 4, 9, 25, 16, 49, 36, 64]);
        assert_eq!(
            (spread.kind, spread.median, spread.stride),
            (ValueKind::Spread, Some(25), None)
        );
    }

    #[test]
    fn a_pointer_has_a_region_and_an_alignment() {
        let sample = |n: u64| Sample {
            value: if n == 9 { 0 } else { 0x7000_0000 + 48 * n },
            follows: true,
            place: (n != 9).then_some("heap"),
        };
        let samples: Vec<Sample<'_>> = (0..10).map(sample).collect();
        let row = describe("rdi", 64, &samples);
        let regions: Vec<_> = row.regions.iter().map(|r| (&*r.region, r.share)).collect();
        assert_eq!((row.kind, row.alignment, row.stride), (ValueKind::Pointer, Some(16), Some(48)));
        assert_eq!(regions, [("heap", 0.9), ("null", 0.1)]);
    }
}
