//! Timing: rounds of sentinel, long run, short run and calibration chains, in several placements
//! of the code and several passes.

use super::clock::{Calibration, TscClock};
use super::form_timing::FormTiming;
use super::round_filter::{Round, filter_rounds};
use crate::Options;
use crate::harness::forms;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::program::{Program, Shape};
use crate::harness::required_state::RequiredState;
use crate::initial::failure::{Failure, explain};
use crate::initial::run_setup::RunSetup;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::Ended;
use crate::sandbox::layout::{self as at, mail};
use isa::code::Block;
use tma::Result;

/// Rounds that only warm up.
const WARM: usize = 2;
/// Iterations of the loop form before the timed ones: memory predictors have to learn it.
const LOOP_WARM: u32 = 48;
/// The same of the unrolled form in a loop without fences.
const COUNTED_WARM: u32 = 2;
/// Attempts at enough uncontended rounds of a placement before the pass counts as contended.
const ATTEMPTS: usize = 2;

/// Untimed rounds in which memory predictors learn a block. On Zen 5 that takes 4 to 20 rounds, during which
/// loads do not wait yet for the stores before them.
const LEARN: usize = 16;
/// Rounds of a first look, and repetitions of a loop in it.
const ROUGH: usize = 3;
const LOOK: u32 = 8;

/// Segments that are run in one command, where placements share one.
const TOGETHER: usize = 256;

/// How a pass went.
#[derive(Debug)]
pub enum Pass {
    /// It has enough accepted rounds.
    Done,
    /// The core is contended.
    Contended,
    /// The block failed.
    Failed(Failure),
}

/// What is run: a long and a short run of each placement.
pub struct Form {
    /// The code of each placement.
    programs: Vec<Program>,
    /// Long and short segment of each.
    pairs: Vec<(Segment, Segment)>,
    /// Iterations of the block between long and short.
    between: f64,
    /// The same with the repetitions before the time stamp.
    untimed_too: f64,
    /// Whether only the long run counts.
    single: bool,
    /// Whether memory predictors have to learn it: it writes memory.
    learns: bool,
}

/// How the unrolled form repeats its copies.
#[derive(Debug, Clone, Copy)]
pub enum Repeat {
    /// Registers and memory restored and fences around every repetition: every copy finds the
    /// addresses of the trace.
    Restored,
    /// In a loop without fences, counted like this: for blocks whose
    /// addresses stay the same.
    Counted(LoopCounter),
}

impl Repeat {
    /// How often the copies are repeated for a first look: start-up would be much of the time of
    /// a few hundred instructions.
    pub fn look(self) -> u32 {
        match self {
            Self::Restored => 1,
            Self::Counted(_) => LOOK,
        }
    }
}

/// The unrolled form: `copies` against about half as many, each `repeat` times.
pub fn unrolled(
    block: &Block,
    required_state: &RequiredState,
    setup: &RunSetup,
    (copies, how, repeat): (usize, Repeat, u32),
    offsets: &[usize],
) -> Form {
    let between = copies_between(copies, block.bytes.len());
    let mut start = BLOCK_CODE;
    let warm = match how {
        Repeat::Restored => forms::WARM,
        Repeat::Counted(_) => COUNTED_WARM,
    };
    let mut form =
        Form::of(f64::from(repeat) * between as f64, f64::from(repeat + warm) * between as f64);
    form.learns = block.instructions.iter().any(isa::code::Inst::writes_memory);
    let build = |copies, start| {
        let shape = setup.shape(block, required_state, copies, start);
        match how {
            Repeat::Restored => forms::unrolled(&shape),
            Repeat::Counted(counter) => forms::looped(&shape, counter, COUNTED_WARM),
        }
    };
    for offset in offsets {
        let long = build(copies, start + offset);
        let short = build(copies - between, long.end().next_multiple_of(64) + 64 + offset);
        start = short.end().next_multiple_of(64) + 64;
        if start > at::CODE + at::CODE_SIZE {
            break;
        }
        let segment = |program: &Program| Segment { entry: program.start, repeat };
        form.pairs.push((segment(&long), segment(&short)));
        form.programs.extend([long, short]);
    }
    form
}

