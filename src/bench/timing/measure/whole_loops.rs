//! Forms of whole loops and other code with and without its work.

use super::Form;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::{Program, Shape, forms};
use crate::runner::{BLOCK_CODE, Segment};
use crate::sandbox::layout as at;

/// Number of points in a loop from which it is run to its end.
pub const EIGHTHS: usize = 5;
/// Long and short runs, as numbers of points: each long run has two eighths more. The exit of a loop is
/// predicted only up to some number of iterations (140 on Zen 5, or any once learned), so that one run
/// may have a misprediction more than another: three pairs outvote a run that is predicted better.
const PAIRS: [(usize, usize); 3] = [(0, 2), (2, 4), (1, 3)];

/// The ways in which a loop body runs as a loop.
#[derive(Debug, Clone)]
pub enum Closed {
    /// Ended by its own exit: registers at its start and after one to four eighths of its iterations.
    Exits(Box<[[u64; 16]; EIGHTHS]>),
    /// Copies chained by their back edges, inverted or not, with a counter after the last.
    Counted(LoopCounter, bool),
}

/// Iterations of a long and of a short run.
#[derive(Debug, Clone, Copy)]
pub struct Iterations {
    pub long: u32,
    pub short: u32,
}

/// A loop body run as a loop, with these iterations of each pair, each `repeat` times.
pub fn closed(
    shape: &Shape<'_>,
    how: &Closed,
    iterations: Iterations,
    repeat: u32,
    aligns: &[usize],
) -> Form {
    let Iterations { long, short } = iterations;
    let mut form = Form::of(0.0, 0.0);
    let mut start = BLOCK_CODE;
    let mut add = |form: &mut Form, build: &dyn Fn(&Shape<'_>) -> Program| {
        let program = build(&Shape { start, ..shape.clone() });
        start = program.end().next_multiple_of(64) + 64;
        let entry = program.start;
        form.programs.push(program);
        entry
    };
    for align in aligns {
        match how {
            Closed::Exits(starts) => {
                let entries = starts
                    .each_ref()
                    .map(|from| add(&mut form, &|s| forms::closed(s, from, *align, true)));
                let segment = |n: usize| Segment { entry: entries[n], repeat };
                let pairs = PAIRS.map(|(long, short)| (segment(long), segment(short)));
                form.pairs.extend(pairs);
            }
            Closed::Counted(counter, inverted) => {
                let build = |s: &Shape<'_>| forms::chained(s, *counter, long, *align, *inverted);
                let entry = add(&mut form, &build);
                let segment = |repeat| Segment { entry, repeat };
                form.pairs.push((segment(long), segment(short)));
            }
        }
    }
    form.between = match how {
        Closed::Exits(..) => f64::from(repeat) * f64::from(long - short),
        Closed::Counted(..) => f64::from(long - short) * shape.copies as f64,
    };
    form.untimed_too = form.between;
    form
}

/// Code that `build` emits with and without its work, which is `units` iterations of a block, each
/// `repeat` times.
pub fn whole(
    shape: &Shape<'_>,
    build: &dyn Fn(&Shape<'_>, bool) -> Program,
    placements: usize,
    units: f64,
    repeat: u32,
) -> Form {
    let between = units * f64::from(repeat);
    let mut form = Form::of(between, between);
    let mut start = BLOCK_CODE;
    for _ in 0..placements {
        let mut add = |work: bool| {
            let program = build(&Shape { start, ..shape.clone() }, work);
            start = program.end().next_multiple_of(64) + 64;
            program
        };
        let (with, without) = (add(true), add(false));
        if without.end() > at::CODE + at::CODE_SIZE {
            break;
        }
        let segment = |program: &Program| Segment { entry: program.start, repeat };
        form.pairs.push((segment(&with), segment(&without)));
        form.programs.extend([with, without]);
    }
    form
}

/// Code that `build` emits, which repeats its work of `units` iterations without a pause: `count` times against half
/// as often.
pub fn repeated(
    shape: &Shape<'_>,
    build: &dyn Fn(&Shape<'_>) -> Program,
    placements: usize,
    units: f64,
    count: u32,
) -> Form {
    let between = units * f64::from(count - count / 2);
    let mut form = Form::of(between, between);
    let mut start = BLOCK_CODE;
    for _ in 0..placements {
        let program = build(&Shape { start, ..shape.clone() });
        start = program.end().next_multiple_of(64) + 64;
        if start > at::CODE + at::CODE_SIZE {
            break;
        }
        let segment = |repeat| Segment { entry: program.start, repeat };
        form.pairs.push((segment(count), segment(count / 2)));
        form.programs.push(program);
    }
    form
}

/// Code that `build` emits with its work of five lengths, which differ by `units` iterations each, and each
/// `repeat` times: long against short runs, as of [`Closed::Exits`].
pub fn lengths(
    shape: &Shape<'_>,
    build: &dyn Fn(&Shape<'_>, usize) -> Program,
    placements: usize,
    units: f64,
    repeat: u32,
) -> Form {
    let between = 2.0 * units * f64::from(repeat);
    let mut form = Form::of(between, between);
    let mut start = BLOCK_CODE;
    for _ in 0..placements {
        let programs: [Program; EIGHTHS] = std::array::from_fn(|length| {
            let program = build(&Shape { start, ..shape.clone() }, length);
            start = program.end().next_multiple_of(64) + 64;
            program
        });
        if start > at::CODE + at::CODE_SIZE {
            break;
        }
        let segment = |n: usize| Segment { entry: programs[n].start, repeat };
        form.pairs.extend(PAIRS.map(|(long, short)| (segment(long), segment(short))));
        form.programs.extend(programs);
    }
    form
}
