//! Addresses in trampolines → original code.

use std::ops::Range;
use std::path::PathBuf;

/// The trampolines of one file in one process, to attribute samples, saved contexts and signals in
/// them to the original code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trampolines {
    /// The process that was patched first; its forks have the same trampolines.
    pub process: i32,
    /// The file.
    pub path: PathBuf,
    /// Addresses in the process → original instruction (p_vaddr), in order of address.
    pieces: Vec<(Range<u64>, u64)>,
}

impl Trampolines {
    pub(super) fn new(process: i32, path: PathBuf, mut pieces: Vec<(Range<u64>, u64)>) -> Self {
        pieces.sort_by_key(|(range, _)| range.start);
        Self { process, path, pieces }
    }

    /// The (first) original instruction (p_vaddr) that is executed at an address of a trampoline;
    /// for a redirected call, its target.
    pub fn original(&self, address: u64) -> Option<u64> {
        let index = self.pieces.partition_point(|(range, _)| range.start <= address);
        let (range, original) = self.pieces.get(index.checked_sub(1)?)?;
        range.contains(&address).then_some(*original)
    }

    /// All parts of trampolines and their original instructions, in order of address.
    pub fn all(&self) -> impl Iterator<Item = (&Range<u64>, u64)> {
        self.pieces.iter().map(|(range, original)| (range, *original))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_inside_trampolines_have_an_origin() {
        let all = vec![(0x2000..0x2010, 0x40), (0x1000..0x1008, 0x50), (0x2010..0x2018, 0x48)];
        let map = Trampolines::new(1, "file".into(), all);
        let found =
            [0xfff, 0x1000, 0x1007, 0x1008, 0x200f, 0x2010, 0x2018].map(|a| map.original(a));
        assert_eq!(found, [None, Some(0x50), Some(0x50), None, Some(0x40), Some(0x48), None]);
    }
}