/// How many of `copies` the short run omits: about half, such that both runs end at the same offset
/// within a cache line, which otherwise affects the time.
fn copies_between(copies: usize, length: usize) -> usize {
    let half = copies / 2;
    let mut step = (64 >> length.trailing_zeros().min(6)).max(1);
    while step > 1 && (half / step * step) * 3 < copies {
        step /= 2;
    }
    half / step * step
}

/// The loop form: `copies` in the body, `long` against half as many iterations.
pub fn looped(
    block: &Block,
    required_state: &RequiredState,
    setup: &RunSetup,
    copies: usize,
    counter: LoopCounter,
    long: u32,
) -> Form {
    let between = f64::from(long - long / 2) * copies as f64;
    let mut form = Form::of(between, between);
    form.learns = block.instructions.iter().any(isa::code::Inst::writes_memory);
    let mut start = BLOCK_CODE;
    for offset in [0, 32] {
        let shape = setup.shape(block, required_state, copies, start + offset);
        let program = forms::looped(&shape, counter, LOOP_WARM.min(long));
        start = program.end().next_multiple_of(64) + 64;
        let segment = |repeat| Segment { entry: program.start, repeat };
        form.pairs.push((segment(long), segment(long / 2)));
        form.programs.push(program);
    }
    form
}

/// From how many points on a loop is run to its end.
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

