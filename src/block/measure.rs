//! Timing: rounds of sentinel, long run, short run and calibration chains, in several placements
//! of the code and several passes; what is kept of them, and what they say.

use super::Options;
use super::clock::{Calibration, Clock as _, TscClock};
use super::counter::Counter;
use super::discover::{Failure, Found, explain};
use super::engine::{BLOCK_CODE, Engine, Segment};
use super::program::{self, Needs, Program, Shape};
use super::sandbox::Ended;
use super::sandbox::layout::{self as at};
use super::stats::{median, trimmed_mean};
use crate::Result;
use crate::code::Block;

/// Distances of the code from the start of a line, one placement after the other.
const OFFSETS: [usize; 6] = [0, 32, 16, 48, 8, 40];
/// Rounds that only warm up.
const WARM: usize = 2;
/// Tries at the calm rounds of one placement before the core counts as shared.
const ATTEMPTS: usize = 3;

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
}

/// The samples of one form.
#[derive(Debug, Clone, Default)]
pub struct Timed {
    /// Cycles per iteration, one for each pass and placement.
    pub batches: Vec<f64>,
    /// Median of each pass.
    pub passes: Vec<f64>,
    /// Rounds kept and dropped.
    pub kept: usize,
    /// Rounds dropped because the core was shared.
    pub contended: usize,
    /// Passes void because the clock changed.
    pub void: Vec<String>,
}

impl Timed {
    /// The headline: median of the passes.
    pub fn cycles(&self) -> Option<f64> {
        let value = median(&self.passes);
        value.is_finite().then_some(value)
    }

    /// Lowest and highest pass.
    pub fn range(&self) -> Option<(f64, f64)> {
        let low = self.passes.iter().copied().reduce(f64::min)?;
        let high = self.passes.iter().copied().reduce(f64::max)?;
        Some((low, high))
    }

    /// Whether the passes agree within 4 %, or 0.03 cycles.
    pub fn is_reproduced(&self) -> bool {
        match (self.cycles(), self.range()) {
            (Some(cycles), Some((low, high))) => high - low <= (0.04 * cycles).max(0.03),
            _ => false,
        }
    }
}

/// The unrolled form: `repeat` times long against short, half the copies apart.
pub fn unrolled(block: &Block, needs: &Needs, found: &Found, count: usize, repeat: u32) -> Form {
    let short = found.copies / 2;
    let mut start = BLOCK_CODE;
    let mut form = Form {
        programs: Vec::new(),
        pairs: Vec::new(),
        between: f64::from(repeat) * (found.copies - short) as f64,
    };
    for offset in OFFSETS.iter().take(count) {
        let long = program::unrolled(&shape(block, needs, found, found.copies, start + offset));
        let second = long.end().next_multiple_of(64) + 64 + offset;
        let brief = program::unrolled(&shape(block, needs, found, short, second));
        start = brief.end().next_multiple_of(64) + 64;
        if start > at::CODE + at::CODE_SIZE {
            break;
        }
        let segment = |program: &Program| Segment { entry: program.start, repeat };
        form.pairs.push((segment(&long), segment(&brief)));
        form.programs.extend([long, brief]);
    }
    form
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
    let mut form = Form {
        programs: Vec::new(),
        pairs: Vec::new(),
        between: f64::from(long - long / 2) * copies as f64,
    };
    let mut start = BLOCK_CODE;
    for offset in OFFSETS.iter().take(2) {
        let program = program::looped(&shape(block, needs, found, copies, start + offset), counter);
        start = program.end().next_multiple_of(64) + 64;
        let segment = |repeat| Segment { entry: program.start, repeat };
        form.pairs.push((segment(long), segment(long / 2)));
        form.programs.push(program);
    }
    form
}

fn shape<'a>(
    block: &'a Block,
    needs: &'a Needs,
    found: &'a Found,
    copies: usize,
    start: usize,
) -> Shape<'a> {
    Shape {
        block,
        needs,
        copies,
        lines: !found.lines.is_empty(),
        reseeded: &found.reseeded,
        taken: &found.taken,
        start,
        rip_area: found.rip_area,
    }
}

impl Form {
    /// Writes the code into the sandbox.
    pub fn install(&self, engine: &mut Engine) -> Result<()> {
        let worker = engine.worker()?;
        for program in &self.programs {
            worker.write(program.start, &program.bytes);
        }
        Ok(())
    }

    /// Runs each placement's long segment once; more pages may be found by that.
    pub fn rehearse(&self, engine: &mut Engine, options: &Options) -> Result<Option<Failure>> {
        let segments: Vec<Segment> = self.pairs.iter().map(|p| p.0).collect();
        let schedule: Vec<_> = (0..segments.len()).map(|i| (i, 1)).collect();
        let (ended, _) = engine.run(&segments, &schedule)?;
        if ended == Ended::Done {
            return Ok(None);
        }
        Ok(Some(self.explained(&ended, options)))
    }

