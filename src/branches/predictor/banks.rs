//! Tagged banks of geometric history lengths: which entry predicts a branch, and which one learns it.

use super::history::{Folds, History, mix, mix_all};
use super::sizes::{BANKS, TAG_BITS};

/// Most that an entry's usefulness counts: two bits.
const MOST_USEFUL: u8 = 3;
/// Usefulness is halved after this many branches, so that what was useful once is replaced.
const PERIOD: u32 = 1 << 18;

/// An entry; `T` is what it predicts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry<T> {
    tag: u16,
    useful: u8,
    /// The prediction.
    pub value: T,
}

impl<T> Entry<T> {
    /// Whether it has not yet been right where others were wrong.
    pub fn is_new(&self) -> bool {
        self.useful == 0
    }

    /// Notes whether it was right where the next shorter history was not, or wrong where that was right.
    pub fn judge(&mut self, right: bool) {
        self.useful =
            if right { (self.useful + 1).min(MOST_USEFUL) } else { self.useful.saturating_sub(1) };
    }
}

/// Where an entry is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub bank: usize,
    index: usize,
    tag: u16,
}

/// The banks, shortest history first.
#[derive(Debug)]
pub(super) struct Banks<T> {
    banks: Vec<Vec<Entry<T>>>,
    /// Logarithm of a bank's entries.
    size: u32,
    random: fastrand::Rng,
    branches: u32,
}

impl<T: Copy + Default> Banks<T> {
    /// Empty banks of 2^`size` entries.
    pub fn new(size: u32) -> Self {
        let bank = vec![Entry::default(); 1 << size];
        let random = fastrand::Rng::with_seed(1);
        Self { banks: vec![bank; BANKS], size, random, branches: 0 }
    }

    /// Where `address` belongs after this history, in each bank.
    pub fn places(&self, history: &History, address: u64) -> [Place; BANKS] {
        let mixed = mix(address);
        std::array::from_fn(|bank| {
            let Folds { wide, narrow } = history.folds()[bank];
            let folded = u64::from(wide.value) << 32 | u64::from(narrow.value);
            // Products and an exclusive or, so that all bits of the index are used whatever pattern a history has.
            let first = mix_all(folded ^ mixed.rotate_left(5 * bank as u32));
            let all = mix_all(first ^ first >> 32);
            // No tag is 0, which empty entries have.
            let tag = (all as u16 & ((1 << TAG_BITS) - 1)).max(1);
            Place { bank, index: (all >> (u64::BITS - self.size)) as usize, tag }
        })
    }

    /// The places that hold the branch, longest history first.
    pub fn matches(&self, places: &[Place]) -> (Option<Place>, Option<Place>) {
        let mut found = places.iter().rev().copied().filter(|at| self.at(*at).tag == at.tag);
        (found.next(), found.next())
    }

    /// The entry at a place.
    pub fn at(&self, place: Place) -> &Entry<T> {
        &self.banks[place.bank][place.index]
    }

    /// The entry at a place, to change it.
    pub fn at_mut(&mut self, place: Place) -> &mut Entry<T> {
        &mut self.banks[place.bank][place.index]
    }

    /// After a misprediction: has an entry of a longer history learn the branch, where one is free. The
    /// shortest of these twice as likely as the next, so that branches in a row spread.
    pub fn allocate(&mut self, places: &[Place; BANKS], longer_than: Option<Place>, value: T) {
        let first = longer_than.map_or(0, |place| place.bank + 1);
        let longer = &places[first.min(places.len())..];
        let free: Vec<Place> = longer.iter().copied().filter(|at| self.at(*at).is_new()).collect();
        if free.is_empty() {
            longer.iter().for_each(|at| self.at_mut(*at).judge(false));
            return;
        }
        let skipped = free.len() > 1 && self.random.u8(..3) == 0;
        let place = free[usize::from(skipped)];
        *self.at_mut(place) = Entry { tag: place.tag, useful: 0, value };
    }

    /// Counts a branch, and lets usefulness fade.
    pub fn age(&mut self) {
        self.branches += 1;
        if self.branches == PERIOD {
            self.branches = 0;
            self.banks.iter_mut().flatten().for_each(|entry| entry.useful /= 2);
        }
    }
}
