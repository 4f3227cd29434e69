//! Which turns of a colder place are looked into: chosen by its own count, never by time.
//!
//! A turn is from one entry of the colder place to the next. Chosen by time, long turns would be
//! met more often than short ones (length-biased sampling: Cox, Renewal Theory, 1962, section 5.4).
//! So the count of the colder place is cut into strata, one behind the other, and in each of them a
//! window of whole turns begins at an entry drawn by chance before it comes.

/// A window: so many turns from this entry on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Count of the colder place at its first entry, that one included.
    pub at: u64,
    /// Entries of the colder place in its stratum.
    pub size: u64,
}

/// The way of one thread through the strata of a colder place.
#[derive(Debug, Clone)]
pub struct Walk {
    begin: u64,
    size: u64,
    turns: u64,
    target: u64,
    open: bool,
    chance: u64,
}

/// What is to be done at an entry of the colder place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this many more entries.
    Wait(u64),
    /// A window begins with this entry.
    Begin,
    /// The window that has begun ends before this entry.
    End(Open, u64),
}

impl Walk {
    /// From entry `begin` on; `seed` tells one thread's chance from another's.
    pub fn new(begin: u64, (size, turns): (u64, u64), seed: u64) -> Self {
        let (open, target) = (false, 0);
        let mut walk = Self { begin, size, turns, target, open, chance: seed };
        walk.draw(begin, (size, turns));
        walk
    }

    /// The next stratum: `size` entries from `begin` on, with a window of `turns` somewhere in it.
    fn draw(&mut self, begin: u64, (size, turns): (u64, u64)) {
        self.turns = turns.max(1);
        self.size = size.max(self.turns);
        self.begin = begin;
        self.target = begin.saturating_add(below(&mut self.chance, self.size - self.turns + 1));
    }

    /// What to do at entry `now`; to be asked until it says [`Step::Wait`]. `next`: size and turns
    /// of the next stratum, should one begin.
    pub fn step(&mut self, now: u64, next: (u64, u64)) -> Step {
        if now < self.target {
            return Step::Wait(self.target - now);
        }
        if self.open {
            let ended = Open { at: self.target - self.turns, size: self.size };
            self.open = false;
            // An entry that could not be stopped at makes the window longer, and no stratum
            // reaches back.
            let begin = (self.begin + self.size).max(now);
            self.draw(begin, next);
            return Step::End(ended, now - ended.at);
        }
        self.open = true;
        self.begin = self.begin.max(now.saturating_sub(self.size));
        self.target = now + self.turns;
        Step::Begin
    }

    /// How many more entries to wait for after `now`, at which nothing can be done.
    pub fn wait(&self, now: u64) -> u64 {
        self.target.saturating_sub(now).max(1)
    }

    /// The window that is open now.
    pub fn open(&self) -> Option<Open> {
        self.open.then(|| Open { at: self.target - self.turns, size: self.size })
    }

    /// How many entries stand for one that is looked into now.
    pub fn weight(&self) -> f64 {
        self.size as f64 / self.turns as f64
    }
}

/// A number below `end` by chance (SplitMix64: Steele, Lea and Flood 2014).
fn below(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    ((u128::from(z) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows of a walk through `turns`, each with so many hits of the hot place.
    fn windows(turns: &[u64], plan: (u64, u64), seed: u64) -> Vec<(u64, u64, u64)> {
        let mut walk = Walk::new(1, plan, seed);
        let mut found = Vec::new();
        for now in 1..=turns.len() as u64 {
            loop {
                match walk.step(now, plan) {
                    Step::Wait(_) => break,
                    Step::Begin => {}
                    Step::End(open, number) => {
                        let inside = (open.at - 1) as usize..(open.at - 1 + number) as usize;
                        found.push((turns[inside].iter().sum(), number, open.size));
                    }
                }
            }
        }
        found
    }

    #[test]
    fn every_stratum_has_one_window_of_whole_turns() {
        let found = windows(&[7; 1000], (100, 4), 3);
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|w| *w == (28, 4, 100)), "{found:?}");
        // A window as large as its stratum: every turn is looked into.
        assert_eq!(windows(&[5; 30], (10, 10), 1), vec![(50, 10, 10); 2]);
    }

    /// Turns of 1 and 1,000 hits in turn: 500.5 on average. Windows that were chosen by time would
    /// begin behind a long turn nearly always, with a short one.
    #[test]
    fn long_turns_are_no_more_often_chosen_than_short_ones() {
        let turns: Vec<u64> = (0..100_000).map(|n| if n % 2 == 0 { 1 } else { 1000 }).collect();
        let found = windows(&turns, (50, 1), 11);
        let long = found.iter().filter(|w| w.0 == 1000).count() as f64;
        // 2,000 windows: half of them long, four standard deviations of sqrt(2,000)/2 aside.
        assert!((long - found.len() as f64 / 2.0).abs() < 90.0, "{long} of {}", found.len());
    }
}
