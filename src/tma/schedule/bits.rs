//! A set of small integers, copied by value: the planner compares and merges thousands of them.

const WORDS: usize = 8;

/// A set of numbers below [`Bits::CAPACITY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    /// Numbers from 0 up to this can be held.
    pub(super) const CAPACITY: usize = WORDS * 64;

    pub(super) fn insert(&mut self, i: usize) {
        debug_assert!(i < Self::CAPACITY);
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(super) fn or(&self, other: &Bits) -> Bits {
        self.with(other, |a, b| a | b)
    }

    pub(super) fn and(&self, other: &Bits) -> Bits {
        self.with(other, |a, b| a & b)
    }

    pub(super) fn minus(&self, other: &Bits) -> Bits {
        self.with(other, |a, b| a & !b)
    }

    pub(super) fn is_subset(&self, of: &Bits) -> bool {
        self.minus(of).is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    pub(super) fn len(&self) -> usize {
        let mut len = 0;
        let mut i = 0;
        while i < WORDS {
            len += self.0[i].count_ones() as usize;
            i += 1;
        }
        len
    }

    /// Members in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(w, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(w * 64 + bit)
            })
        })
    }

    // Plain loops: these run millions of times, and tests run them without optimisation.
    fn with(&self, other: &Bits, f: impl Fn(u64, u64) -> u64) -> Bits {
        let mut out = *self;
        let mut i = 0;
        while i < WORDS {
            out.0[i] = f(self.0[i], other.0[i]);
            i += 1;
        }
        out
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Self {
        let mut bits = Bits::default();
        for m in members {
            bits.insert(m);
        }
        bits
    }
}
