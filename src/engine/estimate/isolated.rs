//! Loops and blocks measured in isolation: their data in the first cache, their branches predicted; why some are not.

use super::ask::Interrupt;
use super::pieces::{Function, Kind, Piece};
use crate::block::Measurer;
use crate::core_model::CoreModel;
use crate::loop_path::{body, decoded};
use bench::bound_names::{DEPENDENCY, FRONT_END, SLOTS, WIDTH};
use bench::{BlockMeasurer, Class, Measurement, NoPath, Options, Status};
use estimate::{BoundBy, Interval, Isolated, Reason};
use isa::code::{Block, NothingLeft};
use report::documents::estimate::Values;
use std::fmt;
use std::time::Duration;
use tma::{Cause, Error, Result as Outcome};

/// How long a measurement may wait for a core that nothing else uses.
const BUDGET: Duration = Duration::from_secs(1);
/// Longest path that is measured as a whole, in instructions.
const LONGEST: usize = 600;
/// Relative error of a loop's time in isolation against that in its program (docs/results/accuracy.md).
const LOOP_ERROR: f64 = 0.05;
/// Relative error of a path without its jumps, or of several.
const PATH_ERROR: f64 = 0.1;
/// Relative error of a block among others that run beside it.
pub(super) const BLOCK_ERROR: f64 = 0.3;
/// Further relative error of a measurement that is not stable.
const UNSTABLE_ERROR: f64 = 0.25;
/// Share of the time from which on a bound explains it.
const EXPLAINS: f64 = 0.9;
/// Cycles of a taken branch: current cores predict and fetch one a cycle or every second one.
const TAKEN: Interval = Interval { value: 1.0, low: 0.0, high: 2.0 };
/// Number of blocks that are measured for many.
const SAMPLE: usize = 5;

/// A piece in isolation: for one of its entries.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub evidence: Isolated,
    /// As in `tdtool.block/2`.
    pub bound: Option<Class>,
    pub values: Values,
}

/// Why a piece has no time in isolation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Unmeasured {
    /// It is not among the code with this share of the samples.
    Cold(f64),
    /// Its turn has not come yet.
    Waits,
    /// Others took the time that there is.
    NoTime,
    /// A signal came first.
    Interrupted,
    /// None of its blocks was counted.
    NoCounts,
    /// No block that stands for it could be measured.
    NoBlock,
    /// Too few of a sample of its blocks were measured.
    FewBlocks,
    /// No path through it was measured.
    NoPaths,
    /// A path through it is not one block.
    Path(NoPath),
    /// It cannot be decoded.
    Undecodable(Cause<Error>),
    /// Its measurement has no result, for this reason if one is known.
    NoResult(Option<Reason>),
    /// Others used the core all the time, or the clock changed: another time it may be measured.
    Disturbed(Option<Reason>),
    /// Neither with made-up values nor, for the second reason, with the program's own.
    Both(Box<Unmeasured>, Box<Uncaptured>),
}

/// Why a piece was not measured with the program's own values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Uncaptured {
    /// It is neither a loop nor a block.
    Several,
    /// It is a loop around others.
    Outer,
    /// Its code is not known as a whole.
    NoBytes,
    /// It cannot run elsewhere, or is no block.
    Code(Reason),
    /// Captures took the time that there is.
    NoTime,
    /// No execution was captured.
    NotReached(Cause<Error>),
    /// It touches this many cache lines.
    Lines(u64),
    /// It touches this many pages.
    Pages(usize),
    /// With its values it takes this many times as long as in the program, where executions overlap.
    Longer(f64),
    /// With its values, too, it has no time.
    Unmeasured(Unmeasured),
}

impl Unmeasured {
    /// Whether another measurement may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Disturbed(_) => true,
            Self::Both(why, own) => {
                let is_own = matches!(&**own, Uncaptured::Unmeasured(why) if why.is_transient());
                why.is_transient() || is_own
            }
            _ => false,
        }
    }
}

impl From<NoPath> for Unmeasured {
    fn from(why: NoPath) -> Self {
        Self::Path(why)
    }
}

impl From<Error> for Unmeasured {
    fn from(error: Error) -> Self {
        Self::Undecodable(error.into())
    }
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cold(share) => {
                let share = 100.0 * share;
                return write!(f, "it is not among the code with {share:.0} % of the samples");
            }
            Self::Path(why) => return why.fmt(f),
            Self::Undecodable(error) => return error.fmt(f),
            Self::NoResult(Some(why)) | Self::Disturbed(Some(why)) => return why.fmt(f),
            Self::Both(why, own) => {
                return write!(f, "{why}; with the program's own values: {own}");
            }
            Self::Waits => "not measured in isolation yet",
            Self::NoTime => "the time for that was over",
            Self::Interrupted => "interrupted before it was measured",
            Self::NoCounts => "its blocks have no counts",
            Self::NoBlock => "none of a sample of its blocks could be measured",
            Self::FewBlocks => "too few of a sample of its blocks were measured",
            Self::NoPaths => "no path was measured",
            Self::NoResult(None) | Self::Disturbed(None) => "no result",
        })
    }
}

