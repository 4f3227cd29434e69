//! Sets of addresses.

use std::ops::Range;

/// Addresses, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses(Vec<u64>);

impl Addresses {
    /// Whether it contains this address.
    pub fn contains(&self, address: &u64) -> bool {
        self.0.binary_search(address).is_ok()
    }

    /// Addresses in a range.
    pub fn within(&self, range: &Range<u64>) -> &[u64] {
        let from = self.0.partition_point(|address| *address < range.start);
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|address| *address < range.end)]
    }

    /// Whether an address is inside the range, after its start.
    pub fn divide(&self, range: &Range<u64>) -> bool {
        let after = self.0.partition_point(|address| *address <= range.start);
        self.0.get(after).is_some_and(|address| *address < range.end)
    }

    /// Adds addresses.
    pub fn extend(&mut self, more: impl IntoIterator<Item = u64>) {
        self.0.extend(more);
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// All addresses, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }
}

impl FromIterator<u64> for Addresses {
    fn from_iter<T: IntoIterator<Item = u64>>(all: T) -> Self {
        let mut addresses = Self::default();
        addresses.extend(all);
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_divided_by_what_is_inside_it() {
        let all: Addresses = [9, 4, 4].into_iter().collect();
        assert_eq!((all.within(&(4..9)), all.contains(&9)), (&[4][..], true));
        assert_eq!([3..5, 4..9, 4..10].map(|range| all.divide(&range)), [true, false, true]);
    }
}
