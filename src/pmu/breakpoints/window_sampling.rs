//! Counting in windows between entries of an enclosing reference point.
//!
//! Each thread has breakpoints of its own. A site that was hit too often is counted throughout until
//! the next entry of its reference point, and from there in the windows of the reference point's
//! [`Strata`]. A reference point that becomes too hot itself is counted in windows of its own
//! reference point, and its strata consist of those of its entries that are counted.

use super::outcome::{Sampled, Unusable, Window};
use super::request::{Ask, Limits, TICK};
use super::strata::{OpenWindow, Step, Strata};
use crate::perf::Breakpoint;
use std::time::{Duration, Instant};

/// Minimum hits of a window with few hits between entries: then the two stops cost little.
const LEAST_HITS: f64 = 300.0;
/// Cost of the two stops of a window, in seconds (measured: 25 to 60 µs each on the machine of
/// docs/results/profiles.md).
const STOPS: f64 = 100e-6;
/// Maximum duration of a window.
pub const LONGEST: Duration = Duration::from_secs(2);
/// Hits between entries above which a reference point further inside is better, if there is one.
const MOST_HITS: f64 = 5_000.0;
/// Hits between entries above which windows would be too few for an estimate.
const MOST_BETWEEN: u64 = 20_000;
/// Share of [`Limits::alone`] for a site with that many hits between entries.
const SHARE_OF_ALONE: f64 = 0.4;
/// Share of the program's own time for windows if no windows were planned.
const SHARE: f64 = 1.0 / 6.0;
/// Share of the time for counting the reference point: if that is long, windows add little.
const SHARE_OF_REFERENCE: f64 = 1.0;
/// Entries that the start of a run counts as in the expected hits of a window: it is seldom like the
/// rest.
const START: f64 = 4.0;

/// Seconds by which windows may exceed their share.
const SLACK: f64 = 0.1;
/// Largest factor by which strata grow if windows took too long.
const MOST_OVER: f64 = 8.0;

/// Entries of the reference point in a window, with this many hits between two entries.
pub fn window_length(hits_each: f64) -> u64 {
    (LEAST_HITS / hits_each.max(0.01)).ceil().clamp(1.0, 10_000.0) as u64
}

/// The breakpoint of a site in one thread.
pub struct ThreadBreakpoint {
    inner: Breakpoint,
    pub address: u64,
    on: bool,
    /// It is too hot since this time and count: counted until the next entry of its reference point.
    leaving: Option<(Instant, u64)>,
    /// The window of its reference point has ended; its own open window has not.
    closing: bool,
    /// Entries in the run per counted entry.
    weight: f64,
    reference: Option<ReferenceState>,
}

/// What a thread knows of a site that is a reference point.
struct ReferenceState {
    strata: Strata,
    /// Its count when the strata began.
    begin: u64,
    since: Instant,
    /// Time and entries inside of windows.
    spent: Duration,
    inside: u64,
    /// Start of the open window, and the counts of the sites then.
    opened: Instant,
    from: Vec<(usize, u64)>,
}

impl ThreadBreakpoint {
    /// A site whose breakpoint counts already.
    pub fn new(inner: Breakpoint, address: u64) -> Self {
        let (on, leaving, closing, weight) = (true, None, false, 1.0);
        Self { inner, address, on, leaving, closing, weight, reference: None }
    }

    /// Hits while it was counted.
    pub fn count(&mut self) -> u64 {
        self.inner.count()
    }

    fn set(&mut self, on: bool) {
        if on && !self.on {
            self.inner.enable();
        } else if !on && self.on {
            self.inner.disable();
        }
        self.on = on;
    }
}

/// The breakpoints of one thread; `None`: not set.
pub type ThreadBreakpoints = Vec<Option<ThreadBreakpoint>>;

/// Window sampling of all threads of a command.
pub struct WindowSampling {
    enclosing: Vec<Vec<usize>>,
    strides: Vec<Option<u64>>,
    cost: f64,
    /// Time that planned windows may take.
    allowed: Duration,
    /// For each site, its windows if it is too hot.
    pub sampled: Vec<Option<Sampled>>,
    /// For each reference point: hits of its sites and its own entries, in windows and, with a fixed
    /// weight, at the start.
    expected: Vec<(f64, f64)>,
    seeds: u64,
}

impl WindowSampling {
    /// Nothing is too hot yet.
    pub fn new(ask: &Ask<'_>) -> Self {
        let sites = ask.sites.len();
        Self {
            enclosing: (0..sites)
                .map(|at| ask.enclosing.get(at).cloned().unwrap_or_default())
                .collect(),
            strides: (0..sites).map(|at| ask.strides.get(at).copied().flatten()).collect(),
            cost: ask.cost.as_secs_f64().max(1e-7),
            allowed: ask.limits.planned,
            sampled: vec![None; sites],
            expected: vec![(0.0, 0.0); sites],
            seeds: 0,
        }
    }