impl fmt::Display for Uncaptured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SURELY: &str = "more than surely stay in any core's first";
        f.write_str(match self {
            Self::Code(why) => return why.fmt(f),
            Self::NotReached(error) => error.cause().unwrap_or(error.what()),
            Self::Lines(lines) => {
                return write!(
                    f,
                    "the captured iterations touch {lines} cache lines, {SURELY} cache"
                );
            }
            Self::Pages(pages) => {
                return write!(f, "the captured iterations touch {pages} pages, {SURELY} TLB");
            }
            Self::Unmeasured(why) => return why.fmt(f),
            Self::Longer(times) => {
                return write!(
                    f,
                    "with them it takes {times:.1} times as long as in the program, where executions overlap"
                );
            }
            Self::Several => "it is not one loop or block",
            Self::Outer => "it has inner loops",
            Self::NoBytes => "its bytes are not known",
            Self::NoTime => "the time for captures was over",
        })
    }
}

/// Share of all samples in the pieces that are measured in isolation.
pub(super) const MEASURED: f64 = 0.97;

/// A piece that was not measured.
pub(super) const NOT_MEASURED: Result<Found, Unmeasured> = Err(Unmeasured::Cold(MEASURED));

/// A measurer of pieces in isolation.
pub(super) struct Isolation<'a> {
    model: &'a CoreModel,
    /// Whether what bounds it is found by variants, too; else by the front end alone.
    explains: bool,
    interrupt: &'a Interrupt,
}

impl<'a> Isolation<'a> {
    /// On a core, until it is interrupted.
    pub fn new(model: &'a CoreModel, explains: bool, interrupt: &'a Interrupt) -> Self {
        Self { model, explains, interrupt }
    }

