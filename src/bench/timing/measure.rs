//! Timing: rounds of sentinel, long run, short run and calibration chains, in several placements
//! of the code and several passes; what is kept of them, and what they say.

use super::clock::{Calibration, TscClock};
use super::form_timing::FormTiming;
use super::round_filter::{Round, keep};
use crate::Options;
use crate::harness::forms;
use crate::harness::loop_counter::Counter;
use crate::harness::program::Program;
use crate::harness::required_state::Needs;
use crate::initial::failure::{Failure, explain};
use crate::initial::run_setup::Found;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::{Ended, layout as at};
use isa::code::Block;
use tma::Result;

/// Rounds that only warm up.
const WARM: usize = 2;
/// Iterations of the loop form before the timed ones: memory predictors have to learn it.
const LOOP_WARM: u32 = 48;
/// The same of the unrolled form in a loop without fences.
const COUNTED_WARM: u32 = 2;
/// Tries at the calm rounds of one placement before the core counts as shared.
const ATTEMPTS: usize = 2;

/// Rounds of a first look.
const ROUGH: usize = 3;

/// Segments that are run in one command, where placements share one.
const TOGETHER: usize = 256;

/// How a pass went.
#[derive(Debug)]
pub enum Pass {
    /// It has enough calm rounds.
    Done,
    /// Something else uses the core.
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
    /// Whether the short run does not count.
    single: bool,
}

/// How the unrolled form repeats its copies.
#[derive(Debug, Clone, Copy)]
pub enum Repeat {
    /// Registers and memory restored and fences around every repetition: every copy finds the
    /// addresses of the trace.
    Restored,
    /// In a loop without fences, counted like this: for blocks whose
    /// addresses stay the same.
    Counted(Counter),
}