/// A loop body run as a loop, `iterations` long and short of each pair, each `repeat` times.
pub fn closed(
    shape: &Shape<'_>,
    how: &Closed,
    (long, short): (u32, u32),
    repeat: u32,
    aligns: &[usize],
) -> Form {
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
                let build = |s: &Shape<'_>| forms::chained(s, *counter, long, (*align, *inverted));
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
    (units, repeat): (f64, u32),
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
    (units, count): (f64, u32),
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
    (units, repeat): (f64, u32),
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

impl Form {
    /// A form without placements yet: iterations between long and short, and the same with those before
    /// the time stamp.
    fn of(between: f64, untimed_too: f64) -> Self {
        let (programs, pairs) = (Vec::new(), Vec::new());
        Self { programs, pairs, between, untimed_too, single: false, learns: false }
    }

    /// The long and the short run of a placement.
    pub fn pair(&self, placement: usize) -> (Segment, Segment) {
        self.pairs[placement % self.pairs.len()]
    }

    /// How many placements there are.
    pub fn placements(&self) -> usize {
        self.pairs.len()
    }

    /// Iterations of the block between the two runs from their first to their last instruction, including
    /// the repetitions before the time stamp.
    pub fn between_whole_runs(&self) -> f64 {
        self.untimed_too
    }

    /// Uses only the long run: `cycles(u)/u`, including overhead.
    pub fn forget_short(&mut self, iterations: usize) {
        self.between = iterations as f64;
        self.single = true;
    }

    /// Writes the code into the sandbox.
    pub fn install(&self, runner: &mut Runner) -> Result<()> {
        let worker = runner.worker()?;
        for program in &self.programs {
            worker.write(program.start, &program.bytes);
        }
        Ok(())
    }

    /// Runs each placement's long segment once; more pages may be found by that.
    pub fn rehearse(&self, runner: &mut Runner, options: &Options) -> Result<Option<Failure>> {
        let segments: Vec<Segment> = self.pairs.iter().map(|p| p.0).collect();
        let schedule: Vec<_> = (0..segments.len()).map(|i| (i, 1)).collect();
        let (ended, _) = runner.run(&segments, &schedule)?;
        if ended == Ended::Done {
            return Ok(None);
        }
        Ok(Some(self.explained(&ended, options)))
    }

    /// Approximate cycles per iteration from a few runs, regardless of contention; at least 0.05. First
    /// the copies run `longest` times without a pause, which may fail or find more pages; `last` runs after
    /// all of them.
    ///
    /// # Errors
    /// The sandbox cannot be started. A block that does not run is a [`Failure`].
    pub fn rough(
        &self,
        runner: &mut Runner,
        options: &Options,
        longest: Option<u32>,
        last: Option<&Program>,
    ) -> Result<std::result::Result<f64, Failure>> {
        self.install(runner)?;
        let (long, short) = self.pairs[0];
        let mut segments = runner.clock_segments().to_vec();
        let clock = segments.len();
        segments.extend([long, short]);
        // The short and the long run, and the chains that calibrate the tick.
        let mut plan = [clock + 1, clock, 0, 1].repeat(ROUGH);
        if let Some(repeat) = longest {
            plan.insert(0, segments.len());
            segments.push(Segment { repeat, ..long });
        }
        if let Some(program) = last {
            runner.worker()?.write(program.start, &program.bytes);
            plan.push(segments.len());
            segments.push(Segment { entry: program.start, repeat: 1 });
        }
        let plan: Vec<_> = plan.into_iter().map(|segment| (segment, 1)).collect();
        let (ended, ticks) = runner.run(&segments, &plan)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            return Ok(Err(self.explained(&ended, options)));
        }
        // Contention only makes it longer.
        let least = |wanted: usize| {
            let own = plan.iter().zip(&ticks).filter(|((segment, _), _)| *segment == wanted);
            own.map(|(_, ticks)| f64::from(*ticks)).fold(f64::INFINITY, f64::min)
        };
        let chains = Calibration { add: (least(0), least(1)), ..Calibration::default() };
        let ratio = TscClock::cycles_per_tick(&[chains]).unwrap_or(1.0);
        let ticks = least(clock) - least(clock + 1);
        Ok(Ok((ticks * ratio / self.between).max(0.05)))
    }

    /// The first free offset after its code.
    pub fn end(&self) -> usize {
        self.programs.iter().map(Program::end).max().unwrap_or(BLOCK_CODE).next_multiple_of(64)
    }

    /// Where and why the block failed.
    pub fn explained(&self, ended: &Ended, options: &Options) -> Failure {
        let offset = match ended {
            Ended::Fault(f) | Ended::MapRefused(f) | Ended::TooManyPages(f) => f.offset,
            _ => None,
        };
        let holds = |p: &&Program| offset.is_some_and(|o| (p.start..p.end()).contains(&o));
        let program = self.programs.iter().find(holds).unwrap_or(&self.programs[0]);
        explain(ended, program, options.pages_allowed())
    }

    /// One pass: a batch of accepted rounds of every placement, unless the core is contended.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn pass(
        &self,
        runner: &mut Runner,
        options: &Options,
        rounds: usize,
        timed: &mut FormTiming,
    ) -> Result<Pass> {
        (timed.between, timed.tolerance) = (self.between, options.tolerance);
        if timed.waiting.is_empty() {
            timed.waiting = (0..self.pairs.len()).collect();
            if self.learns
                && timed.passes == 0
                && options.passes > 1
                && let Some(ended) = self.learn(runner)?
            {
                return Ok(Pass::Failed(self.explained(&ended, options)));
            }
        }
        for _ in 0..ATTEMPTS {
            let mut tried = Vec::new();
            for placements in timed.waiting.chunks(together(rounds)) {
                match self.rounds(runner, placements, rounds)? {
                    Ok(all) => tried.extend(placements.iter().copied().zip(all)),
                    Err(ended) => return Ok(Pass::Failed(self.explained(&ended, options))),
                }
            }
            let sentinel = options.sentinel.then_some(&mut runner.sentinel);
            timed.waiting = filter_rounds(tried, self.single, sentinel, timed);
            if timed.waiting.is_empty() {
                timed.passes += 1;
                return Ok(Pass::Done);
            }
        }
        Ok(Pass::Contended)
    }

    /// Runs every placement untimed until memory predictors know its loads and stores.
    fn learn(&self, runner: &mut Runner) -> Result<Option<Ended>> {
        for pairs in self.pairs.chunks(mail::SEGMENTS_MAX / 2) {
            let segments: Vec<Segment> =
                pairs.iter().flat_map(|(long, short)| [*long, *short]).collect();
            let plan: Vec<_> = (0..segments.len() / 2)
                .flat_map(|i| [2 * i + 1, 2 * i].repeat(LEARN))
                .map(|segment| (segment, 1 + (runner.random() % 100) as u16))
                .take(at::SCHEDULE_MAX)
                .collect();
            let (ended, _) = runner.run(&segments, &plan)?;
            if ended != Ended::Done {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    /// The ticks of `count` rounds of each placement.
    fn rounds(
        &self,
        runner: &mut Runner,
        placements: &[usize],
        count: usize,
    ) -> Result<std::result::Result<Vec<Vec<Round>>, Ended>> {
        let mut segments = runner.clock_segments().to_vec();
        let (clock, count) = (segments.len(), count.min(at::SCHEDULE_MAX / 8 - WARM));
        let mut plan = Vec::new();
        for (i, placement) in placements.iter().enumerate() {
            let (long, short) = self.pairs[*placement];
            segments.extend([long, short]);
            plan_rounds(clock + 2 * i, count, &mut plan);
        }
        let dithered: Vec<_> =
            plan.iter().map(|s| (*s, 1 + (runner.random() % 100) as u16)).collect();
        let (ended, ticks) = runner.run(&segments, &dithered)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            return Ok(Err(ended));
        }
        let mut ticks = ticks.into_iter().map(f64::from);
        Ok(Ok(placements.iter().map(|_| read_rounds(count, &mut ticks)).collect()))
    }
}

/// How many placements of `rounds` share a command, which should take a fraction of a millisecond.
fn together(rounds: usize) -> usize {
    (TOGETHER / (7 * (rounds + WARM))).clamp(1, 8)
}

/// Interval in rounds of the multiply chains: at least three times, even with few rounds.
fn multiply_every(count: usize) -> usize {
    if count < 16 { 3 } else { 4 }
}

/// Rounds that warm up the short and the long run, then those of sentinel, short run, long run, sentinel, and
/// calibration chains in turn, where the segment `long` is the long run and the next one the short run.
fn plan_rounds(long: usize, count: usize, plan: &mut Vec<usize>) {
    plan.extend([long + 1, long].repeat(WARM));
    let every = multiply_every(count);
    for round in 0..count {
        plan.extend([4, long + 1, long, 4, 0, 1]);
        if round % every == 0 {
            plan.extend([2, 3]);
        }
    }
}

/// The rounds of [`plan_rounds`] without warm-up.
fn read_rounds(count: usize, ticks: &mut impl Iterator<Item = f64>) -> Vec<Round> {
    let mut ticks = ticks.skip(2 * WARM);
    let mut next = || ticks.next().unwrap_or(f64::NAN);
    let every = multiply_every(count);
    let mut all = Vec::with_capacity(count);
    for round in 0..count {
        let [before, short, long, behind, add_long, add_short] = [(); 6].map(|()| next());
        let multiply = (round % every == 0).then(|| (next(), next()));
        let calibration =
            Calibration { add: (add_long, add_short), multiply, sentinel: (before, behind) };
        all.push(Round { long, short, calibration });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_runs_hold_the_repetitions_before_the_time_stamp() {
        let block = Block::decode(&[0x48, 0x01, 0xd8]).unwrap();
        let setup = RunSetup {
            values: crate::Values::default(),
            copies: 128,
            pages: Vec::new(),
            lines: Vec::new(),
            taken: Vec::new(),
            reseeded: Vec::new(),
            accesses: Vec::new(),
            complete: true,
            end: Default::default(),
            rip_area: 0,
        };
        let required_state = RequiredState::of(&block);
        let iterations = |how| {
            let form = unrolled(&block, &required_state, &setup, (128, how, 5), &[0]);
            (form.between, form.between_whole_runs())
        };
        // 64 copies apart, five times and one or two times before.
        assert_eq!(iterations(Repeat::Restored), (320.0, 384.0));
        assert_eq!(iterations(Repeat::Counted(LoopCounter::Memory)), (320.0, 448.0));
        // Long and short loops warm up alike.
        let form = looped(&block, &required_state, &setup, 4, LoopCounter::Memory, 100);
        assert_eq!((form.between, form.between_whole_runs()), (200.0, 200.0));
    }
}
