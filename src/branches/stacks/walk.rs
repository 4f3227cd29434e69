//! Follows a program's way through a loop: windows → iterations and trips of all loops.
//!
//! An *iteration* is the time from one back edge to the next, of one execution of the loop and within one window: the
//! cycles of all branches after the first, up to and including the second. A *trip count* is how often an execution
//! entered the head; it is complete only if the window shows how the loop was entered and how it was left.

#[cfg(test)]
mod tests;

use super::sums::Distribution;
use super::window::{Step, Window};
use profile::address_space::ModuleAddress;
use rustc_hash::FxHashMap;

/// A loop to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopShape {
    /// Its module.
    pub module: usize,
    /// First address of its first block.
    pub head: u64,
    /// The branch back, …
    pub back: u64,
    /// … and its target: the head, or code that goes straight on into it.
    pub target: u64,
    /// Its code, in order of address; none of a cycle with several entries, which has no head.
    pub body: Vec<std::ops::Range<u64>>,
}

impl LoopShape {
    fn has(&self, place: Option<ModuleAddress>) -> bool {
        place.is_some_and(|place| {
            place.module == self.module
                && self.body.iter().any(|part| part.contains(&place.address))
        })
    }

    fn is(&self, place: Option<ModuleAddress>, address: u64) -> bool {
        place == Some(ModuleAddress { module: self.module, address })
    }

    fn is_head(&self, place: Option<ModuleAddress>) -> bool {
        self.is(place, self.head)
    }

    /// Whether a branch is the one back.
    fn closes(&self, step: &Step) -> bool {
        self.is(step.from, self.back) && self.is(step.to, self.target)
    }
}

/// Sums over a loop.
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

/// Distinguishes calls and interrupts from other ways out of a loop.
pub trait Calls {
    /// Where a call or an interrupt returns to; `None` if it is neither, or not known.
    fn returns_to(&mut self, branch: ModuleAddress) -> Option<u64>;
}

/// Where the program is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    /// Before the first branch.
    Unknown,
    Outside {
        next: Option<ModuleAddress>,
    },
    Inside(Inside),
}

/// An execution of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inside {
    /// How often the head was entered.
    pub trips: u64,
    /// How it was entered is known.
    is_whole: bool,
    /// Since the last back edge: cycles and whether a branch was mispredicted; `None` before the first
    /// one, and where a time is missing.
    since: Option<(u64, bool)>,
    /// The head was entered since.
    has_passed: bool,
    /// It is in a function that the loop called, which returns to here.
    call: Option<u64>,
}

impl Inside {
    fn new(trips: u64, is_whole: bool) -> Self {
        Self { trips, is_whole, since: None, has_passed: false, call: None }
    }

    /// The head is entered; `closes`: by the branch back.
    fn enter_head(&mut self, shape: &LoopShape, closes: bool) {
        self.trips += 1;
        // An iteration that another way ends has no time of its own.
        if !closes && (self.has_passed || shape.target == shape.head) {
            self.since = None;
        }
        self.has_passed = true;
    }
}

pub struct Walk<'a> {
    pub shape: &'a LoopShape,
    pub sum: &'a mut LoopSum,
    pub state: State,
    /// Where the last branch went.
    pub at: Option<ModuleAddress>,
}

