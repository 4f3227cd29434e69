//! Counting in whole turns of a colder place.
//!
//! Each thread has breakpoints of its own. A place that was reached too often is left at the next
//! entry of its clock, the colder place; from there on it is counted in the windows of the clock's
//! [`Walk`] alone. A clock that becomes too hot itself is counted in windows of its own clock,
//! and its walk goes through those of its entries that are counted.

use super::run::TICK;
use super::walk::{Open, Step, Walk};
use super::{Ask, Limits};
use crate::perf::Breakpoint;
use std::time::{Duration, Instant};

/// One window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Entries of the hot place.
    pub hits: u64,
    /// Whole turns of the colder one.
    pub turns: u64,
    /// Turns in its stratum.
    pub size: u64,
    /// Turns of the run that each turn of the stratum stands for: 1 where all were counted.
    pub weight: f64,
}

/// Why what was sampled does not stand for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoiled {
    /// No colder place is known.
    Alone,
    /// One turn took too many hits to be counted to its end: so many.
    Long(u64),
    /// The colder place is spoiled itself.
    Clock,
}

/// A place in turns of a colder one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The colder one.
    pub clock: usize,
    /// Entries of both while both were counted throughout.
    pub first: (u64, u64),
    /// In the order in which they ended.
    pub windows: Vec<Window>,
    /// Why they say nothing.
    pub spoiled: Option<Spoiled>,
}

/// Windows are at least so many hits, where turns are short: beside that a stop weighs little.
const LEAST_HITS: f64 = 300.0;
/// What the two stops of a window take (measured: 25 to 60 µs each on the machine of docs/results/profiles.md).
const STOPS: f64 = 100e-6;
/// The longest a window may take.
pub const LONGEST: Duration = Duration::from_secs(2);
/// Hits of a turn beyond which a nearer clock is better, if there is one.
const MOST_HITS: f64 = 5_000.0;
/// Hits of a turn that cannot be counted in windows often enough to tell anything.
const MOST_OF_TURN: u64 = 20_000;
/// Part of what a place without a clock may cost that one may whose clock's turns are as long.
const SHARE_OF_ALONE: f64 = 0.4;
/// Part of the program's own time that windows take where nothing is known of the run beforehand.
const SHARE: f64 = 1.0 / 6.0;
/// The same, of the time that counting the clock takes: where that is long, windows cost little more.
const SHARE_OF_CLOCK: f64 = 1.0;
/// Turns that the start of a run counts for, in windows, in what is expected of the next one: it is
/// seldom like the rest.
const START: f64 = 4.0;

/// Seconds that windows may be over what they may take.
const SLACK: f64 = 0.1;
/// Most times that strata grow where windows took too long.
const MOST_OVER: f64 = 8.0;

/// Turns of a window, where each has so many hits.
pub fn turns_at_once(hits_each: f64) -> u64 {
    (LEAST_HITS / hits_each.max(0.01)).ceil().clamp(1.0, 10_000.0) as u64
}

/// A place in one thread.
pub struct Mark {
    breakpoint: Breakpoint,
    pub address: u64,
    on: bool,
    /// It is too hot, since then and this count, and waits for its clock.
    leaving: Option<(Instant, u64)>,
    /// Its clock's window is over, but one of its own turns is not.
    closing: bool,
    /// Turns of the run for each of its entries.
    weight: f64,
    clock: Option<Clocked>,
}

/// A colder place that hotter ones are counted by.
struct Clocked {
    walk: Walk,
    /// Its count, when its walk began.
    begin: u64,
    since: Instant,
    /// Time and turns inside of windows.
    spent: Duration,
    inside: u64,
    /// When the window that is open began, and the counts of the hotter places then.
    opened: Instant,
    from: Vec<(usize, u64)>,
}

impl Mark {
    /// A place whose breakpoint counts already.
    pub fn new(breakpoint: Breakpoint, address: u64) -> Self {
        let (on, leaving, closing, weight) = (true, None, false, 1.0);
        Self { breakpoint, address, on, leaving, closing, weight, clock: None }
    }

    /// How often it was reached while it was counted.
    pub fn count(&mut self) -> u64 {
        self.breakpoint.count()
    }

    fn set(&mut self, on: bool) {
        if on && !self.on {
            self.breakpoint.enable();
        } else if !on && self.on {
            self.breakpoint.disable();
        }
        self.on = on;
    }
}

/// The places of one thread; `None`: not set there.
pub type Marks = Vec<Option<Mark>>;

