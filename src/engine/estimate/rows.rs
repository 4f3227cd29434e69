//! Measurements → the document and its rows: one function for live and for replayed evidence, so that both say the
//! same.

use super::ask::Functions;
use super::contended;
use super::evidence::{Context, NO_COST};
use super::footprint::Footprint;
use super::groups::{Group, Groups, Waits, divide_calls, group_time};
use super::isolated::{Found, NOT_MEASURED, Unmeasured};
use super::known::{Isolations, Known, Measured, Recorded};
use super::listing::{self, Listed};
use super::pieces::{Function, Kind, PieceOf};
use super::pooled;
use super::words::{Grounds, Place, Runs, next, sentence};
use estimate::{Evidence, Interval, Parts, Reason, Sampled, bottleneck};
use report::documents::estimate::{Bottleneck, Estimate, Row, Work};

/// The limits of counts of a process.
const WINDOWS: &str = "counts are of windows in which probes slow the process: without them entries may be up to \
                       40 % more, and still more where others used the processor; code is measured in isolation with made-up values";

/// Enters all that follows from it, with notes on the numbers; the groups that the time was divided by. `code` lists
/// the instructions of a function.
pub(super) fn evaluate(
    known: &Known,
    document: &mut Estimate,
    of: Measured,
    code: Listed<'_>,
) -> Groups {
    let (context, groups) = enter(document, known, of, code);
    document.notes.extend(notes(&context, document));
    document.notes.extend(contended::notes(&context, known.found.kernel));
    document.contended_lines = contended::lines(&context, &document.program.parts);
    document.assumed.extend(assumed(&context, of.recorded));
    if known.ask.process.is_some() {
        document.notes.push(WINDOWS.to_owned());
    }
    groups
}

/// Relative error of entries in windows, and where two runs differ: a program that runs for a given time does less with
/// probes.
const ENTRIES_ERROR: f64 = 0.4;
/// Up to this relative difference two runs did the same work: those that the clock ends differ by more, as other processes
/// do.
const ALIKE: f64 = 1e-4;

/// The relative error of entries.
fn entries_error(document: &Estimate, known: &Known) -> f64 {
    let is_alike = document.differs.is_some_and(|differs| differs <= ALIKE);
    match document.deterministic {
        _ if known.ask.process.is_some() => ENTRIES_ERROR,
        Some(false) if is_alike => ALIKE,
        _ if document.work.is_some() => document.work.map_or(0.0, |work| work.error),
        Some(false) => ENTRIES_ERROR,
        Some(true) | None => 0.0,
    }
}

/// Enters the program, its functions, loops and blocks.
pub(super) fn enter<'c, 'a: 'c>(
    document: &mut Estimate,
    known: &Known<'a>,
    measured: Measured<'c, '_>,
    code: Listed<'_>,
) -> (Context<'c>, Groups) {
    let Measured { counted, isolated, recorded: of } = measured;
    let first = known.shared.core.l1_code.map(|cache| cache.bytes());
    let footprint = match &of.tail {
        Some(tail) => Footprint::with(tail.footprint, first),
        None => Footprint::of(known.functions.iter().map(|one| (1.0, one)), first),
    };
    let mut context = Context {
        branches: of.recorded.branches,
        branches_wanted: of.wanted.branches,
        entries_error: entries_error(document, known),
        footprint,
        loads_of: of.places.clone(),
        tail: of.tail.clone(),
        pinned: of.pinned.clone(),
        ..Context::new(known.shared, counted)
    };
    context.callee_costs = divide_calls(&context, known.functions, isolated);
    let groups = group_time(&context, known.functions, isolated, Waits::Modelled);
    Rows { known, isolated, context: &context }.enter(document, &groups);
    listing::enter(document, code, &known.ask.model, &context, of.recorded.loads);
    if known.command.is_empty() {
        known.name.clone_into(&mut document.program.name);
    }
    (context, groups)
}

/// Limits of the numbers.
fn notes(context: &Context, document: &Estimate) -> Vec<String> {
    let ghz = context.shared.clock.ghz;
    let clock = context.shared.clock.reason.as_ref().map(|why| {
        format!(
            "the core clock is not known, so shares of cycles are wide: taken to be the {ghz:.2} GHz of the \
             time-stamp counter, or up to twice that: {why}"
        )
    });
    let work = document.work.filter(|work| (work.ratio - 1.0).abs() > work.error);
    let work = work.map(|Work { ratio, error }| {
        format!(
            "without probes a run does {ratio:.1} times the work of the counted one (± {:.0} %), as one that a clock ends; \
             entries are of the counted one, and shares allow for that",
            100.0 * error
        )
    });
    let differs = (document.deterministic == Some(false)).then(|| {
        "the runs differ: some entered blocks more often than others; shares are averages over all of them"
            .to_owned()
    });
    clock.into_iter().chain(work.or(differs)).collect()
}

