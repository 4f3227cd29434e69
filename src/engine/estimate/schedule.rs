//! Chooses which pieces are measured in isolation, and measures them with the program's own values: registers and
//! memory where a further run reaches them.

use super::ask::{Interrupt, Progress, Shared};
use super::isolated::{Found, Isolation, MEASURED, Uncaptured, Unmeasured, of};
use super::known::{Isolations, Known};
use super::pieces::{Function, Kind, Piece, PieceOf};
use crate::block::Measurer;
use crate::captured::{Snapshot, Subject, apply, of_command};
use crate::core_model::CoreModel;
use crate::hot::hottest::Hottest;
use crate::left::Left;
use bench::Options;
use estimate::{Isolated, Reason};
use isa::code::Block;
use isa::program::Around;
use pmu::Command;
use probe::capture::Limits;
use report::documents::Purpose;
use report::documents::estimate::{Run, Values};
use std::collections::VecDeque;
use std::fmt::Display;
use std::path::Path;
use std::time::{Duration, Instant};
use tma::Result as Outcome;

/// Share of the run's samples in each of these at least.
const LEAST: f64 = 0.003;
/// Share of the run's samples from which on all variants that tell a piece's bound are measured.
const EXPLAINED: f64 = 0.04;
/// Time of all measurements at most, or that of the sampled run if that is longer.
pub(super) const TIME: Duration = Duration::from_secs(30);

/// How often a piece is measured that others disturb.
const TRIES: usize = 3;
/// Time for one of them that is explained, about at most.
const LONGEST: Duration = Duration::from_secs(4);

/// Results of measuring in isolation.
pub(super) struct Alone {
    /// By function and piece.
    pub measured: Isolations,
    /// With the program's values.
    pub own: OwnValues,
    /// How many pieces were not measured because of a signal.
    pub interrupted: usize,
}

/// Measures the hottest pieces of a run until it is interrupted. `after` each of them it is called with all that is measured.
///
/// # Errors
/// The sandbox cannot be started.
pub(super) fn isolation(
    known: &Known,
    progress: &mut Progress,
    interrupt: &Interrupt,
    after: &mut dyn FnMut(&Isolations),
) -> Outcome<Alone> {
    let Known { ask, functions, .. } = *known;
    let Shared { samples, cycles, .. } = *known.shared;
    let seconds = progress.times.plain;
    let mut own = OwnValues::new(&ask.command, seconds, progress.budget() / 2);
    let order = hottest(functions, samples);
    let begin = Instant::now();
    // Half of a budget is left for runs.
    let most = TIME.max(Duration::from_secs_f64(seconds)).min(progress.budget() / 2);
    let (mut measured, mut interrupted) = (Isolations::new(), 0);
    let planned = progress.planned;
    let is_hot = |(at, piece): &(usize, usize)| {
        let own: &Piece = &functions[*at].pieces[*piece];
        own.samples as f64 >= EXPLAINED * samples as f64 && most >= LONGEST
    };
    let left = |number: usize| Left {
        isolated: order.len() - number,
        explained: order[number..].iter().filter(|of| is_hot(of)).count(),
        ..planned
    };
    progress.plan(&left(0).words(progress.times()), left(0));
    // Others use the core for some time: what they disturb is measured again after all else.
    let mut queue: VecDeque<((usize, usize), usize)> =
        order.iter().map(|piece| (*piece, 1)).collect();
    let mut done = 0;
    while let Some(((at, piece), tries)) = &queue.pop_front() {
        let number = done.min(order.len() - 1);
        done += 1;
        if begin.elapsed() > most {
            measured.entry((*at, *piece)).or_insert(Err(Unmeasured::NoTime));
            continue;
        }
        if interrupt.is_set() {
            interrupted += 1;
            measured.insert((*at, *piece), Err(Unmeasured::Interrupted));
            continue;
        }
        progress.begin_apart(
            &format!("measuring {} of {} in isolation", number + 1, order.len()),
            left(number),
        );
        let function = &functions[*at];
        let piece_of = PieceOf { function, piece: &function.pieces[*piece] };
        let is_hot = is_hot(&(*at, *piece)) && begin.elapsed() + LONGEST <= most;
        let mut found =
            Isolation::new(&ask.model, is_hot, interrupt).piece(function, piece_of.piece)?;
        let Piece { samples: own_samples, entries, .. } = *piece_of.piece;
        let each = cycles * own_samples as f64 / (samples as f64 * entries.max(1.0));
        let has_runs = ask.process.is_none();
        if is_hot && has_runs && matter(piece_of, &found, each) && !interrupt.is_set() {
            let made_up = MadeUp { found, in_program: each };
            found = own.measured(&ask.model, piece_of, made_up, interrupt)?;
        }
        if interrupt.is_set() && found.is_err() {
            interrupted += 1;
            found = Err(Unmeasured::Interrupted);
        }
        let is_transient = found.as_ref().is_err_and(Unmeasured::is_transient);
        if is_transient && *tries < TRIES {
            queue.push_back(((*at, *piece), tries + 1));
        }
        measured.insert((*at, *piece), found);
        after(&measured);
    }
    Ok(Alone { measured, own, interrupted })
}