/// What holds for all threads.
pub struct Turns {
    around: Vec<Vec<usize>>,
    strides: Vec<Option<u64>>,
    cost: f64,
    /// Time that windows may take.
    allowed: Duration,
    /// For each place that is too hot.
    pub sampled: Vec<Option<Sampled>>,
    /// For each clock: hits of the places that it is the clock of, and turns with them, in windows
    /// and as if in a few at the start.
    seen: Vec<(f64, f64)>,
    seeds: u64,
}

impl Turns {
    /// Nothing is too hot yet.
    pub fn new(ask: &Ask<'_>) -> Self {
        let sites = ask.sites.len();
        Self {
            around: (0..sites).map(|at| ask.around.get(at).cloned().unwrap_or_default()).collect(),
            strides: (0..sites).map(|at| ask.strides.get(at).copied().flatten()).collect(),
            cost: ask.cost.as_secs_f64().max(1e-7),
            allowed: ask.limits.turns,
            sampled: vec![None; sites],
            seen: vec![(0.0, 0.0); sites],
            seeds: 0,
        }
    }

    fn members(&self, clock: usize) -> Vec<usize> {
        let of = |at: &usize| {
            self.sampled[*at].as_ref().is_some_and(|s| s.clock == clock && s.spoiled.is_none())
        };
        (0..self.sampled.len()).filter(of).collect()
    }

