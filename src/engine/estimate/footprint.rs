//! How much code is hot, and what fetching it can cost.

use super::pieces::{Function, Kind, PieceOf};
use std::collections::BTreeMap;

/// Bytes of a cache line.
const LINE: u64 = 64;
/// The lines that hold this share of all fetches are hot.
const SHARE: f64 = 0.9;
/// Cycles of a fetch from the second cache and the third, and from memory: the first two as manuals state them for
/// loads (AMD family 1Ah: 14 and about 50; Intel: 14 to 16 and 50 to 75), the last as DRAM takes.
const SECOND: (f64, f64) = (1e6, 16.0);
const THIRD: (f64, f64) = (32e6, 75.0);
const MEMORY: f64 = 500.0;
/// Bytes of the first cache, if the core's is not known: the smallest of current cores.
const FIRST: f64 = 32e3;

/// The hot code.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Footprint {
    /// Bytes of its lines.
    pub bytes: f64,
    /// Bytes of the first cache.
    pub first: f64,
}

impl Footprint {
    /// Finds the hot lines of all counted functions.
    pub fn of(functions: &[Function], first: Option<usize>) -> Self {
        let mut lines: BTreeMap<(&str, u64), f64> = BTreeMap::new();
        for function in functions {
            for block in 0..function.flow.blocks.len() {
                let executed = function.executed(block);
                let range = function.range(block);
                if executed > 0.0 {
                    for line in range.start / LINE..=(range.end - 1) / LINE {
                        *lines.entry((&function.module, line)).or_default() += executed;
                    }
                }
            }
        }
        let first = first.map_or(FIRST, |bytes| bytes as f64);
        Self { bytes: hot(lines.into_values().collect()) as f64 * LINE as f64, first }
    }

    /// The most cycles that fetching the code of a piece can cost: each line that does not fit, each time that it is
    /// reached.
    pub fn cost(&self, at: PieceOf) -> f64 {
        let PieceOf { function, piece } = at;
        if self.bytes <= self.first {
            return 0.0;
        }
        let beyond = 1.0 - self.first / self.bytes;
        let latency = match self.bytes {
            bytes if bytes <= SECOND.0 => SECOND.1,
            bytes if bytes <= THIRD.0 => THIRD.1,
            _ => MEMORY,
        };
        let lines = |block: &usize| {
            let range = function.range(*block);
            ((range.end - 1) / LINE - range.start / LINE + 1) as f64
        };
        let own: f64 = piece.blocks.iter().map(lines).sum();
        let fetched = match (piece.kind, piece.entered) {
            // While it goes around it has its code.
            (Kind::Loop(_), Some(entered)) if own * LINE as f64 <= self.first => own * entered,
            _ => piece.blocks.iter().map(|block| lines(block) * function.executed(*block)).sum(),
        };
        fetched * beyond * latency
    }
}

/// How many of the lines have most of the fetches.
fn hot(mut lines: Vec<f64>) -> usize {
    lines.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = lines.iter().sum();
    let mut sum = 0.0;
    let is_missing = |fetches: &&f64| {
        let before = sum;
        sum += **fetches;
        before < SHARE * all
    };
    lines.iter().take_while(is_missing).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_hardly_fetched_are_not_hot() {
        assert_eq!(hot(vec![1.0, 50.0, 50.0, 1.0]), 2);
        assert_eq!(hot(vec![1.0; 100]), 90);
        assert_eq!(hot(Vec::new()), 0);
    }
}
