//! Whether addresses are linear in values: address = offset + scale × value.

use std::collections::BTreeMap;

/// At least this share of the pairs must agree: a short loop begins anew within a window.
pub(super) const AGREE: (usize, usize) = (3, 4);
/// Different values from which a relation can be seen.
const DIFFERENT: usize = 4;
/// Largest scale: bytes of an element.
const MOST: i128 = 1 << 20;

/// How addresses follow from values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Linear {
    pub scale: i64,
    pub offset: i64,
}

/// The element that occurs most often, and how often.
fn most<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Option<(T, usize)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count)
}

/// The element that occurs most often.
pub(super) fn commonest<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Option<T> {
    most(all).map(|(one, _)| one)
}

/// The element that occurs most often, if it does in enough of `of`.
pub(super) fn prevailing<T: Ord + Copy>(all: impl Iterator<Item = T>, of: usize) -> Option<T> {
    let (one, count) = most(all)?;
    (count * AGREE.1 >= of * AGREE.0).then_some(one)
}

/// The relation of pairs (value, address), with values of `width` bytes: signed or not, whichever
/// fits.
pub(super) fn linear(pairs: &[(u64, u64)], width: u32) -> Option<Linear> {
    let mut values: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
    values.sort_unstable();
    values.dedup();
    if values.len() < DIFFERENT {
        return None;
    }
    let shift = 64 - 8 * width.clamp(1, 8);
    let signed = |value: u64| (value << shift).cast_signed() >> shift;
    let unsigned = |value: u64| (value << shift >> shift).cast_signed();
    fit(pairs, unsigned).or_else(|| fit(pairs, signed))
}

fn fit(pairs: &[(u64, u64)], value: impl Fn(u64) -> i64) -> Option<Linear> {
    let step = |two: &[(u64, u64)]| {
        let by = i128::from(value(two[1].0)) - i128::from(value(two[0].0));
        let to = i128::from(two[1].1.cast_signed()) - i128::from(two[0].1.cast_signed());
        (by != 0).then_some((by, to))
    };
    let steps: Vec<(i128, i128)> = pairs.windows(2).filter_map(step).collect();
    let whole = |(by, to): &(i128, i128)| (to % by == 0).then_some(to / by);
    // One pair that does not agree spoils two steps.
    let scale = commonest(steps.iter().filter_map(whole))?;
    if scale == 0 || scale.abs() > MOST {
        return None;
    }
    let scale = i64::try_from(scale).ok()?;
    let rest =
        |(from, to): &(u64, u64)| to.cast_signed().wrapping_sub(value(*from).wrapping_mul(scale));
    let offset = prevailing(pairs.iter().map(rest), pairs.len())?;
    Some(Linear { scale, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_and_an_offset_are_found_for_signed_indices_too() {
        let base = 0x7000_0000_0000_u64;
        let indices = [3_i32, -7, 100, 42, -1, 6, 77, 12];
        let pair =
            |i: &i32| (u64::from(i.cast_unsigned()), base.wrapping_add_signed(i64::from(*i) * 24));
        let pairs: Vec<_> = indices.iter().map(pair).collect();
        let expected = Linear { scale: 24, offset: base.cast_signed() };
        assert_eq!(linear(&pairs, 4), Some(expected));
    }

    #[test]
    fn few_different_values_show_no_relation() {
        let pairs: Vec<_> = (0..64).map(|i| (i % 2, 0x1000 + 8 * (i % 2))).collect();
        assert_eq!(linear(&pairs, 8), None);
    }

    #[test]
    fn a_hash_is_not_linear() {
        let hash = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let pairs: Vec<_> = (0..64).map(|i| (i * 3 + 1, 0x1000 + 8 * hash(i * 3 + 1))).collect();
        assert_eq!(linear(&pairs, 8), None);
    }
}