    /// Place `hot` was reached too often: `hits` of all places so far, and those in threads that
    /// have ended.
    pub fn leave<'m>(
        &mut self,
        hot: usize,
        (hits, ended): (&[u64], &[u64]),
        threads: impl Iterator<Item = &'m mut Marks>,
    ) {
        let clock = self.clock_of(hot, hits);
        let spoiled = clock.is_none().then_some(Spoiled::Alone);
        let at = clock.unwrap_or(hot);
        let first = (ended[hot], ended[at]);
        self.sampled[hot] = Some(Sampled { clock: at, first, windows: Vec::new(), spoiled });
        if clock.is_some() {
            // Places are left one by one, after unlike numbers of turns.
            let turns = self.seen[at].1.max(START);
            self.seen[at].0 += hits[hot] as f64 / hits[at].max(1) as f64 * turns;
            self.seen[at].1 = turns;
        } else {
            self.spoil_with(hot);
        }
        for marks in threads {
            let Some(mark) = marks[hot].as_mut() else { continue };
            if clock.is_none() {
                mark.set(false);
                continue;
            }
            mark.leaving = Some((Instant::now(), mark.breakpoint.count()));
            if let Some(mark) = &marks[at] {
                mark.breakpoint.stop_after(1);
            }
        }
    }

    /// Hits after which a place is too hot, after so many `hits` of all.
    pub fn most(&self, at: usize, hits: &[u64], limits: &Limits) -> u64 {
        let turns = |c: &usize| (hits[*c] > 1).then(|| hits[at] / hits[*c]);
        match self.around[at].iter().filter_map(turns).min() {
            Some(turns) if turns <= MOST_OF_TURN => limits.first,
            // Few windows are better than none, and cost less than all of it.
            Some(_) => ((limits.alone as f64 * SHARE_OF_ALONE) as u64).max(limits.first),
            None => limits.alone,
        }
    }

    /// The coldest place around whose turns can be afforded, or else the nearest.
    fn clock_of(&self, hot: usize, hits: &[u64]) -> Option<usize> {
        let colder = |at: &&usize| hits[**at] > 1 && hits[**at] < hits[hot];
        let around: Vec<usize> = self.around[hot].iter().filter(colder).copied().collect();
        let short = |at: &&usize| hits[hot] as f64 <= MOST_HITS * hits[**at] as f64;
        around.iter().rev().find(short).or(around.first()).copied()
    }

    /// A place in a thread that is born now, and stands still.
    pub fn born(&mut self, at: usize, mark: &mut Mark) {
        if self.sampled[at].is_some() {
            mark.set(false);
        }
        if !self.members(at).is_empty() {
            mark.breakpoint.stop_after(1);
        }
    }

    /// A thread stands before the instruction at `address`.
    pub fn reached(&mut self, marks: &mut Marks, address: u64) {
        for at in 0..marks.len() {
            let Some(mark) = marks[at].as_mut() else { continue };
            if mark.address == address {
                self.at_clock(marks, at);
            } else if let Some(clock) = &mut mark.clock {
                // A thread that kept signals from itself stands elsewhere: no window begins or
                // ends here, and its stop may have been any clock's.
                let now = mark.breakpoint.count();
                mark.breakpoint.stop_after(clock.walk.wait(now));
            }
        }
    }

    /// An entry of clock `at`.
    fn at_clock(&mut self, marks: &mut Marks, at: usize) {
        let members = self.members(at);
        let Some(mark) = marks[at].as_mut() else { return };
        let now = mark.count();
        for &hot in &members {
            let Some(mark) = marks[hot].as_mut() else { continue };
            if mark.leaving.take().is_some() {
                let hits = mark.count();
                mark.set(false);
                self.first(hot, (hits, now.saturating_sub(1)));
            }
        }
        let Some(mark) = marks[at].as_mut() else { return };
        if members.is_empty() {
            mark.breakpoint.stop_after(u64::MAX);
            return;
        }
        let mut clock = match mark.clock.take() {
            Some(clock) => clock,
            None => self.begin(at, now),
        };
        loop {
            match clock.walk.step(now, self.stratum(at, &clock, now)) {
                Step::Wait(more) => {
                    let Some(mark) = marks[at].as_mut() else { return };
                    mark.breakpoint.stop_after(more);
                    mark.clock = Some(clock);
                    return;
                }
                Step::Begin => open(marks, at, &members, &mut clock),
                Step::End(open, turns) => {
                    clock.spent += clock.opened.elapsed();
                    clock.inside += turns;
                    self.close(marks, at, &mut clock, (open, turns));
                }
            }
        }
    }

    fn begin(&mut self, at: usize, now: u64) -> Clocked {
        self.seeds += 1;
        let begin = Instant::now();
        let mut clock = Clocked {
            walk: Walk::new(now, (1, 1), self.seeds),
            begin: now,
            since: begin,
            spent: Duration::ZERO,
            inside: 0,
            opened: begin,
            from: Vec::new(),
        };
        clock.walk = Walk::new(now, self.stratum(at, &clock, now), self.seeds);
        clock
    }

    /// Entries of clock `at` in the next stratum, and turns in its window, by what has gone before.
    fn stratum(&self, at: usize, clock: &Clocked, now: u64) -> (u64, u64) {
        let (hits, turns) = self.seen[at];
        let each = hits / turns.max(1.0);
        let number = turns_at_once(each);
        if let Some(stride) = self.strides[at] {
            // Turns may grow: each time that all is spent, there are half as many windows from then on.
            let over = clock.spent.div_duration_f64(self.allowed.max(TICK)) as u32;
            return (stride.max(number).saturating_mul(1 << over.min(30)), number);
        }
        let outside = (now - clock.begin).saturating_sub(clock.inside);
        let time = clock.since.elapsed().saturating_sub(clock.spent).as_secs_f64();
        let is_sampled = self.sampled[at].is_some();
        let per_turn = if outside == 0 || is_sampled { self.cost } else { time / outside as f64 };
        let own = (per_turn - self.cost).max(0.0);
        let may_take = (SHARE * own + SHARE_OF_CLOCK * per_turn.min(self.cost)).max(1e-7);
        let window = number as f64 * each * self.cost + STOPS;
        // What windows took more than they were to is saved on the next ones.
        let over = clock.spent.as_secs_f64() / (may_take * outside.max(1) as f64 + SLACK);
        let size = number as f64 + window / may_take * over.clamp(1.0, MOST_OVER);
        (size.min(1e15) as u64, number)
    }

    /// Ends the window of clock `at`.
    fn close(
        &mut self,
        marks: &mut Marks,
        at: usize,
        clock: &mut Clocked,
        (open, turns): (Open, u64),
    ) {
        let weight = marks[at].as_ref().map_or(1.0, |m| m.weight);
        self.seen[at].1 += turns as f64;
        for (hot, from) in clock.from.drain(..) {
            let Some(mark) = marks[hot].as_mut() else { continue };
            let hits = mark.count().saturating_sub(from);
            self.seen[at].0 += hits as f64;
            match mark.clock.as_ref().and_then(|c| c.walk.open()) {
                Some(_) => mark.closing = true,
                None => mark.set(false),
            }
            if let Some(sampled) = &mut self.sampled[hot] {
                sampled.windows.push(Window { hits, turns, size: open.size, weight });
            }
        }
        if let Some(mark) = marks[at].as_mut()
            && mark.closing
        {
            mark.closing = false;
            mark.set(false);
        }
    }

    fn first(&mut self, hot: usize, (hits, turns): (u64, u64)) {
        if let Some(sampled) = &mut self.sampled[hot] {
            sampled.first = (sampled.first.0 + hits, sampled.first.1 + turns);
        }
    }

    /// A thread has ended: so have the turns that it was in.
    pub fn ended(&mut self, mut marks: Marks) -> Vec<u64> {
        let counts: Vec<u64> =
            marks.iter_mut().map(|m| m.as_mut().map_or(0, Mark::count)).collect();
        for at in 0..marks.len() {
            let clock = self.sampled[at].as_ref().map(|s| s.clock);
            if let (Some(clock), Some(mark)) = (clock, &marks[at])
                && mark.leaving.is_some()
            {
                self.first(at, (counts[at], counts[clock]));
            }
            let Some(mut clock) = marks[at].as_mut().and_then(|m| m.clock.take()) else { continue };
            if let Some(open) = clock.walk.open() {
                let turns = (counts[at] + 1).saturating_sub(open.at);
                self.close(&mut marks, at, &mut clock, (open, turns));
            }
        }
        counts
    }

    /// Ends what takes too long, or is in vain. A thread that waits for something costs nothing
    /// meanwhile.
    pub fn look(&mut self, marks: &mut Marks) {
        let most = (0.5 * LONGEST.as_secs_f64() / self.cost) as u64;
        for at in 0..marks.len() {
            let Some(mark) = marks[at].as_mut() else { continue };
            if self.sampled[at].as_ref().is_some_and(|s| s.spoiled.is_some()) {
                mark.leaving = None;
                mark.clock = None;
                mark.set(false);
                continue;
            }
            if let Some((since, from)) = mark.leaving
                && since.elapsed() > LONGEST
            {
                let hits = mark.count() - from;
                if hits > most {
                    mark.leaving = None;
                    mark.set(false);
                    self.spoil(at, hits);
                }
            }
            let late = |c: &&mut Clocked| c.walk.open().is_some() && c.opened.elapsed() > LONGEST;
            let Some(clock) = marks[at].as_mut().and_then(|m| m.clock.as_mut()).filter(late) else {
                continue;
            };
            for (hot, from) in clock.from.clone() {
                let Some(mark) = marks[hot].as_mut() else { continue };
                let hits = mark.count().saturating_sub(from);
                if hits > most {
                    mark.set(false);
                    self.spoil(hot, hits);
                }
            }
        }
    }

    fn spoil(&mut self, hot: usize, hits: u64) {
        if let Some(sampled) = &mut self.sampled[hot] {
            sampled.spoiled.get_or_insert(Spoiled::Long(hits));
        }
        self.spoil_with(hot);
    }

    /// Place `lost` is of no use as a clock: nor is what is counted by it.
    fn spoil_with(&mut self, lost: usize) {
        let mut all = vec![lost];
        while let Some(lost) = all.pop() {
            for (at, sampled) in self.sampled.iter_mut().enumerate() {
                let Some(sampled) = sampled else { continue };
                if at != lost && sampled.clock == lost && sampled.spoiled.is_none() {
                    sampled.spoiled = Some(Spoiled::Clock);
                    all.push(at);
                }
            }
        }
    }
}

