//! Counting in turns: who is counted when, and who beside whom.

use super::outcome::{Counted, Known, Outcome, Together};
use super::request::Limits;
use crate::perf::Breakpoint;
use std::time::{Duration, Instant};

/// One place being counted.
#[derive(Default)]
struct Turn {
    breakpoints: Vec<Breakpoint>,
    on: bool,
    last: u64,
    window_hits: u64,
    since: Option<Instant>,
    /// How long it is off after a window.
    pause: Duration,
    counted: Counted,
}

/// Most windows that are kept of two places; more are merged two by two.
const MOST_WINDOWS: usize = 4096;

/// Places being counted.
pub struct Tally {
    turns: Vec<Turn>,
    limits: Limits,
    cost: Duration,
    together: Vec<Vec<Together>>,
    /// For a linear congruential generator: the pauses are not all alike.
    chance: u32,
    ticked: Instant,
    begin: Instant,
}

impl Tally {
    /// `sites` places, none counted yet; a hit takes `cost`.
    pub fn new(sites: usize, limits: Limits, cost: Duration) -> Self {
        let now = Instant::now();
        Self {
            turns: (0..sites).map(|_| Turn::default()).collect(),
            limits,
            cost,
            together: vec![vec![Together::default(); sites]; sites],
            chance: 1,
            ticked: now,
            begin: now,
        }
    }

    /// Whether site `at` has a breakpoint.
    pub fn is_open(&self, at: usize) -> bool {
        !self.turns[at].breakpoints.is_empty()
    }

    /// Adds a breakpoint, which is counting already, to a site.
    pub fn add(&mut self, at: usize, mut breakpoint: Breakpoint, known: Known) {
        let turn = &mut self.turns[at];
        if turn.breakpoints.is_empty() {
            turn.counted.known = known;
            turn.on = true;
            turn.since = Some(Instant::now());
            if self.ticked > self.begin {
                self.open_windows(at);
            }
        } else if known == Known::Late && turn.counted.known == Known::Whole {
            // Another process has the file, too; its first instructions went by.
            turn.counted.known = Known::Late;
        }
        if !self.turns[at].on {
            // Between windows: it waits for the next as the others do.
            breakpoint.disable();
        }
        self.turns[at].breakpoints.push(breakpoint);
    }

    /// Reads everything; ends and begins windows.
    pub fn tick(&mut self) {
        let now = Instant::now();
        let passed = now - self.ticked;
        self.ticked = now;
        let hits: Vec<u64> = self.turns.iter_mut().map(Turn::read).collect();
        let total: u64 = hits.iter().sum();
        let slowed = self.cost.saturating_mul(u32::try_from(total).unwrap_or(u32::MAX));
        for at in 0..self.turns.len() {
            if !self.turns[at].on {
                continue;
            }
            let counted = &mut self.turns[at].counted;
            counted.hits += hits[at];
            counted.on += passed;
            counted.slowed += slowed;
            self.turns[at].window_hits += hits[at];
            for other in 0..self.turns.len() {
                if other != at && self.turns[other].on {
                    let pair = &mut self.together[at][other];
                    let sums = pair.windows.last_mut().unwrap_or(&mut pair.first);
                    *sums = (sums.0 + hits[at], sums.1 + hits[other]);
                }
            }
        }
        for at in 0..self.turns.len() {
            self.end_window(at, now);
        }
        self.begin_windows(now);
    }

    /// Ends the window of a place that has had enough. It ends after a while even if the place was
    /// not reached: else every window would be where the place is reached first after a time.
    fn end_window(&mut self, at: usize, now: Instant) {
        let Limits { first, window, longest, .. } = self.limits;
        let turn = &mut self.turns[at];
        let Some(since) = turn.since.filter(|_| turn.on) else { return };
        let in_windows = turn.counted.known == Known::Windows;
        let most = if in_windows { window } else { first };
        if turn.window_hits >= most || (in_windows && now - since > longest) {
            turn.breakpoints.iter_mut().for_each(Breakpoint::disable);
            // What came between the reading and the stop belongs to no window.
            turn.last = turn.sum();
            turn.counted.known = Known::Windows;
            turn.pause = self.limits.pause.mul_f64(chance(&mut self.chance));
            (turn.on, turn.window_hits, turn.since) = (false, 0, Some(now));
        }
    }

    /// Begins the windows of all places that are off, together, as it is the ratio of two that
    /// tells; when the last of them has paused long enough.
    fn begin_windows(&mut self, now: Instant) {
        let off = |t: &Turn| !t.on && t.since.is_some();
        let rested = |t: &Turn| t.since.is_some_and(|since| now - since >= t.pause);
        if !self.turns.iter().any(off) || !self.turns.iter().filter(|t| off(t)).all(rested) {
            return;
        }
        for at in 0..self.turns.len() {
            let turn = &mut self.turns[at];
            if off(turn) {
                // What one that was added meanwhile has counted belongs to no window either.
                turn.last = turn.sum();
                turn.breakpoints.iter_mut().for_each(Breakpoint::enable);
                (turn.on, turn.since) = (true, Some(Instant::now()));
                self.open_windows(at);
            }
        }
    }

    /// A window of `at` begins: one more for each pair of what is counted now.
    fn open_windows(&mut self, at: usize) {
        for other in 0..self.turns.len() {
            if other != at && self.turns[other].on {
                open_window(&mut self.together[at][other].windows);
                open_window(&mut self.together[other][at].windows);
            }
        }
    }

    /// The end: what was counted.
    pub fn finish(mut self, interrupted: Option<i32>) -> Outcome {
        self.tick();
        Outcome {
            counted: self.turns.iter().map(|t| t.counted).collect(),
            together: self.together,
            sampled: Vec::new(),
            wall: self.begin.elapsed(),
            interrupted,
            exit: None,
        }
    }
}

/// One more window.
fn open_window(windows: &mut Vec<(u64, u64)>) {
    if windows.len() == MOST_WINDOWS {
        let merged = windows
            .chunks(2)
            .map(|two| two.iter().fold((0, 0), |sum, window| (sum.0 + window.0, sum.1 + window.1)));
        *windows = merged.collect();
    }
    windows.push((0, 0));
}

/// The next of some numbers between 0.5 and 1.5, all over: windows that came at even times could
/// be in step with the program (constants: Numerical Recipes, 2nd edition, section 7.1).
fn chance(state: &mut u32) -> f64 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    0.5 + f64::from(*state) / (f64::from(u32::MAX) + 1.0)
}

impl Turn {
    fn sum(&mut self) -> u64 {
        self.breakpoints.iter_mut().map(Breakpoint::count).sum()
    }

    /// Hits since the last reading.
    fn read(&mut self) -> u64 {
        if !self.on {
            return 0;
        }
        let now = self.sum();
        let hits = now.saturating_sub(self.last);
        self.last = now;
        hits
    }
}
