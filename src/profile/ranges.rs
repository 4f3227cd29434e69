//! A map of address ranges: a new range replaces the parts of others that it overlaps.

use std::collections::BTreeMap;

/// Values by range; the ranges are disjoint.
#[derive(Debug, Clone)]
pub(super) struct RangeMap<T> {
    /// Start → (end, value).
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { ranges: BTreeMap::new() }
    }
}

impl<T: Clone> RangeMap<T> {
    /// Sets `start..end` to `value`; does nothing if the range is empty.
    pub fn insert(&mut self, start: u64, end: u64, value: T) {
        if start >= end {
            return;
        }
        self.cut(start, end);
        self.ranges.insert(start, (end, value));
    }

    /// Removes `start..end` from the ranges there; their parts outside of it stay.
    fn cut(&mut self, start: u64, end: u64) {
        if let Some((_, (old_end, value))) = self.ranges.range_mut(..start).next_back()
            && *old_end > start
        {
            let rest = (*old_end > end).then(|| (*old_end, value.clone()));
            *old_end = start;
            if let Some(rest) = rest {
                self.ranges.insert(end, rest);
            }
        }
        while let Some((&inside, _)) = self.ranges.range(start..end).next() {
            let Some((old_end, value)) = self.ranges.remove(&inside) else { break };
            if old_end > end {
                self.ranges.insert(end, (old_end, value));
            }
        }
    }

    /// The ranges that begin at or below `address`, from there downwards.
    pub fn below(&self, address: u64) -> impl Iterator<Item = &T> {
        self.ranges.range(..=address).rev().map(|(_, (_, value))| value)
    }

    /// The ranges that begin above `address`, upwards.
    pub fn above(&self, address: u64) -> impl Iterator<Item = &T> {
        let after = (std::ops::Bound::Excluded(address), std::ops::Bound::Unbounded);
        self.ranges.range(after).map(|(_, (_, value))| value)
    }

    /// The value at `address`.
    pub fn get(&self, address: u64) -> Option<&T> {
        let (_, (end, value)) = self.ranges.range(..=address).next_back()?;
        (address < *end).then_some(value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// All ranges in order: start, end, value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &T)> {
        self.ranges.iter().map(|(start, (end, value))| (*start, *end, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_inside_another_leaves_both_ends() {
        let mut map = RangeMap::default();
        map.insert(10, 20, 'a');
        map.insert(13, 15, 'b');
        assert_eq!(
            map.iter().collect::<Vec<_>>(),
            [(10, 13, &'a'), (13, 15, &'b'), (15, 20, &'a')]
        );
        map.insert(12, 18, 'c');
        assert_eq!(
            map.iter().collect::<Vec<_>>(),
            [(10, 12, &'a'), (12, 18, &'c'), (18, 20, &'a')]
        );
        map.insert(5, 5, 'd');
        assert_eq!(map.get(5), None);
        assert_eq!(map.get(19), Some(&'a'));
        assert_eq!(map.get(20), None);
    }

    proptest! {
        #[test]
        fn the_last_insertion_holds_at_every_address(
            claims in prop::collection::vec((0u64..40, 0u64..40), 0..20)
        ) {
            let mut map = RangeMap::default();
            let mut plain = [None; 40];
            for (number, (start, end)) in claims.into_iter().enumerate() {
                map.insert(start, end, number);
                for slot in plain.iter_mut().take(end as usize).skip(start as usize) {
                    *slot = Some(number);
                }
            }
            for (address, expected) in plain.iter().enumerate() {
                prop_assert_eq!(map.get(address as u64).copied(), *expected);
            }
        }
    }
}
