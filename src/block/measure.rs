//! Timing: rounds of sentinel, long run, short run and calibration chains, in several placements
//! of the code and several passes; what is kept of them, and what they say.

use super::Options;
use super::clock::{Calibration, Clock as _, TscClock};
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
    counter: Option<u8>,
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
        explain(ended, program, options.pages_allowed())
    }

    /// One pass of `rounds` rounds over every placement, added to `timed`.
    pub fn pass(
        &self,
        engine: &mut Engine,
        options: &Options,
        rounds: usize,
        timed: &mut Timed,
    ) -> Result<Option<Failure>> {
        let mut segments = engine.clock_segments().to_vec();
        let first = segments.len();
        segments.extend(self.pairs.iter().flat_map(|p| [p.0, p.1]));
        let mut plan = Vec::new();
        let mut batches = Vec::new();
        for placement in 0..self.pairs.len() {
            for round in 0..rounds + WARM {
                let multiply = round % 4 == 2;
                let (long, short) = (first + 2 * placement, first + 2 * placement + 1);
                let mut entries = vec![4, long, short, 0, 1];
                if multiply {
                    entries.extend([2, 3]);
                }
                batches.push((placement, round, multiply, plan.len()));
                plan.extend(entries.into_iter().map(|s| (s, 1 + (engine.random() % 200) as u16)));
            }
        }
        let mut ticks = Vec::new();
        for part in plan.chunks(at::SCHEDULE_MAX) {
            let (ended, more) = engine.run(&segments, part)?;
            if ended != Ended::Done {
                return Ok(Some(self.explained(&ended, options)));
            }
            ticks.extend(more.into_iter().map(f64::from));
        }
        let samples: Vec<(usize, f64, f64, Calibration)> = batches
            .iter()
            .filter(|(_, round, ..)| *round >= WARM)
            .map(|(placement, _, multiply, i)| {
                let calibration = Calibration {
                    sentinel: ticks[*i],
                    add_long: ticks[i + 3],
                    add_short: ticks[i + 4],
                    multiply: multiply.then(|| (ticks[i + 5], ticks[i + 6])),
                };
                (*placement, ticks[i + 1], ticks[i + 2], calibration)
            })
            .collect();
        self.evaluate(&samples, timed);
        Ok(None)
    }

    fn evaluate(&self, samples: &[(usize, f64, f64, Calibration)], timed: &mut Timed) {
        let clock = TscClock;
        let rounds: Vec<Calibration> = samples.iter().map(|s| s.3).collect();
        let ratio = match clock.cycles_per_tick(&rounds) {
            Ok(ratio) => ratio,
            Err(reason) => return timed.void.push(reason),
        };
        let calm = clock.calm(&rounds, ratio);
        let mut values = Vec::new();
        for placement in 0..self.pairs.len() {
            let own: Vec<usize> =
                (0..samples.len()).filter(|i| samples[*i].0 == placement).collect();
            let kept: Vec<usize> = own.iter().copied().filter(|i| calm[*i]).collect();
            timed.contended += own.len() - kept.len();
            if kept.len() < own.len().div_ceil(2) || kept.len() < 4 {
                continue;
            }
            timed.kept += kept.len();
            let long: Vec<f64> = kept.iter().map(|i| samples[*i].1).collect();
            let short: Vec<f64> = kept.iter().map(|i| samples[*i].2).collect();
            values.push((trimmed_mean(&long) - trimmed_mean(&short)) * ratio / self.between);
        }
        if !values.is_empty() {
            timed.passes.push(median(&values));
            timed.batches.extend(values);
        }
    }
}