    fn explained(&self, ended: &Ended, options: &Options) -> Failure {
        let offset = match ended {
            Ended::Fault(f) | Ended::MapRefused(f) | Ended::TooManyPages(f) => f.offset,
            _ => None,
        };
        let holds = |p: &&Program| offset.is_some_and(|o| (p.start..p.end()).contains(&o));
        let program = self.programs.iter().find(holds).unwrap_or(&self.programs[0]);
        explain(ended, program, options.page_limit)
    }

    /// One pass over every placement: rounds until `rounds` of them were calm, or until it is
    /// plain that something else uses the core.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn pass(
        &self,
        engine: &mut Engine,
        options: &Options,
        rounds: usize,
        timed: &mut Timed,
    ) -> Result<Pass> {
        let mut values = Vec::new();
        for placement in 0..self.pairs.len() {
            let mut calm = Samples::default();
            for _ in 0..ATTEMPTS {
                let wanted = rounds - calm.long.len();
                match self.rounds(engine, placement, wanted)? {
                    Ok(ticks) => calm.add(&ticks, timed),
                    Err(ended) => return Ok(Pass::Failed(self.explained(&ended, options))),
                }
                if 4 * calm.long.len() >= 3 * rounds {
                    break;
                }
            }
            if 4 * calm.long.len() < 3 * rounds {
                return Ok(Pass::Contended);
            }
            timed.kept += calm.long.len();
            let cycles = trimmed_mean(&calm.long) - trimmed_mean(&calm.short);
            values.push(cycles / self.between);
        }
        timed.passes.push(median(&values));
        timed.batches.extend(values);
        Ok(Pass::Done)
    }

    /// The ticks of `count` rounds: sentinel, short run, long run, sentinel, and calibration
    /// chains in turn.
    fn rounds(
        &self,
        engine: &mut Engine,
        placement: usize,
        count: usize,
    ) -> Result<std::result::Result<Vec<Round>, Ended>> {
        let mut segments = engine.clock_segments().to_vec();
        let (long, short) = (segments.len(), segments.len() + 1);
        segments.extend([self.pairs[placement].0, self.pairs[placement].1]);
        let mut plan = Vec::new();
        let most = at::SCHEDULE_MAX / 8;
        let count = (count + WARM).min(most);
        for round in 0..count {
            plan.extend([4, short, long, 4, 0, 1]);
            if round % 4 == 3 {
                plan.extend([2, 3]);
            }
        }
        let dithered: Vec<_> =
            plan.iter().map(|s| (*s, 1 + (engine.random() % 100) as u16)).collect();
        let (ended, ticks) = engine.run(&segments, &dithered)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            return Ok(Err(ended));
        }
        let mut ticks = ticks.into_iter().map(f64::from);
        let mut next = || ticks.next().unwrap_or(f64::NAN);
        let mut all = Vec::with_capacity(count);
        for round in 0..count {
            let [before, short, long, behind, add_long, add_short] = [(); 6].map(|()| next());
            let multiply = (round % 4 == 3).then(|| (next(), next()));
            let calibration =
                Calibration { add: (add_long, add_short), multiply, sentinel: (before, behind) };
            all.push(Round { long, short, calibration });
        }
        all.drain(..WARM);
        Ok(Ok(all))
    }
}

/// Ticks of one round.
struct Round {
    long: f64,
    short: f64,
    calibration: Calibration,
}

/// Cycles of the calm rounds.
#[derive(Default)]
struct Samples {
    long: Vec<f64>,
    short: Vec<f64>,
}

impl Samples {
    /// Keeps the calm ones of `rounds`. Where few are, those few are lucky rather than calm.
    fn add(&mut self, rounds: &[Round], timed: &mut Timed) {
        let calibrations: Vec<Calibration> = rounds.iter().map(|r| r.calibration).collect();
        let ratio = match TscClock.cycles_per_tick(&calibrations) {
            Ok(ratio) => ratio,
            Err(reason) => return timed.void.push(reason),
        };
        let calm = TscClock.calm(&calibrations, ratio);
        let count = calm.iter().filter(|c| **c).count();
        if 3 * count < rounds.len() {
            timed.contended += rounds.len();
            return;
        }
        timed.contended += rounds.len() - count;
        for (round, _) in rounds.iter().zip(calm).filter(|(_, calm)| *calm) {
            self.long.push(round.long * ratio);
            self.short.push(round.short * ratio);
        }
    }
}
