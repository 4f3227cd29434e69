//! The global history of a predictor (outcomes of the last branches, bits of the last targets), and the sizes of
//! its tables with the history lengths that they see.

/// Bits of a bank's index where nothing else is known: 2,048 entries.
pub(super) const INDEX_BITS: u32 = 11;
/// Bits of a tag: one wrong match in 4,096.
pub(super) const TAG_BITS: u32 = 12;
/// Banks: between the 8 of the paper of 2006 and the 15 of that of 2011.
pub(super) const BANKS: usize = 12;
/// The shortest history.
const SHORTEST: usize = 3;
/// The history lengths, geometric from the shortest to `longest`.
fn lengths(longest: usize) -> [usize; BANKS] {
    let longest = longest.max(SHORTEST + BANKS);
    let ratio = (longest as f64 / SHORTEST as f64).powf(1.0 / (BANKS - 1) as f64);
    let mut lengths =
        std::array::from_fn(|bank| (SHORTEST as f64 * ratio.powi(bank as i32)).round() as usize);
    for at in 1..BANKS {
        lengths[at] = lengths[at].max(lengths[at - 1] + 1);
    }
    lengths
}

/// Bits that a target adds.
const TARGET_BITS: u32 = 3;

/// The outcomes of the last branches, folded for every bank.
#[derive(Debug)]
pub(super) struct History {
    /// A ring; `next` is the place of the oldest bit, which the next one replaces.
    bits: Vec<bool>,
    next: usize,
    /// One for each bank, shortest history first.
    folded: [Folds; BANKS],
}

/// A bank's history, folded twice: from both follow its index and tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folds {
    pub wide: Folded,
    pub narrow: Folded,
}

/// The exclusive or of `length` bits of history in pieces of `width` bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folded {
    pub value: u32,
    length: usize,
    width: u32,
}

impl History {
    /// All branches not taken. `longest`: number of outcomes stored, at least those of two banks.
    pub fn new(longest: usize) -> Self {
        let lengths = lengths(longest);
        let folded = lengths.map(Folds::new);
        let kept = lengths[BANKS - 1];
        Self { bits: vec![false; kept], next: 0, folded }
    }

    /// Adds the outcome of a branch.
    pub fn push(&mut self, newest: bool) {
        let kept = self.bits.len();
        for folds in &mut self.folded {
            let oldest = self.bits[(self.next + kept - folds.wide.length) % kept];
            folds.wide.push(newest, oldest);
            folds.narrow.push(newest, oldest);
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
    /// Widths that are prime: a period in the history must not be one of the fold.
    fn new(length: usize) -> Self {
        let folded = |width| Folded { value: 0, length, width };
        Self { wide: folded(31), narrow: folded(29) }
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

/// Spreads an address over all bits.
pub(super) fn mix(address: u64) -> u64 {
    mix_all(address) >> 20
}

/// Spreads a number over the upper bits: the multiplier of Fibonacci hashing, 2⁶⁴ ÷ golden ratio (Knuth,
/// The Art of Computer Programming 3, 6.4).
pub(super) fn mix_all(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 3 × (640 ÷ 3)^(n ÷ 11).
    #[test]
    fn lengths_are_geometric() {
        assert_eq!(lengths(640), [3, 5, 8, 13, 21, 34, 56, 91, 148, 241, 393, 640]);
        assert!(lengths(0).windows(2).all(|pair| pair[0] < pair[1]));
    }

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
                for fold in [folds.wide, folds.narrow] {
                    assert_eq!(fold.value, folded(&pushed, fold.length, fold.width));
                }
            }
        }
    }
}
