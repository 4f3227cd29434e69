//! Windows → iterations and trips of loops.
//!
//! An *iteration* is the time from one back edge to the next, of one execution of the loop and within
//! one window: the cycles of all branches after the first, up to and including the second. A *trip count*
//! is how often an execution entered the head; it is complete only if the window shows how the loop was
//! entered and how it was left.

use super::distribution::Distribution;
use super::window::{Step, Window};
use profile::address_space::ModuleAddress;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// A loop to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopShape {
    /// Its module.
    pub module: usize,
    /// First address of its first block.
    pub head: u64,
    /// The branch back to it.
    pub back: u64,
    /// Its code, in order of address.
    pub body: Vec<std::ops::Range<u64>>,
}

impl LoopShape {
    fn has(&self, place: Option<ModuleAddress>) -> bool {
        place.is_some_and(|place| {
            place.module == self.module
                && self.body.iter().any(|part| part.contains(&place.address))
        })
    }

    fn is_head(&self, place: Option<ModuleAddress>) -> bool {
        place == Some(ModuleAddress { module: self.module, address: self.head })
    }
}

/// What was recorded of a loop.
#[derive(Debug, Clone, Default)]
pub struct LoopSum {
    /// How often its back edge was taken.
    pub taken: u64,
    /// Cycles of iterations without a misprediction that the entries show.
    pub clean: Distribution,
    /// Cycles of all iterations.
    pub iterations: Distribution,
    /// Trips of whole executions.
    pub trips: Distribution,
    /// Trips seen of executions of which the beginning or the end is not in the window.
    pub truncated: Distribution,
    /// How often it was seen to be entered, …
    pub entered: u64,
    /// … and to be left.
    pub left: u64,
}

/// Tells calls and interrupts from other ways out of a loop.
pub trait Calls {
    /// Where a call or an interrupt returns to; `None` if it is neither, or not known.
    fn returns_to(&mut self, branch: ModuleAddress) -> Option<u64>;
}

/// The loops to look for, and what was recorded of them.
#[derive(Debug)]
pub struct Loops {
    shapes: Vec<LoopShape>,
    by_edge: FxHashMap<(ModuleAddress, ModuleAddress), usize>,
    sums: Vec<LoopSum>,
    /// Loops that the last window ended in, by number: the next one may continue it.
    open: Vec<(usize, Inside)>,
}

impl Loops {
    /// The loops of these back edges.
    pub fn new(all: Vec<((ModuleAddress, ModuleAddress), LoopShape)>) -> Self {
        let by_edge = all.iter().enumerate().map(|(n, (edge, _))| (*edge, n)).collect();
        let shapes: Vec<LoopShape> = all.into_iter().map(|(_, shape)| shape).collect();
        let sums = vec![LoopSum::default(); shapes.len()];
        Self { shapes, by_edge, sums, open: Vec::new() }
    }

    /// Adds a window to the sums of the loops whose back edges are in it.
    pub fn add(&mut self, window: &Window, calls: &mut dyn Calls) {
        if window.previous.is_none() {
            self.close();
        }
        let seen = self.seen(window);
        let open: HashMap<usize, Inside> = self.open.drain(..).collect();
        for number in seen {
            let state = match (&window.previous, open.get(&number)) {
                (None, _) => State::Unknown,
                (Some(_), Some(inside)) => State::Inside(*inside),
                (Some(step), None) => State::Outside { next: step.to },
            };
            let at = window.previous.and_then(|step| step.to);
            let (shape, sum) = (&self.shapes[number], &mut self.sums[number]);
            let mut walk = Walk { shape, sum, state, at };
            window.steps.iter().for_each(|step| walk.step(step, calls));
            if let State::Inside(inside) = walk.state {
                self.open.push((number, inside));
            }
        }
    }

    /// The loops to follow through a window: those whose back edges are in it; in a trace also those that
    /// are entered in this piece and closed in a later one.
    fn seen(&self, window: &Window) -> Vec<usize> {
        let edges = window.steps.iter().filter_map(|s| Some((s.from?, s.to?)));
        let closed = edges.filter_map(|edge| self.by_edge.get(&edge).copied());
        let mut seen: Vec<usize> =
            closed.chain(self.open.iter().map(|(number, _)| *number)).collect();
        if !window.is_sample {
            let mut places: Vec<ModuleAddress> =
                window.steps.iter().filter_map(|step| step.from).collect();
            places.sort_unstable();
            places.dedup();
            let is_entered = |shape: &LoopShape| {
                let start = ModuleAddress { module: shape.module, address: shape.head };
                let next = places.partition_point(|place| *place < start);
                places.get(next).is_some_and(|place| {
                    place.module == shape.module
                        && shape.body.last().is_some_and(|last| place.address < last.end)
                })
            };
            seen.extend((0..self.shapes.len()).filter(|number| is_entered(&self.shapes[*number])));
        }
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    fn close(&mut self) {
        for (number, inside) in self.open.drain(..) {
            self.sums[number].truncated.add(inside.trips);
        }
    }

    /// The loops, those whose back edges were taken most often first.
    pub fn finish(mut self) -> Vec<(LoopShape, LoopSum)> {
        self.close();
        let mut all: Vec<_> = self.shapes.into_iter().zip(self.sums).collect();
        all.sort_by(|(a, x), (b, y)| {
            y.taken.cmp(&x.taken).then((a.module, a.head, a.back).cmp(&(b.module, b.head, b.back)))
        });
        all
    }

    /// As [`finish`](Self::finish), where only the counts of the back edges are known.
    pub fn counted(
        mut self,
        count: impl Fn(ModuleAddress, ModuleAddress) -> u64,
    ) -> Vec<(LoopShape, LoopSum)> {
        for ((from, to), number) in &self.by_edge {
            self.sums[*number].taken = count(*from, *to);
        }
        self.finish()
    }
}

/// Where the program is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Before the first branch.
    Unknown,
    Outside {
        next: Option<ModuleAddress>,
    },
    Inside(Inside),
}

