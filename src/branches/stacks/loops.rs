//! Windows → iterations and trips of all loops.

use super::walk::{Calls, Inside, LoopShape, LoopSum, State, Walk};
use super::window::Window;
use profile::address_space::ModuleAddress;
use rustc_hash::FxHashMap;

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
