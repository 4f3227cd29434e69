//! Indirect jumps and calls: ITTAGE, which predicts the most frequent of several targets; or the last one.

use super::banks::{Banks, Place};
use super::history::{History, mix};
use super::sizes::INDEX_BITS;
use tma::self_test::Rule;

/// Targets stored without history.
const LAST: usize = 1 << 12;
/// Most of an entry's confidence: two bits.
const MOST: u8 = 3;

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
            self.confidence = (self.confidence + 1).min(MOST);
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