/// About how many pieces are measured, and explained, before counts say where loops are.
pub(super) fn number(hot: &Hottest) -> (usize, usize) {
    let number = |share: f64| {
        let blocks = hot.functions.iter().flat_map(|one| &one.blocks);
        blocks.filter(|(_, own)| *own as f64 >= share * hot.samples as f64).count()
    };
    (number(LEAST), number(EXPLAINED))
}

/// The pieces to measure, hottest first: function and piece.
fn hottest(functions: &[Function], samples: u64) -> Vec<(usize, usize)> {
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        let pieces = function.pieces.iter().enumerate();
        order.extend(pieces.map(|(number, piece)| (piece.samples, at, number)));
    }
    order.sort_by(|a, b| b.cmp(a));
    let all: u64 = order.iter().map(|(own, ..)| own).sum();
    let mut held = 0;
    let is_wanted = |(own, ..): &&(u64, usize, usize)| {
        let before = held as f64;
        held += own;
        before < MEASURED * all as f64 && *own as f64 >= LEAST * samples as f64
    };
    order.iter().take_while(is_wanted).map(|(_, at, number)| (*at, *number)).collect()
}

/// Longest time until a run reaches the code, after which it is given up: this multiple of the first run's, plus
/// seconds.
const FIRST_ENTRY: (f64, f64) = (1.5, 1.0);
/// How long entries are counted from the first one on.
const ENTRIES: Duration = Duration::from_millis(300);
/// How long a measurement may wait for a core that nothing else uses.
const BUDGET: Duration = Duration::from_secs(1);
/// From this multiple of the program's own time on, a measurement with made-up values is of other work.
const SLOWER: f64 = 1.1;
/// Relative error of other executions than the captured one.
const OTHER_RUNS_ERROR: f64 = 0.1;
/// Time of all captures at most, as a multiple of the first run's.
const MOST: f64 = 1.0;
/// Seconds of all captures at most, if that is more.
const LEAST_SECONDS: f64 = 3.0;
/// Cache lines and pages of the captured iterations that the first cache and its TLB hold: with more, time in
/// isolation would be time of misses. The smallest of current cores: 512 lines and 64 pages, a half of them.
const LINES: u64 = 256;
const PAGES: usize = 32;

/// Captures of one command.
pub(super) struct OwnValues {
    command: Command,
    first_entry: Duration,
    left: Duration,
    /// How many runs there were, and what they took.
    runs: usize,
    spent: Duration,
}

/// A measurement with made-up values, and the cycles of an entry in the program.
pub(super) struct MadeUp {
    pub found: Result<Found, Unmeasured>,
    pub in_program: f64,
}