/// Begins the window of clock `at`.
fn open(marks: &mut Marks, at: usize, members: &[usize], clock: &mut Clocked) {
    let weight = marks[at].as_ref().map_or(1.0, |m| m.weight) * clock.walk.weight();
    clock.opened = Instant::now();
    for &hot in members {
        let Some(mark) = marks[hot].as_mut() else { continue };
        mark.weight = weight;
        mark.closing = false;
        mark.set(true);
        clock.from.push((hot, mark.count()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakpoints::Site;

    /// A loop within a loop within a function: when the function itself was entered too often, no
    /// windows are made for the loops any more.
    #[test]
    fn what_has_lost_its_clock_is_given_up() {
        let sites = [0, 1, 2].map(|offset| Site { path: "/bin/true".to_owned(), offset });
        let around = [vec![1, 2], vec![2], vec![]];
        let cost = Duration::from_micros(5);
        let ask =
            Ask { sites: &sites, around: &around, strides: &[], limits: Limits::default(), cost };
        let mut turns = Turns::new(&ask);
        let (none, ended) = (std::iter::empty::<&mut Marks>, [0; 3]);
        turns.leave(0, (&[50_000, 100, 1], &ended), none());
        turns.leave(1, (&[60_000, 50_000, 30_000], &ended), none());
        assert_eq!((turns.members(1), turns.members(2)), (vec![0], vec![1]));
        turns.leave(2, (&[60_000, 50_000, 2_000_000], &ended), none());
        let why: Vec<_> =
            turns.sampled.iter().map(|s| s.as_ref().and_then(|s| s.spoiled)).collect();
        assert_eq!(why, [Some(Spoiled::Clock), Some(Spoiled::Clock), Some(Spoiled::Alone)]);
        assert!((0..3).all(|at| turns.members(at).is_empty()));
    }
}
