//! Counting in windows of time, for a live process.

use super::outcome::{Counted, Coverage, Outcome, Together};
use super::request::Limits;
use crate::perf::Breakpoint;
use std::time::{Duration, Instant};

/// The breakpoints of one site.
#[derive(Default)]
struct SiteCounter {
    breakpoints: Vec<Breakpoint>,
    on: bool,
    last: u64,
    window_hits: u64,
    since: Option<Instant>,
    /// Time until its next window.
    pause: Duration,
    counted: Counted,
}

/// Maximum number of windows of two sites; more are merged in pairs.
const MOST_WINDOWS: usize = 4096;

/// All sites being counted.
pub struct TimeWindows {
    sites: Vec<SiteCounter>,
    limits: Limits,
    cost: Duration,
    together: Vec<Vec<Together>>,
    /// State of the generator of random pauses.
    random: u32,
    ticked: Instant,
    begin: Instant,
}

impl TimeWindows {
    /// For this many sites; a hit takes `cost`.
    pub fn new(sites: usize, limits: Limits, cost: Duration) -> Self {
        let now = Instant::now();
        Self {
            sites: (0..sites).map(|_| SiteCounter::default()).collect(),
            limits,
            cost,
            together: vec![vec![Together::default(); sites]; sites],
            random: 1,
            ticked: now,
            begin: now,
        }
    }

    /// Whether site `at` has a breakpoint.
    pub fn is_open(&self, at: usize) -> bool {
        !self.sites[at].breakpoints.is_empty()
    }

    /// Adds a breakpoint, which is counting already, to a site.
    pub fn add(&mut self, at: usize, mut breakpoint: Breakpoint, coverage: Coverage) {
        let site = &mut self.sites[at];
        if site.breakpoints.is_empty() {
            site.counted.coverage = coverage;
            site.on = true;
            site.since = Some(Instant::now());
            if self.ticked > self.begin {
                self.open_windows(at);
            }
        }
        if !self.sites[at].on {
            // Between windows.
            breakpoint.disable();
        }
        self.sites[at].breakpoints.push(breakpoint);
    }

    /// Reads everything; ends and begins windows.
    pub fn tick(&mut self) {
        let now = Instant::now();
        let passed = now - self.ticked;
        self.ticked = now;
        let hits: Vec<u64> = self.sites.iter_mut().map(SiteCounter::read).collect();
        let total: u64 = hits.iter().sum();
        let slowed = self.cost.saturating_mul(u32::try_from(total).unwrap_or(u32::MAX));
        for at in 0..self.sites.len() {
            if !self.sites[at].on {
                continue;
            }
            let counted = &mut self.sites[at].counted;
            counted.hits += hits[at];
            counted.on += passed;
            counted.slowed += slowed;
            self.sites[at].window_hits += hits[at];
            for other in 0..self.sites.len() {
                if other != at && self.sites[other].on {
                    let pair = &mut self.together[at][other];
                    let sums = pair.windows.last_mut().unwrap_or(&mut pair.first);
                    *sums = (sums.0 + hits[at], sums.1 + hits[other]);
                }
            }
        }
        for at in 0..self.sites.len() {
            self.end_window(at, now);
        }
        self.begin_windows(now);
    }

    /// Ends the window of a site that has enough hits. It ends after a time limit even without hits:
    /// otherwise every window would end at a hit, which biases it.
    fn end_window(&mut self, at: usize, now: Instant) {
        let Limits { first, window, longest, .. } = self.limits;
        let site = &mut self.sites[at];
        let Some(since) = site.since.filter(|_| site.on) else { return };
        let in_windows = site.counted.coverage == Coverage::Windows;
        let most = if in_windows { window } else { first };
        if site.window_hits >= most || (in_windows && now - since > longest) {
            site.breakpoints.iter_mut().for_each(Breakpoint::disable);
            // Hits between the reading and the stop belong to no window.
            site.last = site.sum();
            site.counted.coverage = Coverage::Windows;
            site.pause = self.limits.pause.mul_f64(random(&mut self.random));
            (site.on, site.window_hits, site.since) = (false, 0, Some(now));
        }
    }

    /// Begins the windows of all sites that are off together, because ratios of sites are needed; when
    /// the pause of each of them is over.
    fn begin_windows(&mut self, now: Instant) {
        let off = |t: &SiteCounter| !t.on && t.since.is_some();
        let rested = |t: &SiteCounter| t.since.is_some_and(|since| now - since >= t.pause);
        if !self.sites.iter().any(off) || !self.sites.iter().filter(|t| off(t)).all(rested) {
            return;
        }
        for at in 0..self.sites.len() {
            let site = &mut self.sites[at];
            if off(site) {
                // Hits of a breakpoint that was added meanwhile belong to no window.
                site.last = site.sum();
                site.breakpoints.iter_mut().for_each(Breakpoint::enable);
                (site.on, site.since) = (true, Some(Instant::now()));
                self.open_windows(at);
            }
        }
    }

    /// A window of `at` begins: one more for each pair of sites that are counted now.
    fn open_windows(&mut self, at: usize) {
        for other in 0..self.sites.len() {
            if other != at && self.sites[other].on {
                open_window(&mut self.together[at][other].windows);
                open_window(&mut self.together[other][at].windows);
            }
        }
    }

    /// Ends counting.
    pub fn finish(mut self, interrupted: Option<i32>) -> Outcome {
        self.tick();
        Outcome {
            counted: self.sites.iter().map(|t| t.counted).collect(),
            together: self.together,
            wall: self.begin.elapsed(),
            interrupted,
        }
    }
}

/// Adds a window.
fn open_window(windows: &mut Vec<(u64, u64)>) {
    if windows.len() == MOST_WINDOWS {
        let merged = windows
            .chunks(2)
            .map(|two| two.iter().fold((0, 0), |sum, window| (sum.0 + window.0, sum.1 + window.1)));
        *windows = merged.collect();
    }
    windows.push((0, 0));
}

/// A random number between 0.5 and 1.5: windows at regular times could be synchronous with the
/// program (constants: Numerical Recipes, 2nd edition, section 7.1).
fn random(state: &mut u32) -> f64 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    0.5 + f64::from(*state) / (f64::from(u32::MAX) + 1.0)
}

impl SiteCounter {
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
