//! Counting in turns: who is counted when, and who beside whom.

use super::{Limits, Outcome};
use crate::collect::perf::Breakpoint;
use std::time::{Duration, Instant};

/// How much of the run a place was counted in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Known {
    /// Its file was never mapped, or no breakpoint could be set.
    #[default]
    Never,
    /// From the first instruction of the program to its end.
    Whole,
    /// From when its file was found mapped, to the end.
    Late,
    /// In windows.
    Windows,
}

/// What is known of one place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// Hits while it was counted.
    pub hits: u64,
    /// How much of the run that was.
    pub known: Known,
    /// Time during which it was counted.
    pub on: Duration,
    /// What the hits of all places took meanwhile, on whatever threads they came.
    pub slowed: Duration,
}

/// One place being counted.
#[derive(Default)]
struct Turn {
    breakpoints: Vec<Breakpoint>,
    on: bool,
    last: u64,
    window_hits: u64,
    since: Option<Instant>,
    counted: Counted,
}

/// Places being counted.
pub struct Tally {
    turns: Vec<Turn>,
    limits: Limits,
    cost: Duration,
    together: Vec<Vec<(u64, u64, u64)>>,
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
            together: vec![vec![(0, 0, 0); sites]; sites],
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
            self.open_windows(at);
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
                    (pair.0, pair.1) = (pair.0 + hits[at], pair.1 + hits[other]);
                }
            }
        }
        for at in 0..self.turns.len() {
            self.turn(at, now);
        }
    }

    /// Ends or begins the window of one place.
    fn turn(&mut self, at: usize, now: Instant) {
        let Limits { first, window, longest, pause } = self.limits;
        let turn = &mut self.turns[at];
        let Some(since) = turn.since else { return };
        let in_windows = turn.counted.known == Known::Windows;
        let most = if in_windows { window } else { first };
        let too_long = in_windows && turn.window_hits > 0 && now - since > longest;
        if turn.on && (turn.window_hits >= most || too_long) {
            turn.breakpoints.iter_mut().for_each(Breakpoint::disable);
            // What came between the reading and the stop belongs to no window.
            turn.last = turn.sum();
            turn.counted.known = Known::Windows;
            (turn.on, turn.window_hits, turn.since) = (false, 0, Some(now));
        } else if !turn.on && now - since >= pause {
            // What one that was added meanwhile has counted belongs to no window either.
            turn.last = turn.sum();
            turn.breakpoints.iter_mut().for_each(Breakpoint::enable);
            (turn.on, turn.since) = (true, Some(Instant::now()));
            self.open_windows(at);
        }
    }

    /// A window of `at` begins: one more for each pair of what is counted now.
    fn open_windows(&mut self, at: usize) {
        for other in 0..self.turns.len() {
            if other != at && self.turns[other].on {
                self.together[at][other].2 += 1;
                self.together[other][at].2 += 1;
            }
        }
    }

    /// The end: what was counted.
    pub fn finish(mut self, interrupted: Option<i32>) -> Outcome {
        self.tick();
        Outcome {
            counted: self.turns.iter().map(|t| t.counted).collect(),
            together: self.together,
            wall: self.begin.elapsed(),
            interrupted,
        }
    }
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