/// A block with its values, ready to be measured.
struct Captured {
    block: Block,
    options: Options,
}

/// Whether other values may take another time: where the code took more than `cycles`, the program's own, in isolation,
/// has divisions, or several paths to decide on.
fn matter(at: PieceOf, made_up: &Result<Found, Unmeasured>, cycles: f64) -> bool {
    let is_slower = match made_up {
        Ok(found) => found.evidence.cycles.low > SLOWER * cycles,
        Err(_) => true,
    };
    is_slower || at.piece.paths.len() > 1 || at.divides()
}

/// Whether the captured execution takes longer than those of the program, which overlap, and than with made-up values.
fn is_longer(own: &Isolated, made_up: &Isolated, in_program: f64) -> bool {
    own.cycles.low > SLOWER * in_program && own.cycles.value > made_up.cycles.value
}

impl OwnValues {
    /// For a command whose first run took this many seconds; captures take `most` in all.
    pub fn new(command: &Command, seconds: f64, most: Duration) -> Self {
        Self {
            // A cut-off output does not belong where the first one went.
            command: Command { stdout: pmu::Stdout::Dropped, ..command.clone() },
            first_entry: Duration::from_secs_f64(FIRST_ENTRY.0 * seconds + FIRST_ENTRY.1),
            left: Duration::from_secs_f64((MOST * seconds).max(LEAST_SECONDS)).min(most),
            runs: 0,
            spent: Duration::ZERO,
        }
    }

    /// The runs, as one row.
    pub fn spent(&self) -> Option<Run> {
        let seconds = self.spent.as_secs_f64();
        (self.runs > 0).then_some(Run { run: Purpose::EndedForValues(self.runs), seconds })
    }

    /// A piece that was measured with made-up values, with its own, if they can be captured.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn measured(
        &mut self,
        model: &CoreModel,
        at: PieceOf,
        made_up: MadeUp,
        interrupt: &Interrupt,
    ) -> Outcome<Result<Found, Unmeasured>> {
        let MadeUp { found: made_up, in_program } = made_up;
        let without = |why: Uncaptured| match made_up.clone() {
            Ok(found) => Ok(Found { values: Values::MadeUp(Some(why.to_string())), ..found }),
            Err(reason) => Err(Unmeasured::Both(reason.into(), why.into())),
        };
        let Captured { block, options } = match self.of(at, interrupt) {
            Ok(captured) => captured,
            Err(why) => return Ok(without(why)),
        };
        let measurement = Measurer::new(options, model).measure(&block, false)?;
        Ok(match (of(&measurement), &made_up) {
            (Err(why), _) => without(Uncaptured::Unmeasured(why)),
            (Ok(own), Ok(known)) if is_longer(&own.evidence, &known.evidence, in_program) => {
                without(Uncaptured::Longer(own.evidence.cycles.value / in_program))
            }
            // The bound of several paths is known for the most frequent one only.
            (Ok(own), Ok(known)) if own.bound.is_none() => {
                let mut found = known.clone();
                found.evidence.cycles = own.evidence.cycles.widened(OTHER_RUNS_ERROR);
                Ok(Found { values: Values::Own, ..found })
            }
            (Ok(own), _) => Ok(Found {
                values: Values::Own,
                evidence: Isolated {
                    cycles: own.evidence.cycles.widened(OTHER_RUNS_ERROR),
                    ..own.evidence
                },
                ..own
            }),
        })
    }

    /// A piece with its values; or why there are none.
    fn of(&mut self, at: PieceOf, interrupt: &Interrupt) -> Result<Captured, Uncaptured> {
        let PieceOf { function, piece } = at;
        let head = match piece.kind {
            Kind::Rest => return Err(Uncaptured::Several),
            Kind::Block => piece.blocks[0],
            Kind::Loop(number) => {
                let of = &function.flow.loops[number];
                if !function.is_innermost(piece, of) {
                    return Err(Uncaptured::Outer);
                }
                of.head
            }
        };
        let head = function.range(head);
        let (code, block) = code_of(function, piece, &head)?;
        bench::can_be_moved(&code, head.start).map_err(refused)?;
        let head = head.start..head.start + block.bytes.len() as u64;
        if self.left.is_zero() {
            return Err(Uncaptured::NoTime);
        }
        let region = code.iter().map(|(start, bytes)| *start..start + bytes.len() as u64).collect();
        let around = Around { head, region, blocks: piece.blocks.len() };
        let snapshot = self.capture(Path::new(&function.module), &around, interrupt)?;
        let progress = interrupt.measurement.clone();
        let mut options = Options { budget: BUDGET, progress, ..Options::default() };
        let subject = Subject { length: block.bytes.len(), code, whole: piece.blocks.len() > 1 };
        apply(&snapshot, subject, &mut options);
        Ok(Captured { block, options })
    }

    fn capture(
        &mut self,
        file: &Path,
        around: &Around,
        interrupt: &Interrupt,
    ) -> Result<Snapshot, Uncaptured> {
        let begin = Instant::now();
        let first_entry = self.first_entry.min(self.left);
        let limits = Limits { first_entry, time: ENTRIES, ..Limits::default() };
        let found = of_command(file, around, &self.command, limits, interrupt.capture.clone());
        self.runs += 1;
        self.spent += begin.elapsed();
        self.left = self.left.saturating_sub(begin.elapsed());
        let found = found.map_err(|error| Uncaptured::NotReached(error.into()))?;
        let lines = found.walk.lines.unwrap_or(0);
        let pages = found.pages.0.len().saturating_sub(found.walk.nearby.len());
        match (lines > LINES, pages > PAGES) {
            (true, _) => Err(Uncaptured::Lines(lines)),
            (_, true) => Err(Uncaptured::Pages(pages)),
            _ => Ok(found),
        }
    }
}