    /// The sites that are counted in windows of a reference point.
    fn members(&self, reference: usize) -> Vec<usize> {
        let of = |at: &usize| {
            self.sampled[*at]
                .as_ref()
                .is_some_and(|s| s.reference == reference && s.unusable.is_none())
        };
        (0..self.sampled.len()).filter(of).collect()
    }

    /// Ends counting site `hot` throughout. `hits` of all sites so far, and of those `ended` in
    /// threads that have ended.
    pub fn leave<'m>(
        &mut self,
        hot: usize,
        (hits, ended): (&[u64], &[u64]),
        threads: impl Iterator<Item = &'m mut ThreadBreakpoints>,
    ) {
        let reference = self.reference_of(hot, hits);
        let unusable = reference.is_none().then_some(Unusable::NoReference);
        let at = reference.unwrap_or(hot);
        let first = (ended[hot], ended[at]);
        self.sampled[hot] = Some(Sampled { reference: at, first, windows: Vec::new(), unusable });
        if reference.is_some() {
            // Sites become too hot one by one, after different numbers of entries.
            let entries = self.expected[at].1.max(START);
            self.expected[at].0 += hits[hot] as f64 / hits[at].max(1) as f64 * entries;
            self.expected[at].1 = entries;
        } else {
            self.mark_dependents_unusable(hot);
        }
        for breakpoints in threads {
            let Some(breakpoint) = breakpoints[hot].as_mut() else { continue };
            if reference.is_none() {
                breakpoint.set(false);
                continue;
            }
            breakpoint.leaving = Some((Instant::now(), breakpoint.inner.count()));
            if let Some(breakpoint) = &breakpoints[at] {
                breakpoint.inner.stop_after(1);
            }
        }
    }

    /// Hits after which a site is too hot, given the `hits` of all sites so far.
    pub fn most(&self, at: usize, hits: &[u64], limits: &Limits) -> u64 {
        let between = |c: &usize| (hits[*c] > 1).then(|| hits[at] / hits[*c]);
        match self.enclosing[at].iter().filter_map(between).min() {
            Some(between) if between <= MOST_BETWEEN => limits.first,
            // Few windows are better than none, and cost less than counting throughout.
            Some(_) => ((limits.alone as f64 * SHARE_OF_ALONE) as u64).max(limits.first),
            None => limits.alone,
        }
    }

    /// The outermost enclosing reference point with few enough hits between entries, otherwise the
    /// innermost.
    fn reference_of(&self, hot: usize, hits: &[u64]) -> Option<usize> {
        let is_rarer = |at: &&usize| hits[**at] > 1 && hits[**at] < hits[hot];
        let enclosing: Vec<usize> = self.enclosing[hot].iter().filter(is_rarer).copied().collect();
        let short = |at: &&usize| hits[hot] as f64 <= MOST_HITS * hits[**at] as f64;
        enclosing.iter().rev().find(short).or(enclosing.first()).copied()
    }

    /// Sets a breakpoint up in a new thread, which is stopped.
    pub fn born(&mut self, at: usize, breakpoint: &mut ThreadBreakpoint) {
        if self.sampled[at].is_some() {
            breakpoint.set(false);
        }
        if !self.members(at).is_empty() {
            breakpoint.inner.stop_after(1);
        }
    }

    /// A thread has stopped before the instruction at `address`.
    pub fn reached(&mut self, breakpoints: &mut ThreadBreakpoints, address: u64) {
        for at in 0..breakpoints.len() {
            let Some(breakpoint) = breakpoints[at].as_mut() else { continue };
            if breakpoint.address == address {
                self.at_reference(breakpoints, at);
            } else if let Some(reference) = &mut breakpoint.reference {
                // A thread that had blocked signals stops elsewhere: no window begins or ends here,
                // and the stop may have been for any reference point.
                let now = breakpoint.inner.count();
                breakpoint.inner.stop_after(reference.strata.wait(now));
            }
        }
    }

    /// An entry of reference point `at`.
    fn at_reference(&mut self, breakpoints: &mut ThreadBreakpoints, at: usize) {
        let members = self.members(at);
        let Some(breakpoint) = breakpoints[at].as_mut() else { return };
        let now = breakpoint.count();
        for &hot in &members {
            let Some(breakpoint) = breakpoints[hot].as_mut() else { continue };
            if breakpoint.leaving.take().is_some() {
                let hits = breakpoint.count();
                breakpoint.set(false);
                self.first(hot, (hits, now.saturating_sub(1)));
            }
        }
        let Some(breakpoint) = breakpoints[at].as_mut() else { return };
        if members.is_empty() {
            breakpoint.inner.stop_after(u64::MAX);
            return;
        }
        let mut reference = match breakpoint.reference.take() {
            Some(reference) => reference,
            None => self.begin(at, now),
        };
        loop {
            match reference.strata.step(now, self.stratum(at, &reference, now)) {
                Step::Wait(more) => {
                    let Some(breakpoint) = breakpoints[at].as_mut() else { return };
                    breakpoint.inner.stop_after(more);
                    breakpoint.reference = Some(reference);
                    return;
                }
                Step::Begin => open(breakpoints, at, &members, &mut reference),
                Step::End(window, entries) => {
                    reference.spent += reference.opened.elapsed();
                    reference.inside += entries;
                    self.close(breakpoints, at, &mut reference, (window, entries));
                }
            }
        }
    }

    fn begin(&mut self, at: usize, now: u64) -> ReferenceState {
        self.seeds += 1;
        let begin = Instant::now();
        let mut reference = ReferenceState {
            strata: Strata::new(now, (1, 1), self.seeds),
            begin: now,
            since: begin,
            spent: Duration::ZERO,
            inside: 0,
            opened: begin,
            from: Vec::new(),
        };
        reference.strata = Strata::new(now, self.stratum(at, &reference, now), self.seeds);
        reference
    }

    /// Entries of reference point `at` in its next stratum and in the window of that stratum, from the
    /// cost so far.
    fn stratum(&self, at: usize, reference: &ReferenceState, now: u64) -> (u64, u64) {
        let (hits, entries) = self.expected[at];
        let each = hits / entries.max(1.0);
        let number = window_length(each);
        if let Some(stride) = self.strides[at] {
            // Windows may become longer: each time the planned time is spent, the rate of windows is
            // halved.
            let over = reference.spent.div_duration_f64(self.allowed.max(TICK)) as u32;
            return (stride.max(number).saturating_mul(1 << over.min(30)), number);
        }
        let outside = (now - reference.begin).saturating_sub(reference.inside);
        let time = reference.since.elapsed().saturating_sub(reference.spent).as_secs_f64();
        let is_sampled = self.sampled[at].is_some();
        let per_entry = if outside == 0 || is_sampled { self.cost } else { time / outside as f64 };
        let own = (per_entry - self.cost).max(0.0);
        let may_take = (SHARE * own + SHARE_OF_REFERENCE * per_entry.min(self.cost)).max(1e-7);
        let window = number as f64 * each * self.cost + STOPS;
        // If windows exceeded their share, the next strata are larger.
        let over = reference.spent.as_secs_f64() / (may_take * outside.max(1) as f64 + SLACK);
        let size = number as f64 + window / may_take * over.clamp(1.0, MOST_OVER);
        (size.min(1e15) as u64, number)
    }

    /// Ends the window of reference point `at`.
    fn close(
        &mut self,
        breakpoints: &mut ThreadBreakpoints,
        at: usize,
        reference: &mut ReferenceState,
        (window, reference_entries): (OpenWindow, u64),
    ) {
        let weight = breakpoints[at].as_ref().map_or(1.0, |m| m.weight);
        self.expected[at].1 += reference_entries as f64;
        for (hot, from) in reference.from.drain(..) {
            let Some(breakpoint) = breakpoints[hot].as_mut() else { continue };
            let hits = breakpoint.count().saturating_sub(from);
            self.expected[at].0 += hits as f64;
            match breakpoint.reference.as_ref().and_then(|r| r.strata.open()) {
                Some(_) => breakpoint.closing = true,
                None => breakpoint.set(false),
            }
            if let Some(sampled) = &mut self.sampled[hot] {
                let stratum = window.stratum;
                sampled.windows.push(Window { hits, reference_entries, stratum, weight });
            }
        }
        if let Some(breakpoint) = breakpoints[at].as_mut()
            && breakpoint.closing
        {
            breakpoint.closing = false;
            breakpoint.set(false);
        }
    }

    /// Adds to the counts of a site and its reference point while both were counted throughout.
    fn first(&mut self, hot: usize, (hits, entries): (u64, u64)) {
        if let Some(sampled) = &mut self.sampled[hot] {
            sampled.first = (sampled.first.0 + hits, sampled.first.1 + entries);
        }
    }

    /// A thread has ended, and with it its windows. Its counts.
    pub fn ended(&mut self, mut breakpoints: ThreadBreakpoints) -> Vec<u64> {
        let counts: Vec<u64> =
            breakpoints.iter_mut().map(|m| m.as_mut().map_or(0, ThreadBreakpoint::count)).collect();
        for at in 0..breakpoints.len() {
            let reference = self.sampled[at].as_ref().map(|s| s.reference);
            if let (Some(reference), Some(breakpoint)) = (reference, &breakpoints[at])
                && breakpoint.leaving.is_some()
            {
                self.first(at, (counts[at], counts[reference]));
            }
            let Some(mut reference) = breakpoints[at].as_mut().and_then(|m| m.reference.take())
            else {
                continue;
            };
            if let Some(window) = reference.strata.open() {
                let entries = (counts[at] + 1).saturating_sub(window.at);
                self.close(&mut breakpoints, at, &mut reference, (window, entries));
            }
        }
        counts
    }

    /// Ends windows that are too long or unusable. A thread that is blocked costs nothing meanwhile.
    pub fn check(&mut self, breakpoints: &mut ThreadBreakpoints) {
        let most = (0.5 * LONGEST.as_secs_f64() / self.cost) as u64;
        for at in 0..breakpoints.len() {
            let Some(breakpoint) = breakpoints[at].as_mut() else { continue };
            if self.sampled[at].as_ref().is_some_and(|s| s.unusable.is_some()) {
                breakpoint.leaving = None;
                breakpoint.reference = None;
                breakpoint.set(false);
                continue;
            }
            if let Some((since, from)) = breakpoint.leaving
                && since.elapsed() > LONGEST
            {
                let hits = breakpoint.count() - from;
                if hits > most {
                    breakpoint.leaving = None;
                    breakpoint.set(false);
                    self.too_long(at, hits);
                }
            }
            let late =
                |r: &&mut ReferenceState| r.strata.open().is_some() && r.opened.elapsed() > LONGEST;
            let Some(reference) =
                breakpoints[at].as_mut().and_then(|m| m.reference.as_mut()).filter(late)
            else {
                continue;
            };
            for (hot, from) in reference.from.clone() {
                let Some(breakpoint) = breakpoints[hot].as_mut() else { continue };
                let hits = breakpoint.count().saturating_sub(from);
                if hits > most {
                    breakpoint.set(false);
                    self.too_long(hot, hits);
                }
            }
        }
    }

    fn too_long(&mut self, hot: usize, hits: u64) {
        if let Some(sampled) = &mut self.sampled[hot] {
            sampled.unusable.get_or_insert(Unusable::WindowTooLong(hits));
        }
        self.mark_dependents_unusable(hot);
    }

    /// Site `lost` is unusable as a reference point: so are the sites counted in its windows.
    fn mark_dependents_unusable(&mut self, lost: usize) {
        let mut all = vec![lost];
        while let Some(lost) = all.pop() {
            for (at, sampled) in self.sampled.iter_mut().enumerate() {
                let Some(sampled) = sampled else { continue };
                if at != lost && sampled.reference == lost && sampled.unusable.is_none() {
                    sampled.unusable = Some(Unusable::ReferenceUnusable);
                    all.push(at);
                }
            }
        }
    }
}

