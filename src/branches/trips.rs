//! Outcomes of all branches of a function, in order → its path through the blocks → trips of its loops.
//!
//! Between two branches there is one way only. A *trip count* is how often one execution of a loop enters its
//! head; it is whole if the path shows how the loop was entered and how it was left.

use crate::stacks::Distribution;
use std::collections::{BTreeSet, HashMap};

/// Blocks that are passed without a branch: more are a loop without an exit.
const MOST_PASSED: usize = 10_000;
/// Calls that are followed at the same time.
const MOST_FRAMES: usize = 256;
/// Executions of a loop whose order is stored.
const MOST_ORDERED: usize = 1 << 16;

/// Bits of an address that are the same in the file and in the process.
const IN_PAGE: u64 = 0xfff;

/// Successor of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This block (its index), also after a call returns.
    Block(usize),
    /// A recorded branch decides: its address, and the blocks when it is taken (a jump) and when it is not.
    /// `None`: out of the function.
    Conditional(u64, Option<usize>, Option<usize>),
    /// A recorded indirect jump: its address, and the blocks that it may go to, by first address; none if it
    /// leaves the function.
    Indirect(u64, Vec<(u64, usize)>),
    /// It returns, or leaves in another way.
    Leaves,
    /// Not known.
    Unknown,
}

/// A loop: its head and all its blocks, by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The first block.
    pub head: usize,
    /// All blocks, the head included.
    pub blocks: BTreeSet<usize>,
}

/// The control flow of a function; its first block is the entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// By block.
    pub next: Vec<Next>,
    /// Its loops.
    pub loops: Vec<Body>,
}

/// Trips seen of a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trips {
    /// Trips of whole executions.
    pub whole: Distribution,
    /// Trips in order of their ends, of the first ones only.
    pub order: Vec<u64>,
    /// Executions of which the beginning or the end was not seen.
    pub truncated: u64,
}

impl Trips {
    fn add(&mut self, trips: u64) {
        self.whole.add(trips);
        if self.order.len() < MOST_ORDERED {
            self.order.push(trips);
        }
    }
}

/// One outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its function: index of its shape.
    pub function: usize,
    /// Address of the branch.
    pub at: u64,
    /// For a conditional branch: 1 if taken; for an indirect jump: its target, in the file or in the process.
    pub value: u64,
}

/// Consecutive outcomes of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stream {
    /// Whether nothing ran before them: else a function may be running already when it is first seen.
    pub is_first: bool,
    /// The outcomes, in order.
    pub outcomes: Vec<Outcome>,
}

/// Adds the trips in a stream for each loop of each function.
pub fn add(shapes: &[Shape], stream: &Stream, trips: &mut [Vec<Trips>]) {
    let begun = match stream.is_first {
        true => (0..shapes.len()).collect(),
        false => BTreeSet::new(),
    };
    let mut walk = Walk { shapes, sites: sites(shapes), frames: Vec::new(), begun, trips };
    stream.outcomes.iter().for_each(|outcome| walk.step(*outcome));
    while let Some(frame) = walk.frames.pop() {
        walk.drop_frame(frame);
    }
}

/// The block that each branch ends.
fn sites(shapes: &[Shape]) -> HashMap<(usize, u64), usize> {
    let of = |(function, shape): (usize, &Shape)| {
        let site = move |(block, next): (usize, &Next)| match next {
            Next::Conditional(at, ..) | Next::Indirect(at, _) => Some(((function, *at), block)),
            _ => None,
        };
        shape.next.iter().enumerate().filter_map(site).collect::<Vec<_>>()
    };
    shapes.iter().enumerate().flat_map(of).collect()
}

/// A loop that is being executed.
#[derive(Debug, Clone, Copy)]
struct Running {
    number: usize,
    trips: u64,
    is_whole: bool,
}

/// A function that is being executed, up to a branch.
#[derive(Debug)]
struct Frame {
    function: usize,
    /// The block whose branch comes next.
    block: usize,
    loops: Vec<Running>,
}