fn refused(why: impl Display + Send + Sync + 'static) -> Uncaptured {
    Uncaptured::Code(Reason::given(why))
}

/// Code by p_vaddr.
type CodeAt = Vec<(u64, Vec<u8>)>;

/// What runs of a piece, and the block that it begins with: a block without the return or call that leaves it.
fn code_of(
    function: &Function,
    piece: &Piece,
    head: &std::ops::Range<u64>,
) -> Result<(CodeAt, Block), Uncaptured> {
    if piece.kind == Kind::Block {
        let whole = Block::decode(&function.bytes(piece.blocks[0])).map_err(refused)?;
        let block = whole.without_exit().map_err(refused)?.0;
        return Ok((vec![(head.start, block.bytes.clone())], block));
    }
    let code = code(function, piece.blocks.clone());
    let bytes = piece_of(&code, head).ok_or(Uncaptured::NoBytes)?;
    let block = Block::decode(bytes).map_err(refused)?;
    Ok((code, block))
}

/// The code of blocks: p_vaddr and bytes of each run of adjacent ones.
fn code(function: &Function, mut blocks: Vec<usize>) -> CodeAt {
    blocks.sort_unstable_by_key(|block| function.range(*block).start);
    let mut parts = CodeAt::new();
    for block in blocks {
        let start = function.range(block).start;
        match parts.last_mut().filter(|(from, all)| from + all.len() as u64 == start) {
            Some((_, all)) => all.extend(function.bytes(block)),
            None => parts.push((start, function.bytes(block))),
        }
    }
    parts
}

/// The bytes of a range.
fn piece_of<'a>(code: &'a [(u64, Vec<u8>)], range: &std::ops::Range<u64>) -> Option<&'a [u8]> {
    code.iter().find_map(|(start, bytes)| {
        let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
        bytes.get(from..from + usize::try_from(range.end - range.start).ok()?)
    })
}
