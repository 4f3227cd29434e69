//! Conditional branches: TAGE.

use super::banks::{Banks, Place};
use super::history::{History, mix};

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