    /// Measures a piece.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn piece(&self, function: &Function, piece: &Piece) -> Outcome<Result<Found, Unmeasured>> {
        match piece.kind {
            Kind::Loop(_) => self.whole_loop(function, piece),
            Kind::Block => {
                let found = self.block(function, piece.blocks[0])?;
                Ok(found.map(|found| found.widened(BLOCK_ERROR)))
            }
            Kind::Rest => self.several(function, piece),
        }
    }

    fn whole_loop(&self, function: &Function, piece: &Piece) -> Outcome<Result<Found, Unmeasured>> {
        let length = |path: &super::pieces::Path| -> usize {
            path.blocks.iter().map(|block| function.instructions(*block).len()).sum()
        };
        if piece.paths.iter().any(|path| length(path) > LONGEST) {
            return self.several(function, piece);
        }
        if piece.blocks.len() == 1 {
            let found = self.block(function, piece.blocks[0])?;
            return Ok(found.map(|found| found.widened(LOOP_ERROR)));
        }
        let mut all = Vec::new();
        for path in &piece.paths {
            let bytes = match joined(function, &path.blocks) {
                Ok(bytes) => bytes,
                Err(why) => return Ok(Err(why.into())),
            };
            let start = function.range(path.blocks[0]).start;
            match self.bytes(&bytes, start)? {
                Ok(found) => all.push((path.share, found)),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(average(&all).map(|found| found.widened(PATH_ERROR)))
    }

    /// Measures a block.
    ///
    /// # Errors
    /// As [`Self::piece`].
    pub fn block(&self, function: &Function, block: usize) -> Outcome<Result<Found, Unmeasured>> {
        self.bytes(&function.bytes(block), function.range(block).start)
    }

    /// Some blocks of many: cycles for all their instructions by those of the sample.
    fn several(&self, function: &Function, piece: &Piece) -> Outcome<Result<Found, Unmeasured>> {
        let weight =
            |block: usize| function.executed(block) * function.instructions(block).len() as f64;
        let total: f64 = piece.blocks.iter().map(|block| weight(*block)).sum();
        if total <= 0.0 {
            return Ok(Err(Unmeasured::NoCounts));
        }
        let mut rates: Vec<f64> = Vec::new();
        for number in 0..SAMPLE {
            let wanted = total * (number as f64 + 0.5) / SAMPLE as f64;
            let mut sum = 0.0;
            let reached = piece.blocks.iter().find(|block| {
                sum += weight(**block);
                sum >= wanted
            });
            let Some(block) = reached else { continue };
            if let Ok(found) = self.block(function, *block)? {
                let instructions = function.instructions(*block).len() as f64;
                rates.push(found.evidence.cycles.value / instructions);
            }
        }
        rates.sort_by(f64::total_cmp);
        let (Some(low), Some(high)) = (rates.first(), rates.last()) else {
            return Ok(Err(Unmeasured::NoBlock));
        };
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let each = total / piece.entries.max(1.0);
        let cycles = Interval::new(mean * each, low * each, high * each).widened(BLOCK_ERROR);
        let evidence = Isolated { cycles, bound: BoundBy::Core, loads: 0.0, among: 0.0 };
        Ok(Ok(Found { evidence, bound: None, values: Values::MadeUp(None) }))
    }

    fn bytes(&self, bytes: &[u8], address: u64) -> Outcome<Result<Found, Unmeasured>> {
        let block = match Block::decode(bytes) {
            Ok(block) => block,
            Err(error) => return Ok(Err(error.into())),
        };
        let block = match block.without_exit() {
            Ok((block, _)) => block,
            Err(NothingLeft::Only(_)) => return Ok(Ok(Found::jump())),
            Err(why) => return Ok(Err(Unmeasured::NoResult(Some(Reason::given(why))))),
        };
        let (address, progress) = (Some(address), self.interrupt.measurement.clone());
        let found = match self.explains {
            true => {
                let options = Options { budget: BUDGET, address, progress, ..Options::default() };
                Measurer::new(options, self.model).measure(&block, false)?
            }
            false => BlockMeasurer::new(Options {
                explain: true,
                budget: BUDGET / 2,
                address,
                core: self.model.core.clone(),
                progress,
                ..Options::quick()
            })
            .measure(&block)?,
        };
        Ok(of(&found))
    }
}

impl Found {
    /// A block of a call, jump or return only.
    fn jump() -> Self {
        let evidence = Isolated { cycles: TAKEN, bound: BoundBy::FrontEnd, loads: 0.0, among: 0.0 };
        Self { evidence, bound: None, values: Values::MadeUp(None) }
    }

    fn widened(mut self, error: f64) -> Self {
        self.evidence.cycles = self.evidence.cycles.widened(error);
        self
    }
}

/// The instructions of several blocks as one, without the jumps between them.
fn joined(function: &Function, blocks: &[usize]) -> Result<Vec<u8>, NoPath> {
    let part = |block: &usize| (function.range(*block).start, function.bytes(*block));
    let parts: Vec<(u64, Vec<u8>)> = blocks.iter().map(part).collect();
    let all = decoded(&parts)?;
    let mut lines: Vec<(u64, &isa::code::Inst)> = Vec::new();
    for block in blocks {
        let own = function.instructions(*block).iter();
        lines.extend(own.filter_map(|(at, _)| Some((*at, all.get(at)?))));
    }
    body(&lines, parts[0].0)
}

/// Several paths by their shares: the least and most of them are its interval.
fn average(all: &[(f64, Found)]) -> Result<Found, Unmeasured> {
    let share: f64 = all.iter().map(|(share, _)| share).sum();
    let most = all.first().ok_or(Unmeasured::NoPaths)?;
    let cycles =
        |of: fn(&Interval) -> f64| all.iter().map(move |(_, found)| of(&found.evidence.cycles));
    let value =
        all.iter().map(|(share, found)| share * found.evidence.cycles.value).sum::<f64>() / share;
    let (low, high) = match all.len() {
        1 => (most.1.evidence.cycles.low, most.1.evidence.cycles.high),
        _ => (
            cycles(|one| one.low).fold(f64::INFINITY, f64::min),
            cycles(|one| one.high).fold(0.0, f64::max),
        ),
    };
    let evidence = Isolated { cycles: Interval::new(value, low, high), ..most.1.evidence.clone() };
    Ok(Found { evidence, ..most.1.clone() })
}

/// The share of what bounds a piece that loads wait for L1 or for stores; `of_chain`: of its loop-carried dependency.
pub(super) fn loads(bound: Option<Class>, of_chain: f64) -> f64 {
    match bound {
        Some(Class::StoreForwarding | Class::L1Access) => 1.0,
        Some(Class::Dependency) => of_chain,
        _ => 0.0,
    }
}

/// The time and bound of a measurement.
pub(super) fn of(found: &Measurement) -> Result<Found, Unmeasured> {
    let why = || {
        let reason = found.reason.clone().map(Reason::given);
        match found.status {
            // What runs, and has no time.
            Status::Unstable => Unmeasured::Disturbed(reason),
            _ => Unmeasured::NoResult(reason),
        }
    };
    let throughput = found.throughput.as_ref().ok_or_else(why)?;
    let mut cycles = Interval::new(throughput.cycles, throughput.low, throughput.high);
    if found.status != Status::Ok {
        cycles = cycles.widened(UNSTABLE_ERROR);
    }
    let reaches = |name: &str| {
        let of = found.bounds.iter().filter(|bound| bound.name == name && !bound.refuted);
        of.map(|bound| bound.cycles).fold(0.0, f64::max) >= EXPLAINS * throughput.cycles
    };
    let bound = match found.hierarchy.bound() {
        Some(Class::IssueWidth) => BoundBy::IssueWidth,
        Some(Class::FrontEnd) => BoundBy::FrontEnd,
        Some(Class::Ports | Class::Dependency | Class::StoreForwarding | Class::L1Access) => {
            BoundBy::Core
        }
        // Whatever it is, it is behind what delivers and retires instructions.
        _ if ![FRONT_END, SLOTS, WIDTH].into_iter().any(reaches) => BoundBy::Core,
        _ => BoundBy::Unknown,
    };
    let chain = found.bounds.iter().find(|bound| bound.name == DEPENDENCY);
    let loads = loads(found.hierarchy.bound(), chain.map_or(0.0, |chain| chain.loads));
    Ok(Found {
        evidence: Isolated { cycles, bound, loads, among: 0.0 },
        bound: found.hierarchy.bound(),
        values: Values::MadeUp(None),
    })
}
