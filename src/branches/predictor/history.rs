//! The global history: outcomes of the last branches, and bits of the last targets.

use super::sizes;

/// Bits that a target adds.
const TARGET_BITS: u32 = 3;

/// The outcomes of the last branches, folded for every bank.
#[derive(Debug)]
pub(super) struct History {
    /// A ring; `next` is the place of the oldest bit, which the next one replaces.
    bits: Vec<bool>,
    next: usize,
    /// One for each bank, shortest history first.
    folded: Vec<Folds>,
}

/// A bank's history, folded to the widths of its index and tag. Two of the tag, so that
/// histories with equal tags have different indices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folds {
    pub index: Folded,
    pub tag: Folded,
    pub tag_less_one: Folded,
}

/// The exclusive or of `length` bits of history in pieces of `width` bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folded {
    pub value: u32,
    length: usize,
    width: u32,
}

impl History {
    /// All branches not taken. `longest`: how many are kept, at least those of two banks.
    pub fn new(longest: usize) -> Self {
        let lengths = sizes::lengths(longest);
        let folded = lengths.iter().map(|length| Folds::new(*length)).collect();
        let kept = lengths.last().copied().unwrap_or(1);
        Self { bits: vec![false; kept], next: 0, folded }
    }

    /// Adds the outcome of a branch.
    pub fn push(&mut self, newest: bool) {
        let kept = self.bits.len();
        for folds in &mut self.folded {
            let oldest = self.bits[(self.next + kept - folds.index.length) % kept];
            folds.index.push(newest, oldest);
            folds.tag.push(newest, oldest);
            folds.tag_less_one.push(newest, oldest);
        }
        self.bits[self.next] = newest;
        self.next = (self.next + 1) % kept;
    }

    /// Adds bits of a target.
    pub fn push_target(&mut self, target: u64) {
        let mixed = mix(target);
        (0..TARGET_BITS).for_each(|bit| self.push(mixed >> bit & 1 == 1));
    }

    /// The folded histories, shortest first.
    pub fn folds(&self) -> &[Folds] {
        &self.folded
    }
}

impl Folds {
    fn new(length: usize) -> Self {
        let folded = |width| Folded { value: 0, length, width };
        Self {
            index: folded(sizes::INDEX_BITS),
            tag: folded(sizes::TAG_BITS),
            tag_less_one: folded(sizes::TAG_BITS - 1),
        }
    }
}

impl Folded {
    /// Moves every bit on by one place, the last to the first: the newest enters, the oldest leaves.
    fn push(&mut self, newest: bool, oldest: bool) {
        let moved = self.value << 1 | u32::from(newest);
        let without = moved ^ u32::from(oldest) << (self.length as u32 % self.width);
        self.value = (without ^ without >> self.width) & ((1 << self.width) - 1);
    }
}

/// Spreads an address over all bits: the multiplier of Fibonacci hashing, 2⁶⁴ ÷ golden ratio (Knuth,
/// The Art of Computer Programming 3, 6.4).
pub(super) fn mix(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fold of the last bits, made anew.
    fn folded(pushed: &[bool], length: usize, width: u32) -> u32 {
        let last = pushed.iter().rev().take(length).enumerate();
        last.fold(0, |value, (age, bit)| value ^ u32::from(*bit) << (age as u32 % width))
    }

    #[test]
    fn folds_are_those_of_the_last_bits() {
        let mut history = History::new(100);
        let mut random = fastrand::Rng::with_seed(1);
        let mut pushed = vec![false; 100];
        for _ in 0..500 {
            let bit = random.bool();
            history.push(bit);
            pushed.push(bit);
            for folds in history.folds() {
                for fold in [folds.index, folds.tag, folds.tag_less_one] {
                    assert_eq!(fold.value, folded(&pushed, fold.length, fold.width));
                }
            }
        }
    }
}