/// Assumptions.
fn assumed(context: &Context, Recorded { recorded, is_explained, .. }: &Recorded) -> Vec<String> {
    let mut all = Vec::new();
    if context.shared.clock.reason.is_none() {
        let ghz = context.shared.clock.ghz;
        all.push(format!("core clock {ghz:.2} GHz, as an add chain showed after the sampled run"));
    }
    if context.shared.width.error() > 0.0 {
        let Interval { value, low, high } = context.shared.width;
        let why = match context.shared.core.stated_width() {
            Some(stated) => format!(
                "its table states {stated}, and no attempt of its self-test did more than {low:.0}"
            ),
            None => "no table describes it, and its self-test saw contention only".to_owned(),
        };
        all.push(format!(
            "the issue width of this core is not known ({why}): {value:.0} a cycle, {low:.0} to {high:.0}; `tdtool doctor --self-test` \
             measures it again"
        ));
    }
    if context.shared.ports.is_none() {
        all.push(
            "no table has the µops of this core's instructions: each is taken for one slot, a comparison and its branch for one, and up to 20 % more"
                .to_owned(),
        );
    }
    if recorded.branches {
        all.push(context.penalty().map_or(NO_COST.to_owned(), |cycles| format!(
            "a misprediction costs {cycles:.0} cycles by the self-test where its branch waits for a load, and as \
             `tdtool count --branches` shows for others"
        )));
    }
    all.extend(context.tail.as_ref().map(pooled::assumed));
    if *is_explained {
        all.push("loads were not recorded: nothing is left that they could explain".to_owned());
    }
    all
}

/// Functions that were not analysed are named from this share on.
const NAMED: f64 = 0.01;

/// Pieces analysed as one, or the samples of a function outside of its pieces.
struct Placed<'a> {
    samples: f64,
    parts: Sampled,
    /// [`Group::joined`].
    joined: Vec<Evidence>,
    /// Where it is, if that is one place.
    place: Option<Place<'a>>,
    grounds: Grounds,
}

/// The grounds of a piece are said of the whole where it has more than this share of the bottleneck.
const MOST: f64 = 0.5;

/// The parts of several pieces together.
fn sum(all: &[Placed]) -> Parts {
    Sampled::sum(all.iter().map(|one| (one.samples, &one.parts)))
}

/// Pieces that mispredicted calls join are one, at the place of most of these: how much of the cost is sampled where does
/// not matter to their sum.
fn joined(all: Vec<Placed>, clock: f64) -> Vec<Placed> {
    let (mut joined, mut all): (Vec<Placed>, Vec<Placed>) =
        all.into_iter().partition(|one| !one.joined.is_empty());
    let wrong = |one: &Placed| -> f64 {
        one.joined.iter().map(|evidence| evidence.mispredicted.cycles.value).sum()
    };
    joined.sort_by(|a, b| wrong(b).total_cmp(&wrong(a)));
    if let Some(first) = joined.first() {
        let place = first.place;
        let samples = joined.iter().map(|one| one.samples).sum();
        let evidence: Vec<Evidence> = joined.into_iter().flat_map(|one| one.joined).collect();
        let (parts, grounds) = (Sampled::divided(&evidence, clock), Grounds::default());
        all.push(Placed { samples, parts, joined: Vec::new(), place, grounds });
    }
    all
}

/// The row of all, with the place that has most of their leading part; what is in isolation is that place's alone.
fn whole(all: &[Placed]) -> Row {
    let parts = sum(all);
    let part = parts.leading();
    let amount = |one: &Placed| one.samples * one.parts.parts.of(part).value;
    let most = all.iter().max_by(|a, b| amount(a).total_cmp(&amount(b)));
    let is_most = |one: &&Placed| amount(one) > MOST * all.iter().map(amount).sum::<f64>();
    let grounds = most.filter(is_most).map(|one| one.grounds.clone()).unwrap_or_default();
    let grounds = Grounds { memory: None, ..grounds };
    Row { bound: None, ..row(&parts, most.and_then(|one| one.place.as_ref()), grounds) }
}