struct Walk<'a> {
    shapes: &'a [Shape],
    sites: HashMap<(usize, u64), usize>,
    frames: Vec<Frame>,
    /// Functions whose next new frame is a call of theirs: they cannot be running already.
    begun: BTreeSet<usize>,
    trips: &'a mut [Vec<Trips>],
}

impl Walk<'_> {
    fn step(&mut self, outcome: Outcome) {
        let Some(&block) = self.sites.get(&(outcome.function, outcome.at)) else { return };
        let is_expected = |f: &Frame| (f.function, f.block) == (outcome.function, block);
        let mut frame = match self.frames.iter().rposition(is_expected) {
            Some(found) => {
                // The called functions have returned.
                for called in self.frames.split_off(found + 1) {
                    self.drop_frame(called);
                }
                let Some(frame) = self.frames.pop() else { return };
                frame
            }
            None => self.enter(outcome.function, block),
        };
        let next = match &self.shapes[frame.function].next[block] {
            Next::Conditional(_, taken, not) => {
                if outcome.value != 0 {
                    *taken
                } else {
                    *not
                }
            }
            Next::Indirect(_, targets) if !targets.is_empty() => {
                let mut own = targets.iter().filter(|(at, _)| (at ^ outcome.value) & IN_PAGE == 0);
                match (own.next(), own.next()) {
                    (Some((_, block)), None) => Some(*block),
                    _ => return self.drop_frame(frame),
                }
            }
            _ => None,
        };
        let Some(next) = next else { return self.end(frame) };
        self.go(&mut frame, next);
        match self.pass(&mut frame) {
            true if self.frames.len() < MOST_FRAMES => self.frames.push(frame),
            true => self.drop_frame(frame),
            false => self.end(frame),
        }
    }

    /// A function that was called, if its way to this branch is the one from its entry; else one that was
    /// already running.
    fn enter(&mut self, function: usize, block: usize) -> Frame {
        if !self.begun.insert(function) {
            let mut begun = Frame { function, block: 0, loops: Vec::new() };
            self.begin(&mut begun, 0, true);
            if self.pass(&mut begun) && begun.block == block {
                return begun;
            }
        }
        let mut running = Frame { function, block, loops: Vec::new() };
        self.begin(&mut running, block, false);
        running
    }

    fn begin(&self, frame: &mut Frame, block: usize, is_whole: bool) {
        for (number, body) in self.shapes[frame.function].loops.iter().enumerate() {
            if body.blocks.contains(&block) {
                let trips = u64::from(body.head == block);
                frame.loops.push(Running { number, trips, is_whole });
            }
        }
    }

    /// Follows the blocks up to the next branch; `false` if the function is left before.
    fn pass(&mut self, frame: &mut Frame) -> bool {
        for _ in 0..MOST_PASSED {
            match &self.shapes[frame.function].next[frame.block] {
                Next::Conditional(..) | Next::Indirect(..) => return true,
                Next::Block(next) => {
                    let next = *next;
                    self.go(frame, next);
                }
                Next::Leaves | Next::Unknown => return false,
            }
        }
        false
    }

    /// Goes on to a block.
    fn go(&mut self, frame: &mut Frame, to: usize) {
        let shape = &self.shapes[frame.function];
        let trips = &mut self.trips[frame.function];
        frame.loops.retain_mut(|running| {
            let body = &shape.loops[running.number];
            if !body.blocks.contains(&to) {
                match running.is_whole {
                    true => trips[running.number].add(running.trips),
                    false => trips[running.number].truncated += 1,
                }
                return false;
            }
            running.trips += u64::from(body.head == to);
            true
        });
        let from = frame.block;
        for (number, body) in shape.loops.iter().enumerate() {
            if body.blocks.contains(&to) && !body.blocks.contains(&from) {
                let trips = u64::from(body.head == to);
                frame.loops.push(Running { number, trips, is_whole: true });
            }
        }
        frame.block = to;
    }

    /// The function was left: so were its loops.
    fn end(&mut self, frame: Frame) {
        for running in frame.loops {
            let trips = &mut self.trips[frame.function][running.number];
            match running.is_whole {
                true => trips.add(running.trips),
                false => trips.truncated += 1,
            }
        }
    }

    /// Drops a frame whose further execution is unknown.
    fn drop_frame(&mut self, frame: Frame) {
        self.begun.remove(&frame.function);
        for running in frame.loops {
            self.trips[frame.function][running.number].truncated += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Block 0 → 1; 1 is a loop of itself that calls; 2 jumps back to 1 (an outer loop); 3 returns.
    fn nested() -> Shape {
        let body = |head, blocks: &[usize]| Body { head, blocks: blocks.iter().copied().collect() };
        Shape {
            next: vec![
                Next::Block(1),
                Next::Conditional(0x10, Some(1), Some(2)),
                Next::Conditional(0x20, Some(1), Some(3)),
                Next::Leaves,
            ],
            loops: vec![body(1, &[1, 2]), body(1, &[1])],
        }
    }

    fn whole(outcomes: &[Outcome]) -> Stream {
        Stream { is_first: true, outcomes: outcomes.to_vec() }
    }

    fn counts(of: &Trips) -> (Vec<(u64, u64)>, u64) {
        (of.whole.counts().collect(), of.truncated)
    }

    /// By hand: the inner loop makes 3, then 1 trips, the outer one as many as it enters block 1.
    #[test]
    fn trips_of_nested_loops() {
        let mut trips = vec![vec![Trips::default(); 2]];
        let out = |at, value| Outcome { function: 0, at, value };
        let path =
            [out(0x10, 1), out(0x10, 1), out(0x10, 0), out(0x20, 1), out(0x10, 0), out(0x20, 0)];
        add(&[nested()], &whole(&path), &mut trips);
        assert_eq!(counts(&trips[0][1]), (vec![(1, 1), (3, 1)], 0));
        assert_eq!(trips[0][1].order, [3, 1]);
        assert_eq!(counts(&trips[0][0]), (vec![(4, 1)], 0));
    }

    /// A call from within the loop to another function, whose branches come between.
    #[test]
    fn a_called_function_does_not_end_the_loop_that_calls_it() {
        let callee = Shape {
            next: vec![Next::Conditional(0x50, Some(1), Some(1)), Next::Leaves],
            loops: Vec::new(),
        };
        let mut trips = vec![vec![Trips::default(); 2], Vec::new()];
        let out = |function, at, value| Outcome { function, at, value };
        let path =
            [out(0, 0x10, 1), out(1, 0x50, 1), out(0, 0x10, 1), out(0, 0x10, 0), out(0, 0x20, 0)];
        add(&[nested(), callee], &whole(&path), &mut trips);
        assert_eq!(counts(&trips[0][1]), (vec![(3, 1)], 0));
    }

    #[test]
    fn what_begins_before_or_ends_after_the_records_is_truncated() {
        let mut trips = vec![vec![Trips::default(); 2]];
        let out = |at, value| Outcome { function: 0, at, value };
        let outcomes = vec![out(0x20, 1), out(0x10, 0), out(0x20, 1), out(0x10, 1)];
        add(&[nested()], &Stream { is_first: false, outcomes }, &mut trips);
        assert_eq!(counts(&trips[0][0]), (vec![], 1), "the outer one was running at the start");
        assert_eq!(counts(&trips[0][1]), (vec![(1, 1)], 1), "the last execution goes on");
    }

    /// The loop's branch is the first one of its function, too: the burst began within it.
    #[test]
    fn a_loop_that_ran_before_the_records_is_not_whole() {
        let mut trips = vec![vec![Trips::default(); 2]];
        let out = |at, value| Outcome { function: 0, at, value };
        let outcomes = vec![out(0x10, 1), out(0x10, 0), out(0x20, 0), out(0x10, 0), out(0x20, 0)];
        add(&[nested()], &Stream { is_first: false, outcomes }, &mut trips);
        assert_eq!(counts(&trips[0][1]), (vec![(1, 1)], 1));
        assert_eq!(counts(&trips[0][0]), (vec![(1, 1)], 1));
    }
}