impl Walk<'_> {
    /// Follows a branch that was taken; what it completes goes to `calls`.
    pub fn step(&mut self, step: &Step, calls: &mut dyn Calls) {
        let from_inside = self.shape.has(step.from);
        self.fall_in(from_inside);
        match self.state {
            State::Inside(inside) => self.inside(inside, step, from_inside, calls),
            State::Unknown if from_inside => {
                self.inside(Inside::new(0, false), step, true, calls);
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
            self.state = State::Inside(Inside::new(1, true));
        }
    }

    fn outside(&mut self, step: &Step) {
        self.state = match self.shape.has(step.to) {
            // Into the middle: the return of a call, or an entry that is none of a natural loop.
            true => {
                let is_head = self.shape.is_head(step.to);
                self.sum.entered += u64::from(is_head);
                State::Inside(Inside::new(u64::from(is_head), is_head))
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
        if self.falls_into_head(step) {
            now.enter_head(self.shape, false);
        }
        if !from_inside {
            // It was left by falling out.
            self.leave(now);
            self.outside(step);
            return;
        }
        let closes = self.shape.closes(step);
        if closes {
            if let Some((cycles, any)) = now.since {
                self.sum.iterations.add(cycles);
                if !any {
                    self.sum.clean.add(cycles);
                }
            }
            (now.since, now.has_passed) = (Some((0, false)), false);
        }
        if self.shape.is_head(step.to) {
            now.enter_head(self.shape, closes);
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

/// The loops to look for, and what was recorded of them.
#[derive(Debug)]
pub struct Loops {
    shapes: Vec<LoopShape>,
    /// The loop that each edge closes, by the edge's number.
    by_edge: FxHashMap<u32, u32>,
    sums: Vec<LoopSum>,
    /// Loops that the last window ended in, by number: the next one may continue it.
    open: Vec<(usize, Inside)>,
}

impl Loops {
    /// The loops that these edges, by number, close.
    pub fn new(all: Vec<(u32, LoopShape)>) -> Self {
        let by_edge = (0..).zip(&all).map(|(number, (edge, _))| (*edge, number)).collect();
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
        let open = std::mem::take(&mut self.open);
        for number in seen {
            let inside = open.iter().find(|(own, _)| *own == number);
            let state = match (&window.previous, inside) {
                (None, _) => State::Unknown,
                (Some(_), Some((_, inside))) => State::Inside(*inside),
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
        let closed = window.steps.iter().filter_map(|step| self.by_edge.get(&step.edge));
        let open = self.open.iter().map(|(number, _)| *number);
        let mut seen: Vec<usize> = Vec::new();
        // Equal ones are adjacent.
        for number in closed.map(|number| *number as usize).chain(open) {
            if seen.last() != Some(&number) {
                seen.push(number);
            }
        }
        if !window.is_sample {
            seen.extend(self.entered(window));
        }
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    /// The loops in whose code a window has branches.
    fn entered<'a>(&'a self, window: &Window) -> impl Iterator<Item = usize> + 'a {
        let mut places: Vec<ModuleAddress> =
            window.steps.iter().filter_map(|step| step.from).collect();
        places.sort_unstable();
        places.dedup();
        let is_entered = move |shape: &LoopShape| {
            let start = ModuleAddress { module: shape.module, address: shape.head };
            let next = places.partition_point(|place| *place < start);
            places.get(next).is_some_and(|place| {
                place.module == shape.module
                    && shape.body.last().is_some_and(|last| place.address < last.end)
            })
        };
        let all = self.shapes.iter().enumerate();
        all.filter(move |(_, shape)| is_entered(shape)).map(|(number, _)| number)
    }

    fn close(&mut self) {
        for (number, inside) in self.open.drain(..) {
            self.sums[number].truncated.add(inside.trips);
        }
    }

    /// The loops, those whose back edges were taken most often first; `taken`: how often an edge was.
    pub fn finish(
        mut self,
        taken: impl Fn(ModuleAddress, ModuleAddress) -> u64,
    ) -> Vec<(LoopShape, LoopSum)> {
        self.close();
        let mut all: Vec<_> = self.shapes.into_iter().zip(self.sums).collect();
        for (shape, sum) in &mut all {
            let at = |address| ModuleAddress { module: shape.module, address };
            sum.taken = taken(at(shape.back), at(shape.target));
        }
        all.sort_by(|(a, x), (b, y)| {
            y.taken.cmp(&x.taken).then((a.module, a.head, a.back).cmp(&(b.module, b.head, b.back)))
        });
        all
    }
}
