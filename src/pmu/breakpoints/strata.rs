//! Which entries of a reference point begin a window: chosen by its count, never by time.
//!
//! Windows chosen by time would fall into long intervals between entries more often than into short
//! ones (length-biased sampling: Cox, Renewal Theory, 1962, section 5.4). So the entries are divided
//! into consecutive strata, and in each stratum a window begins at an entry drawn at random in
//! advance.

/// An open window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenWindow {
    /// Count of the reference point at the window's first entry, that entry included.
    pub at: u64,
    /// Entries in its stratum.
    pub stratum: u64,
}

/// The strata of a reference point in one thread.
#[derive(Debug, Clone)]
pub struct Strata {
    begin: u64,
    size: u64,
    length: u64,
    target: u64,
    open: bool,
    random: fastrand::Rng,
}

/// What to do at an entry of the reference point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing for this many more entries.
    Wait(u64),
    /// A window begins at this entry.
    Begin,
    /// The open window, of this many entries, ends at this entry.
    End(OpenWindow, u64),
}

impl Strata {
    /// Begins at entry `begin`; `seed` makes the random numbers of threads differ.
    pub fn new(begin: u64, (size, length): (u64, u64), seed: u64) -> Self {
        let (open, target) = (false, 0);
        let mut strata =
            Self { begin, size, length, target, open, random: fastrand::Rng::with_seed(seed) };
        strata.draw(begin, (size, length));
        strata
    }

    /// Begins the next stratum: `size` entries from `begin`, with a window of `length` entries at a
    /// random place in it.
    fn draw(&mut self, begin: u64, (size, length): (u64, u64)) {
        self.length = length.max(1);
        self.size = size.max(self.length);
        self.begin = begin;
        self.target = begin.saturating_add(self.random.u64(..=self.size - self.length));
    }

    /// What to do at entry `now`; call it until it returns [`Step::Wait`]. `next` is the size and
    /// window length of the next stratum, if one begins.
    pub fn step(&mut self, now: u64, next: (u64, u64)) -> Step {
        if now < self.target {
            return Step::Wait(self.target - now);
        }
        if self.open {
            let ended = OpenWindow { at: self.target - self.length, stratum: self.size };
            self.open = false;
            // A window is longer if the thread could not be stopped at its last entry; the next
            // stratum begins after it.
            let begin = (self.begin + self.size).max(now);
            self.draw(begin, next);
            return Step::End(ended, now - ended.at);
        }
        self.open = true;
        self.begin = self.begin.max(now.saturating_sub(self.size));
        self.target = now + self.length;
        Step::Begin
    }

    /// How many more entries to wait for after entry `now`, at which the thread was not stopped.
    pub fn wait(&self, now: u64) -> u64 {
        self.target.saturating_sub(now).max(1)
    }

    /// The open window.
    pub fn open(&self) -> Option<OpenWindow> {
        self.open.then(|| OpenWindow { at: self.target - self.length, stratum: self.size })
    }

    /// Entries in the stratum per entry in the window.
    pub fn weight(&self) -> f64 {
        self.size as f64 / self.length as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows of a run with this many hits between entries: hits, entries, stratum.
    fn windows(hits: &[u64], plan: (u64, u64), seed: u64) -> Vec<(u64, u64, u64)> {
        let mut strata = Strata::new(1, plan, seed);
        let mut found = Vec::new();
        for now in 1..=hits.len() as u64 {
            loop {
                match strata.step(now, plan) {
                    Step::Wait(_) => break,
                    Step::Begin => {}
                    Step::End(open, number) => {
                        let inside = (open.at - 1) as usize..(open.at - 1 + number) as usize;
                        found.push((hits[inside].iter().sum(), number, open.stratum));
                    }
                }
            }
        }
        found
    }

    #[test]
    fn every_stratum_has_one_window() {
        let found = windows(&[7; 1000], (100, 4), 3);
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|w| *w == (28, 4, 100)), "{found:?}");
        // A window as large as its stratum: everything is counted.
        assert_eq!(windows(&[5; 30], (10, 10), 1), vec![(50, 10, 10); 2]);
    }

    /// Alternately 1 and 1,000 hits between entries: 500.5 on average. Windows chosen by time would
    /// nearly always begin after a long interval, with a short one.
    #[test]
    fn long_intervals_are_not_chosen_more_often_than_short_ones() {
        let hits: Vec<u64> = (0..100_000).map(|n| if n % 2 == 0 { 1 } else { 1000 }).collect();
        let found = windows(&hits, (50, 1), 11);
        let long = found.iter().filter(|w| w.0 == 1000).count() as f64;
        // 2,000 windows: half of them long, give or take four standard deviations of sqrt(2,000)/2.
        assert!((long - found.len() as f64 / 2.0).abs() < 90.0, "{long} of {}", found.len());
    }
}
