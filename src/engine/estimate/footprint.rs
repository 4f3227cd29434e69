//! How much code is hot, and what fetching a piece's code can cost.

use super::pieces::{Function, Kind, PieceOf};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Bytes of a cache line.
const CODE_LINE: u64 = 64;
/// The lines that hold this share of all fetches are hot.
const SHARE: f64 = 0.9;
/// Cycles of a fetch from the second cache and the third, and from memory: the first two as manuals state them for
/// loads (AMD family 1Ah: 14 and about 50; Intel: 14 to 16 and 50 to 75), the last as DRAM takes.
const SECOND_CACHE: (f64, f64) = (1e6, 16.0);
const THIRD_CACHE: (f64, f64) = (32e6, 75.0);
const FROM_MEMORY: f64 = 500.0;
/// Bytes of code that a first-level TLB of 64 pages of 4 KiB maps, as of AMD's Zen cores, and the most cycles of a hit
/// in the second level: as Intel's formula of ITLB misses on Haswell and Broadwell has it (`events/intel/hsw.toml`).
const SECOND_TLB: (f64, f64) = (262_144.0, 14.0);
/// Bytes of the first cache, if the core's is not known: the smallest of current cores.
const SMALLEST_FIRST: f64 = 32e3;

/// The hot code.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Footprint {
    /// Bytes of its lines.
    pub bytes: f64,
    /// Bytes of the first cache.
    pub first: f64,
}

impl Footprint {
    /// Finds the hot lines of functions, each of which stands for this many.
    pub fn of<'a>(
        functions: impl Iterator<Item = (f64, &'a Function)>,
        first: Option<usize>,
    ) -> Self {
        let mut lines: BTreeMap<(&str, u64), (f64, f64)> = BTreeMap::new();
        for (times, function) in functions {
            for block in 0..function.flow.blocks.len() {
                let executed = function.executed(block);
                if executed > 0.0 {
                    for line in lines_of(function, block) {
                        let fetched = lines.entry((&function.module, line)).or_default();
                        *fetched = (fetched.0 + executed, times);
                    }
                }
            }
        }
        let bytes = hot(lines.into_values().collect()) * CODE_LINE as f64;
        Self::with(bytes, first)
    }

    /// With this much hot code.
    pub fn with(bytes: f64, first: Option<usize>) -> Self {
        Self { bytes, first: first.map_or(SMALLEST_FIRST, |bytes| bytes as f64) }
    }

    /// The most cycles that a line costs when it is reached, on average.
    pub fn each(&self) -> FetchCost {
        if self.bytes <= self.first {
            return FetchCost::default();
        }
        let latency = match self.bytes {
            bytes if bytes <= SECOND_CACHE.0 => SECOND_CACHE.1,
            bytes if bytes <= THIRD_CACHE.0 => THIRD_CACHE.1,
            _ => FROM_MEMORY,
        };
        let beyond = |fits: f64| (1.0 - fits / self.bytes).max(0.0);
        FetchCost {
            caches: beyond(self.first) * latency,
            translation: beyond(SECOND_TLB.0) * SECOND_TLB.1,
        }
    }

    /// The most cycles that fetching the code of a piece can cost: each line that does not fit, each time that it is
    /// reached.
    pub fn cost(&self, at: PieceOf) -> FetchCost {
        let PieceOf { function, piece } = at;
        let lines = |block: &usize| lines_of(function, *block).count() as f64;
        let own: f64 = piece.blocks.iter().map(lines).sum();
        let fetched = match (piece.kind, piece.entered) {
            // While it goes around it has its code.
            (Kind::Loop(_), Some(entered)) if own * CODE_LINE as f64 <= self.first => own * entered,
            _ => piece.blocks.iter().map(|block| lines(block) * function.executed(*block)).sum(),
        };
        self.each().times(fetched)
    }
}

/// The most cycles that fetching code can cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct FetchCost {
    /// From beyond the first cache.
    pub caches: f64,
    /// Translating its addresses beyond the first TLB.
    pub translation: f64,
}

impl FetchCost {
    /// That many times.
    pub fn times(self, number: f64) -> Self {
        Self { caches: self.caches * number, translation: self.translation * number }
    }
}

/// The lines that a block is in.
pub(super) fn lines_of(function: &Function, block: usize) -> RangeInclusive<u64> {
    let range = function.range(block);
    range.start / CODE_LINE..=(range.end - 1) / CODE_LINE
}

/// How many lines have most of the fetches: each line with its fetches, and how many it stands for.
fn hot(mut lines: Vec<(f64, f64)>) -> f64 {
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all: f64 = lines.iter().map(|(fetches, times)| fetches * times).sum();
    let mut sum = 0.0;
    let is_missing = |(fetches, times): &&(f64, f64)| {
        let before = sum;
        sum += fetches * times;
        before < SHARE * all
    };
    lines.iter().take_while(is_missing).map(|(_, times)| times).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_hardly_fetched_are_not_hot() {
        let each = |times: f64, all: Vec<f64>| hot(all.iter().map(|one| (*one, times)).collect());
        assert_eq!(each(1.0, vec![1.0, 50.0, 50.0, 1.0]), 2.0);
        assert_eq!(each(3.0, vec![1.0; 100]), 270.0);
        assert_eq!(each(1.0, Vec::new()), 0.0);
    }
}