/// An execution of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Inside {
    /// How often the head was entered.
    trips: u64,
    /// How it was entered is known.
    is_whole: bool,
    /// Since the last back edge: cycles and whether a branch was mispredicted; `None` before the first
    /// one, and where a time is missing.
    since: Option<(u64, bool)>,
    /// It is in a function that the loop called, which returns to here.
    call: Option<u64>,
}

struct Walk<'a> {
    shape: &'a LoopShape,
    sum: &'a mut LoopSum,
    state: State,
    /// Where the last branch went.
    at: Option<ModuleAddress>,
}

impl Walk<'_> {
    fn step(&mut self, step: &Step, calls: &mut dyn Calls) {
        let from_inside = self.shape.has(step.from);
        self.fall_in(from_inside);
        match self.state {
            State::Inside(inside) => self.inside(inside, step, from_inside, calls),
            State::Unknown if from_inside => {
                let begun = Inside { trips: 0, is_whole: false, since: None, call: None };
                self.inside(begun, step, true, calls);
            }
            State::Unknown | State::Outside { .. } => self.outside(step),
        }
        self.at = step.to;
    }

    /// Whether straight code from where the last branch went to `step` enters the head from within the loop,
    /// without a branch.
    fn falls_into_head(&self, step: &Step) -> bool {
        let between = self.at.zip(step.from).filter(|_| self.shape.has(self.at));
        between.is_some_and(|(at, from)| {
            from.module == at.module
                && at.address < self.shape.head
                && self.shape.head <= from.address
        })
    }

    /// Entering without a branch: straight code that begins before the loop and ends in it.
    fn fall_in(&mut self, from_inside: bool) {
        if let State::Outside { next: Some(_) } = self.state
            && from_inside
        {
            self.sum.entered += 1;
            self.state =
                State::Inside(Inside { trips: 1, is_whole: true, since: None, call: None });
        }
    }

    fn outside(&mut self, step: &Step) {
        self.state = match self.shape.has(step.to) {
            // Into the middle: the return of a call, or an entry that is none of a natural loop.
            true => {
                let is_head = self.shape.is_head(step.to);
                self.sum.entered += u64::from(is_head);
                let is_whole = is_head;
                let trips = u64::from(is_head);
                State::Inside(Inside { trips, is_whole, since: None, call: None })
            }
            false => State::Outside { next: step.to },
        };
    }

    fn inside(&mut self, mut now: Inside, step: &Step, from_inside: bool, calls: &mut dyn Calls) {
        let mispredicted = step.mispredicted == Some(true);
        now.since = now
            .since
            .zip(step.cycles)
            .map(|((sum, any), cycles)| (sum + u64::from(cycles), any || mispredicted));
        if let Some(back) = now.call {
            let returned =
                step.to.is_some_and(|to| to.module == self.shape.module && to.address == back);
            now.call = (!returned).then_some(back);
            self.state = State::Inside(now);
            return;
        }
        if !from_inside && self.is_interrupt(step) {
            self.state = State::Inside(now);
            return;
        }
        if !from_inside {
            // It was left by falling out.
            self.leave(now);
            self.outside(step);
            return;
        }
        if self.falls_into_head(step) {
            // An iteration that no branch ends has no time of its own.
            now.trips += 1;
            now.since = None;
        }
        if self.shape.is_head(step.to) {
            now.trips += 1;
            if step.from.is_some_and(|from| from.address == self.shape.back) {
                self.sum.taken += 1;
                if let Some((cycles, any)) = now.since {
                    self.sum.iterations.add(cycles);
                    if !any {
                        self.sum.clean.add(cycles);
                    }
                }
                now.since = Some((0, false));
            } else {
                now.since = None;
            }
        } else if !self.shape.has(step.to) {
            let Some(back) = step.from.and_then(|from| calls.returns_to(from)) else {
                self.leave(now);
                self.state = State::Outside { next: step.to };
                return;
            };
            now.call = Some(back);
        }
        self.state = State::Inside(now);
    }

    /// The return from the kernel into the loop, which nothing recorded has left: only user mode is recorded.
    fn is_interrupt(&self, step: &Step) -> bool {
        step.from.is_none_or(|from| from.module != self.shape.module) && self.shape.has(step.to)
    }

    fn leave(&mut self, now: Inside) {
        self.sum.left += 1;
        let trips = if now.is_whole { &mut self.sum.trips } else { &mut self.sum.truncated };
        trips.add(now.trips);
    }
}