/// Everything that the rows are made of.
struct Rows<'k, 'a> {
    known: &'k Known<'a>,
    isolated: &'k Isolations,
    context: &'k Context<'k>,
}

impl Rows<'_, '_> {
    /// Enters everything in the document that is of code.
    fn enter(&self, document: &mut Estimate, groups: &Groups) {
        let Known { found: hot, functions, .. } = *self.known;
        let samples = self.context.shared.samples.max(1) as f64;
        let runs = self.runs();
        let mut all: Vec<Placed> = Vec::new();
        for (at, (function, groups)) in functions.iter().zip(groups).enumerate() {
            let of = &hot.hot.functions[function.number];
            let mut own = self.function(document, at, groups);
            let outside = of.share * samples - own.iter().map(|one| one.samples).sum::<f64>();
            let (module, start) = (function.module.as_str(), of.range.start);
            if outside > 0.5 {
                let name = of.name.as_str();
                let place = Place { module, name, function: start, start, is_loop: false, runs };
                let place = Some(place);
                let parts =
                    Parts::unknown(Reason::given("samples outside of its known blocks")).into();
                let (joined, grounds) = (Vec::new(), Grounds::default());
                own.push(Placed { samples: outside, parts, joined, place, grounds });
            }
            document.functions.push(Row {
                name: of.name.clone(),
                module: function.module.clone(),
                start: Some(of.range.start.into()),
                end: Some(of.range.end.into()),
                share: of.share,
                ..whole(&own)
            });
            all.extend(own);
        }
        all.extend(self.tail(document));
        document.covered = all.iter().map(|one| one.samples).sum::<f64>() / samples;
        let all = joined(all, self.context.shared.clock.error);
        // That of a process is known to the caller.
        let name = match runs {
            Runs::Command(command) => command.join(" "),
            Runs::Process(_) => String::new(),
        };
        document.program = Row { name, share: document.covered, ..whole(&all) };
        others(document, hot, functions, "code that was not analysed");
        for rows in [&mut document.functions, &mut document.loops, &mut document.blocks] {
            rows.sort_by(|a, b| b.share.total_cmp(&a.share));
        }
        // A loop of one block is that block, too.
        let single = document.loops.iter().filter(|row| is_single(row, functions));
        document.blocks.extend(single.cloned().collect::<Vec<_>>());
        document.blocks.sort_by(|a, b| b.share.total_cmp(&a.share));
    }

    /// Enters the loops and blocks of the function with number `at`; its groups with their places.
    fn function(&self, document: &mut Estimate, at: usize, groups: &[Group]) -> Vec<Placed<'_>> {
        let Known { found: hot, functions, .. } = *self.known;
        let function = &functions[at];
        let of = &hot.hot.functions[function.number];
        let mut all = Vec::new();
        for group in groups {
            let mut first = None;
            for (number, parts) in group.pieces.iter().zip(&group.of_pieces) {
                let piece_of = PieceOf { function, piece: &function.pieces[*number] };
                let found = self.isolated.get(&(at, *number)).unwrap_or(&NOT_MEASURED);
                let place = place(piece_of, &of.name, of.range.start, self.runs());
                let grounds = Grounds::of(piece_of, found, self.context);
                let common = row(parts, Some(&place), grounds.clone());
                let common = Row { name: of.name.clone(), ..common };
                if let Some(row) = piece_row(piece_of, found, common, self.context) {
                    match piece_of.piece.kind {
                        Kind::Loop(_) => document.loops.push(row),
                        _ => document.blocks.push(row),
                    }
                }
                first.get_or_insert((place, grounds));
            }
            let Some((place, grounds)) = first else { continue };
            // No block speaks for several.
            let grounds = if group.pieces.len() == 1 { grounds } else { Grounds::default() };
            let (parts, joined, place) = (group.parts.clone(), group.joined.clone(), Some(place));
            all.push(Placed { samples: group.samples, parts, joined, place, grounds });
        }
        all
    }

    /// Enters the functions with few samples each.
    fn tail(&self, document: &mut Estimate) -> Option<Placed<'_>> {
        let tail = self.context.tail.as_ref()?;
        let clock = self.context.shared.clock.error;
        let parts = Sampled::divided(&pooled::evidence(tail, self.context), clock);
        let (joined, grounds) = (Vec::new(), Grounds::default());
        let one = Placed { samples: tail.samples, parts, joined, place: None, grounds };
        document.functions.push(Row {
            name: pooled::name(tail),
            share: tail.samples / self.context.shared.samples.max(1) as f64,
            ..whole(std::slice::from_ref(&one))
        });
        Some(one)
    }

    fn runs(&self) -> Runs<'_> {
        match self.known.ask.process {
            Some((pid, _)) if self.known.command.is_empty() => Runs::Process(pid),
            _ => Runs::Command(self.known.command),
        }
    }
}

