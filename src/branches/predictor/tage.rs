//! TAGE for conditional branches and ITTAGE for indirect jumps and calls, over tagged banks of geometric history
//! lengths, which both share: which entry predicts a branch, and which one learns it.

use super::history::{BANKS, Folds, History, INDEX_BITS, TAG_BITS, mix, mix_all};
use tma::self_test::Rule;

/// Most that an entry's usefulness counts: two bits.
const MOST_USEFUL: u8 = 3;
/// Usefulness is halved after this many branches, so that what was useful once is replaced.
const PERIOD: u32 = 1 << 18;

/// An entry; `T` is what it predicts.
#[derive(Debug, Clone, Copy, Default)]
struct Entry<T> {
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
struct Place {
    pub bank: usize,
    index: usize,
    tag: u16,
}

/// The banks, shortest history first.
#[derive(Debug)]
struct Banks<T> {
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

/// Counters of the table without history.
const BIMODAL: usize = 1 << 14;
/// Most and least of a counter in the banks: three bits, taken from 0 on.
const MOST: i8 = 3;
const LEAST: i8 = -4;
/// Most of the counter that says whether new entries are better than their alternative.
const MOST_TRUST: i8 = 7;

/// Predicts whether branches are taken.
#[derive(Debug)]
pub(super) struct Direction {
    /// Two bits each, taken from 0 on.
    bimodal: Vec<i8>,
    banks: Banks<i8>,
    /// At least 0: the alternative of a new entry is the better prediction.
    trust_alternative: i8,
}

/// The predicted outcome, and which table gave it.
struct Prediction {
    provider: Option<Place>,
    /// Prediction of the entry with the longest history, or of the bimodal counter.
    longest: bool,
    /// Prediction without it.
    alternative: bool,
    /// The prediction.
    taken: bool,
}

impl Direction {
    /// One that has seen no branch, with banks of 2^`size` entries.
    pub fn new(size: u32) -> Self {
        Self { bimodal: vec![0; BIMODAL], banks: Banks::new(size), trust_alternative: 0 }
    }

    /// Whether the branch is predicted; learns what it did.
    pub fn run(&mut self, history: &History, address: u64, taken: bool) -> bool {
        let places = self.banks.places(history, address);
        let (provider, next) = self.banks.matches(&places);
        let base = mix(address) as usize % BIMODAL;
        let predicted = self.predict(provider, next, base);
        if predicted.taken != taken {
            // A new entry that was right only lacks trust.
            let learnt = predicted.provider.is_some() && predicted.longest == taken;
            if !learnt {
                let weakly = if taken { 0 } else { -1 };
                self.banks.allocate(&places, predicted.provider, weakly);
            }
        }
        self.learn(&predicted, next, base, taken);
        self.banks.age();
        predicted.taken == taken
    }

    fn predict(&self, provider: Option<Place>, next: Option<Place>, base: usize) -> Prediction {
        let says = |place: Option<Place>| {
            place.map_or(self.bimodal[base] >= 0, |at| self.banks.at(at).value >= 0)
        };
        let (longest, alternative) = (says(provider), says(next));
        let taken = if self.is_untested(provider) && self.trust_alternative >= 0 {
            alternative
        } else {
            longest
        };
        Prediction { provider, longest, alternative, taken }
    }

    /// Whether an entry was made a short while ago.
    fn is_untested(&self, place: Option<Place>) -> bool {
        place.is_some_and(|at| {
            let entry = self.banks.at(at);
            entry.is_new() && matches!(entry.value, -1 | 0)
        })
    }

    fn learn(&mut self, predicted: &Prediction, next: Option<Place>, base: usize, taken: bool) {
        let Some(provider) = predicted.provider else {
            towards(&mut self.bimodal[base], taken, -2, 1);
            return;
        };
        let differ = predicted.longest != predicted.alternative;
        if self.is_untested(Some(provider)) && differ {
            let better = predicted.alternative == taken;
            towards(&mut self.trust_alternative, better, -MOST_TRUST - 1, MOST_TRUST);
        }
        // An entry that may yet be replaced does not prevent its alternative from learning.
        if self.banks.at(provider).is_new() {
            match next {
                Some(place) => towards(&mut self.banks.at_mut(place).value, taken, LEAST, MOST),
                None => towards(&mut self.bimodal[base], taken, -2, 1),
            }
        }
        let entry = self.banks.at_mut(provider);
        towards(&mut entry.value, taken, LEAST, MOST);
        if differ {
            entry.judge(predicted.longest == taken);
        }
    }
}

/// Moves a counter by one, up or down, within its ends.
fn towards(counter: &mut i8, up: bool, least: i8, most: i8) {
    *counter = if up { (*counter + 1).min(most) } else { (*counter - 1).max(least) };
}

/// Targets stored without history.
const LAST: usize = 1 << 12;
/// Most of an entry's confidence: two bits.
const MOST_SURE: u8 = 3;

/// A target and how often it was right lately.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    target: u64,
    confidence: u8,
}

impl Seen {
    /// Counts a hit; after misses, or the first one, the target is replaced.
    fn learn(&mut self, target: u64, rule: Rule) {
        if self.target == target {
            self.confidence = (self.confidence + 1).min(MOST_SURE);
        } else if rule == Rule::Last {
            *self = Seen { target, confidence: 0 };
        } else if self.confidence > 0 {
            self.confidence -= 1;
        } else {
            self.target = target;
        }
    }
}

/// Predicts where indirect branches go.
#[derive(Debug)]
pub(super) struct Target {
    last: Vec<Seen>,
    banks: Banks<Seen>,
    rule: Rule,
}

impl Target {
    /// One that has seen no branch, and takes targets by `rule`.
    pub fn new(rule: Rule) -> Self {
        Self { last: vec![Seen::default(); LAST], banks: Banks::new(INDEX_BITS), rule }
    }

    /// Whether the target is predicted; learns it.
    pub fn run(&mut self, history: &History, address: u64, target: u64) -> bool {
        let places = self.banks.places(history, address);
        let (provider, next) = self.banks.matches(&places);
        let base = mix(address) as usize % LAST;
        let says =
            |place: Option<Place>| place.map_or(self.last[base], |at| self.banks.at(at).value);
        let (longest, alternative) = (says(provider), says(next));
        // A new entry that was not right yet: the alternative, if that is surer.
        let unsure = longest.confidence == 0 && alternative.confidence > 0;
        let predicted = if unsure { alternative.target } else { longest.target };
        if predicted != target && (provider.is_none() || longest.target != target) {
            self.banks.allocate(&places, provider, Seen { target, confidence: 0 });
        }
        match provider {
            Some(place) => {
                let entry = self.banks.at_mut(place);
                entry.value.learn(target, self.rule);
                if longest.target != alternative.target {
                    entry.judge(longest.target == target);
                }
            }
            None => self.last[base].learn(target, self.rule),
        }
        self.banks.age();
        predicted == target
    }
}