/// Begins the window of reference point `at`.
fn open(
    breakpoints: &mut ThreadBreakpoints,
    at: usize,
    members: &[usize],
    reference: &mut ReferenceState,
) {
    let weight = breakpoints[at].as_ref().map_or(1.0, |m| m.weight) * reference.strata.weight();
    reference.opened = Instant::now();
    for &hot in members {
        let Some(breakpoint) = breakpoints[hot].as_mut() else { continue };
        breakpoint.weight = weight;
        breakpoint.closing = false;
        breakpoint.set(true);
        reference.from.push((hot, breakpoint.count()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakpoints::Site;

    /// A loop in a loop in a function: once the function is entered too often, the windows of the
    /// loops are unusable.
    #[test]
    fn sites_of_an_unusable_reference_point_are_unusable() {
        let sites = [0, 1, 2].map(|offset| Site { path: "/bin/true".to_owned(), offset });
        let enclosing = [vec![1, 2], vec![2], vec![]];
        let cost = Duration::from_micros(5);
        let ask = Ask {
            sites: &sites,
            enclosing: &enclosing,
            strides: &[],
            limits: Limits::default(),
            cost,
        };
        let mut sampling = WindowSampling::new(&ask);
        let (none, ended) = (std::iter::empty::<&mut ThreadBreakpoints>, [0; 3]);
        sampling.leave(0, (&[50_000, 100, 1], &ended), none());
        sampling.leave(1, (&[60_000, 50_000, 30_000], &ended), none());
        assert_eq!((sampling.members(1), sampling.members(2)), (vec![0], vec![1]));
        sampling.leave(2, (&[60_000, 50_000, 2_000_000], &ended), none());
        let why: Vec<_> =
            sampling.sampled.iter().map(|s| s.as_ref().and_then(|s| s.unusable)).collect();
        assert_eq!(
            why,
            [
                Some(Unusable::ReferenceUnusable),
                Some(Unusable::ReferenceUnusable),
                Some(Unusable::NoReference)
            ]
        );
        assert!((0..3).all(|at| sampling.members(at).is_empty()));
    }
}