/// The document where nothing is known of any code.
pub(super) fn unknown(document: &mut Estimate, hot: &Functions, why: &str) {
    others(document, hot, &[], why);
    document.functions.sort_by(|a, b| b.share.total_cmp(&a.share));
    document.program = unknown_row("", 0.0, why);
}

/// The rows of the kernel and of code that was not analysed: hot functions each for itself.
fn others(document: &mut Estimate, hot: &Functions, functions: &[Function], why: &str) {
    if hot.kernel > 0.0 {
        let why = "the kernel's time is not analysed";
        document.functions.push(unknown_row("[kernel]", hot.kernel, why));
    }
    let mut left = 1.0 - document.covered - hot.kernel;
    for (number, of) in hot.hot.functions.iter().enumerate() {
        let is_known = functions.iter().any(|function| function.number == number);
        if !is_known && of.share >= NAMED {
            left -= of.share;
            let own = of.gap.as_deref().unwrap_or("its control flow is not known");
            let why = if functions.is_empty() { why } else { own };
            let module = of.path.display().to_string();
            document.functions.push(Row { module, ..unknown_row(&of.name, of.share, why) });
        }
    }
    if left > 0.0005 {
        document.functions.push(unknown_row("[not covered]", left, why));
    }
}

fn unknown_row(name: &str, share: f64, why: &str) -> Row {
    let parts = Parts::unknown(Reason::given(why.to_owned()));
    Row {
        name: name.to_owned(),
        share,
        sentence: sentence(&parts, None, &Grounds::default()),
        parts,
        ..Row::default()
    }
}

fn is_single(row: &Row, functions: &[Function]) -> bool {
    functions.iter().filter(|function| function.module == row.module).any(|function| {
        let mut blocks = function.flow.blocks.iter();
        blocks.any(|block| row.range() == Some(block.start..block.end))
    })
}

/// Where a piece of a function that begins at an address is.
fn place<'a>(at: PieceOf<'a>, name: &'a str, start_of_function: u64, runs: Runs<'a>) -> Place<'a> {
    Place {
        module: &at.function.module,
        name,
        function: start_of_function,
        start: at.start(),
        is_loop: matches!(at.piece.kind, Kind::Loop(_)),
        runs,
    }
}

/// The row of a loop or block, from what all rows have; `None` for blocks with few samples.
fn piece_row(
    at: PieceOf,
    found: &Result<Found, Unmeasured>,
    common: Row,
    context: &Context,
) -> Option<Row> {
    let PieceOf { function, piece } = at;
    if piece.kind == Kind::Rest {
        return None;
    }
    // Compilers put the head of a rotated loop after its body.
    let ranges = || piece.blocks.iter().map(|block| function.range(*block));
    let start = ranges().map(|range| range.start).min()?;
    let end = ranges().map(|range| range.end).max()?;
    let share = piece.samples as f64 / context.shared.samples.max(1) as f64;
    let is_known = piece.entries > 0.0;
    let found = found.as_ref().ok();
    Some(Row {
        module: function.module.clone(),
        start: Some(start.into()),
        end: Some(end.into()),
        head: (start != at.start()).then(|| at.start().into()),
        share,
        cycles_per_entry: is_known.then(|| context.shared.cycles * share / piece.entries),
        entries: is_known.then_some(piece.entries),
        isolated: found.map(|found| found.evidence.cycles.value),
        isolated_with: found.map(|found| found.values.clone()),
        ..common
    })
}

/// The fields that all rows have.
fn row(parts: &Parts, place: Option<&Place>, grounds: Grounds) -> Row {
    let found = bottleneck(parts);
    Row {
        bottleneck: Bottleneck(found),
        parts: parts.clone(),
        sentence: sentence(parts, found, &grounds),
        next: place.map_or(String::new(), |place| next(parts, place)),
        bound: grounds.bound,
        memory: grounds.memory,
        ..Row::default()
    }
}
