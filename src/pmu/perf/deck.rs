//! Groups in a random order, each once a round.

use super::opened::Opened;

/// Order in which groups are enabled.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    /// For each kind of core whose groups are multiplexed in our order.
    pub decks: Vec<Deck>,
    random: u64,
}

#[derive(Debug)]
pub(super) struct Deck {
    /// Its groups, by index.
    pub groups: Vec<usize>,
    /// Groups not yet enabled in this round.
    waiting: Vec<usize>,
    /// Groups that are enabled.
    pub on: Vec<usize>,
}

impl Rotation {
    /// The order for `opened`, all of whose groups are enabled.
    pub(super) fn new(opened: &Opened, seed: u64) -> Self {
        let kinds = (0..opened.references.len()).filter(|core| opened.is_rotated(*core));
        let deck = |core: usize| {
            let of_kind = |g: &usize| opened.groups[*g].core == core;
            let groups: Vec<usize> = (0..opened.groups.len()).filter(of_kind).collect();
            Deck { waiting: Vec::new(), on: groups.clone(), groups }
        };
        Self { decks: kinds.map(deck).collect(), random: seed | 1 }
    }

    /// A random number from 0 to 1 (Marsaglia's xorshift64).
    pub(super) fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws `n` of a deck's groups, each once a round.
    pub(super) fn draw(&mut self, deck: usize, n: usize) -> Vec<usize> {
        let mut drawn = Vec::new();
        let all = self.decks[deck].groups.clone();
        while drawn.len() < n.min(all.len()) {
            if self.decks[deck].waiting.iter().all(|g| drawn.contains(g)) {
                let more = all.iter().filter(|g| !self.decks[deck].waiting.contains(g));
                let more: Vec<usize> = more.copied().collect();
                self.decks[deck].waiting.extend(more);
            }
            let at = (self.random() * self.decks[deck].waiting.len() as f64) as usize;
            let waiting = &mut self.decks[deck].waiting;
            let group = waiting.swap_remove(at.min(waiting.len() - 1));
            match drawn.contains(&group) {
                true => waiting.push(group),
                false => drawn.push(group),
            }
        }
        drawn
    }
}