/// The unrolled form: `copies` against about half as many, each `repeat` times.
pub fn unrolled(
    block: &Block,
    needs: &Needs,
    found: &Found,
    (copies, how, repeat): (usize, Repeat, u32),
    offsets: &[usize],
) -> Form {
    let between = copies_between(copies, block.bytes.len());
    let mut start = BLOCK_CODE;
    let warm = match how {
        Repeat::Restored => forms::WARM,
        Repeat::Counted(_) => COUNTED_WARM,
    };
    let mut form = Form {
        programs: Vec::new(),
        pairs: Vec::new(),
        between: f64::from(repeat) * between as f64,
        untimed_too: f64::from(repeat + warm) * between as f64,
        single: false,
    };
    let build = |copies, start| {
        let shape = found.shape(block, needs, copies, start);
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

/// How many of `copies` the short run leaves out: about half, so many that both runs end at the
/// same place of a cache line. Where a run ends costs cycles of its own otherwise.
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
    needs: &Needs,
    found: &Found,
    copies: usize,
    counter: Counter,
    long: u32,
) -> Form {
    let between = f64::from(long - long / 2) * copies as f64;
    let mut form = Form {
        programs: Vec::new(),
        pairs: Vec::new(),
        between,
        // As many before the time stamp in both runs.
        untimed_too: between,
        single: false,
    };
    let mut start = BLOCK_CODE;
    for offset in [0, 32] {
        let shape = found.shape(block, needs, copies, start + offset);
        let program = forms::looped(&shape, counter, LOOP_WARM.min(long));
        start = program.end().next_multiple_of(64) + 64;
        let segment = |repeat| Segment { entry: program.start, repeat };
        form.pairs.push((segment(long), segment(long / 2)));
        form.programs.push(program);
    }
    form
}

impl Form {
    /// The long and the short run of a placement.
    pub fn pair(&self, placement: usize) -> (Segment, Segment) {
        self.pairs[placement % self.pairs.len()]
    }

    /// How many placements there are.
    pub fn placements(&self) -> usize {
        self.pairs.len()
    }

    /// Iterations of the block between the two runs for whoever counts them from their first to
    /// their last instruction: the repetitions before the time stamp are iterations, too.
    pub fn between_whole_runs(&self) -> f64 {
        self.untimed_too
    }

    /// Has only the long run count: `cycles(u)/u`, with all that a run costs besides.
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

    /// Cycles per iteration by a few runs, whoever else uses the core; at least 0.05. Before them
    /// the copies run `longest` times without a pause: that may fail, or find more pages.
    ///
    /// # Errors
    /// The sandbox cannot be started. A block that does not run is a [`Failure`].
    pub fn rough(
        &self,
        runner: &mut Runner,
        options: &Options,
        longest: Option<u32>,
    ) -> Result<std::result::Result<f64, Failure>> {
        self.install(runner)?;
        let (long, short) = self.pairs[0];
        let mut segments = runner.clock_segments().to_vec();
        let clock = segments.len();
        segments.extend([long, short]);
        // The short and the long run, and the chains that say how long a tick is.
        let mut plan = [clock + 1, clock, 0, 1].repeat(ROUGH);
        if let Some(repeat) = longest {
            plan.insert(0, segments.len());
            segments.push(Segment { repeat, ..long });
        }
        let plan: Vec<_> = plan.into_iter().map(|segment| (segment, 1)).collect();
        let (ended, ticks) = runner.run(&segments, &plan)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            return Ok(Err(self.explained(&ended, options)));
        }
        // Whoever shares the core makes it longer.
        let least = |wanted: usize| {
            let own = plan.iter().zip(&ticks).filter(|((segment, _), _)| *segment == wanted);
            own.map(|(_, ticks)| f64::from(*ticks)).fold(f64::INFINITY, f64::min)
        };
        let chains = Calibration { add: (least(0), least(1)), ..Calibration::default() };
        let ratio = TscClock::cycles_per_tick(&[chains]).unwrap_or(1.0);
        let ticks = least(clock) - least(clock + 1);
        Ok(Ok((ticks * ratio / self.between).max(0.05)))
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

    /// One pass over every placement: a batch of calm rounds of each, unless it is plain that
    /// something else uses the core.
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
            timed.waiting = keep(tried, self.single, sentinel, timed);
            if timed.waiting.is_empty() {
                timed.passes += 1;
                return Ok(Pass::Done);
            }
        }
        Ok(Pass::Contended)
    }

    /// The ticks of `count` rounds of each placement.
    fn rounds(
        &self,
        runner: &mut Runner,
        placements: &[usize],
        count: usize,
    ) -> Result<std::result::Result<Vec<Vec<Round>>, Ended>> {
        let mut segments = runner.clock_segments().to_vec();
        let (clock, count) = (segments.len(), (count + WARM).min(at::SCHEDULE_MAX / 8));
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

/// How many placements of so many rounds are run in one command: as many as are done in a fraction
/// of a millisecond.
fn together(rounds: usize) -> usize {
    (TOGETHER / (7 * (rounds + WARM))).clamp(1, 8)
}

/// Every so many rounds the multiply chains run: three times at least, where there are few rounds.
fn multiply_every(count: usize) -> usize {
    if count < 16 { 2 } else { 4 }
}

/// Rounds of sentinel, short run, long run, sentinel, and calibration chains in turn, where the
/// segment `long` is the long run and the one behind it the short one.
fn plan_rounds(long: usize, count: usize, plan: &mut Vec<usize>) {
    let every = multiply_every(count);
    for round in 0..count {
        plan.extend([4, long + 1, long, 4, 0, 1]);
        if round % every == every - 1 {
            plan.extend([2, 3]);
        }
    }
}

/// What [`plan_rounds`] planned, less the rounds that only warm up.
fn read_rounds(count: usize, ticks: &mut impl Iterator<Item = f64>) -> Vec<Round> {
    let mut next = || ticks.next().unwrap_or(f64::NAN);
    let every = multiply_every(count);
    let mut all = Vec::with_capacity(count);
    for round in 0..count {
        let [before, short, long, behind, add_long, add_short] = [(); 6].map(|()| next());
        let multiply = (round % every == every - 1).then(|| (next(), next()));
        let calibration =
            Calibration { add: (add_long, add_short), multiply, sentinel: (before, behind) };
        all.push(Round { long, short, calibration });
    }
    all.drain(..WARM.min(count));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_runs_hold_the_repetitions_before_the_time_stamp() {
        let block = Block::decode(&[0x48, 0x01, 0xd8]).unwrap();
        let found = Found {
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
        let needs = Needs::of(&block);
        let iterations = |how| {
            let form = unrolled(&block, &needs, &found, (128, how, 5), &[0]);
            (form.between, form.between_whole_runs())
        };
        // 64 copies apart, five times and one or two times before.
        assert_eq!(iterations(Repeat::Restored), (320.0, 384.0));
        assert_eq!(iterations(Repeat::Counted(Counter::Memory)), (320.0, 448.0));
        // Long and short loops warm up alike.
        let form = looped(&block, &needs, &found, 4, Counter::Memory, 100);
        assert_eq!((form.between, form.between_whole_runs()), (200.0, 200.0));
    }
}
