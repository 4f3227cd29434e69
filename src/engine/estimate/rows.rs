//! Rows of the document.

use super::evidence::Context;
use super::functions::Functions;
use super::isolated::Found;
use super::pieces::{Function, Kind, Piece};
use super::schedule::{Isolated, not_measured};
use super::words::{Place, next, sentence};
use crate::documents::estimate::{Estimate, Parts as PartsRow, Row, Share as ShareRow};
use estimate::{Part, Parts, Share, bottleneck, divide};

/// Functions that were not looked at are named from this share on.
const NAMED: f64 = 0.01;

/// A function's pieces with their parts; samples outside of them are unexplained.
struct Divided<'a> {
    function: &'a Function,
    /// Samples and parts.
    pieces: Vec<(f64, Parts)>,
}

/// Everything in the document that is of code.
pub(super) fn enter(
    document: &mut Estimate,
    hot: &Functions,
    functions: &[Function],
    isolated: &Isolated,
    (context, command): (&Context, &str),
) {
    let samples = context.samples.max(1) as f64;
    let mut all: Vec<(f64, Parts)> = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        let of = &hot.hot.functions[function.number];
        let mut divided = Divided { function, pieces: Vec::new() };
        for (number, piece) in function.pieces.iter().enumerate() {
            let unknown = not_measured();
            let found = isolated.get(&(at, number)).unwrap_or(&unknown);
            let parts = divide(&context.evidence(function, piece, found));
            if let Some(row) = piece_row(&divided, piece, found, &parts, (context, command)) {
                let row = Row { name: of.name.clone(), ..row };
                match piece.kind {
                    Kind::Loop(_) => document.loops.push(row),
                    _ => document.blocks.push(row),
                }
            }
            divided.pieces.push((piece.samples as f64, parts));
        }
        let inside: f64 = divided.pieces.iter().map(|(own, _)| own).sum();
        let outside = of.share * samples - inside;
        if outside > 0.5 {
            let why = "samples outside of its known blocks".to_owned();
            divided.pieces.push((outside, Parts::unknown(why)));
        }
        let parts = Parts::sum(divided.pieces.iter().map(|(own, parts)| (*own, parts)));
        let place = Place { module: &function.module, start: of.range.start, command };
        document.functions.push(Row {
            name: of.name.clone(),
            module: function.module.clone(),
            start: format!("{:#x}", of.range.start),
            end: format!("{:#x}", of.range.end),
            share: of.share,
            ..row(&parts, &place, None)
        });
        all.extend(divided.pieces);
    }
    document.covered = all.iter().map(|(own, _)| own).fold(0.0, |sum, own| sum + own) / samples;
    let parts = Parts::sum(all.iter().map(|(own, parts)| (*own, parts)));
    let hottest = functions
        .first()
        .map_or(("", 0), |f| (f.module.as_str(), hot.hot.functions[f.number].range.start));
    let place = Place { module: hottest.0, start: hottest.1, command };
    document.program =
        Row { name: command.to_owned(), share: document.covered, ..row(&parts, &place, None) };
    others(document, hot, functions, "code that was not looked at");
    for rows in [&mut document.functions, &mut document.loops, &mut document.blocks] {
        rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    }
    // A loop of one block is that block, too.
    let single = document.loops.iter().filter(|row| is_single(row, functions));
    document.blocks.extend(single.cloned().collect::<Vec<_>>());
    document.blocks.sort_by(|a, b| b.share.total_cmp(&a.share));
}

/// The document where nothing is known of any code.
pub(super) fn unknown(document: &mut Estimate, hot: &Functions, why: &str) {
    others(document, hot, &[], why);
    document.program = unknown_row("", 0.0, why);
}

/// The rows of the kernel and of code that was not looked at: hot functions each for itself.
fn others(document: &mut Estimate, hot: &Functions, functions: &[Function], why: &str) {
    if hot.kernel > 0.0 {
        let why = "time in the kernel is not divided";
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
    let parts = Parts::unknown(why.to_owned());
    Row {
        name: name.to_owned(),
        share,
        bottleneck: "undecided".to_owned(),
        sentence: sentence(&parts, None, None),
        parts: shares(&parts),
        ..Row::default()
    }
}

fn is_single(row: &Row, functions: &[Function]) -> bool {
    functions.iter().filter(|function| function.module == row.module).any(|function| {
        let mut blocks = function.flow.blocks.iter();
        blocks.any(|block| {
            format!("{:#x}", block.start) == row.start && format!("{:#x}", block.end) == row.end
        })
    })
}

/// The row of a loop or block; `None` for blocks with few samples.
fn piece_row(
    divided: &Divided,
    piece: &Piece,
    found: &Result<Found, String>,
    parts: &Parts,
    (context, command): (&Context, &str),
) -> Option<Row> {
    let function = divided.function;
    let head = match piece.kind {
        Kind::Loop(number) => function.flow.loops[number].head,
        Kind::Block => piece.blocks[0],
        Kind::Rest => return None,
    };
    let start = function.range(head).start;
    let end = piece.blocks.iter().map(|block| function.range(*block).end).max()?;
    let share = piece.samples as f64 / context.samples.max(1) as f64;
    let is_known = piece.entries > 0.0;
    let place = Place { module: &function.module, start, command };
    let found = found.as_ref().ok();
    let bound = found.and_then(|found| found.bound.clone());
    Some(Row {
        module: function.module.clone(),
        start: format!("{start:#x}"),
        end: format!("{end:#x}"),
        share,
        cycles_per_entry: is_known.then(|| context.cycles * share / piece.entries),
        entries: is_known.then_some(piece.entries),
        isolated: found.map(|found| found.evidence.cycles.value),
        ..row(parts, &place, bound)
    })
}

/// What all rows have.
fn row(parts: &Parts, place: &Place, bound: Option<String>) -> Row {
    let found = bottleneck(parts);
    Row {
        bottleneck: found.map_or("undecided", Part::name).to_owned(),
        parts: shares(parts),
        sentence: sentence(parts, found, bound.as_deref()),
        next: next(found, place),
        bound,
        ..Row::default()
    }
}

fn shares(parts: &Parts) -> PartsRow {
    let of = |part: Part| {
        let Share { share, source, reason } = parts.of(part);
        ShareRow {
            value: share.value,
            low: share.low,
            high: share.high,
            source: source.name().to_owned(),
            reason: reason.clone(),
        }
    };
    PartsRow {
        retiring: of(Part::Retiring),
        bad_speculation: of(Part::BadSpeculation),
        fetch_bandwidth: of(Part::FetchBandwidth),
        fetch_latency: of(Part::FetchLatency),
        core_bound: of(Part::CoreBound),
        memory_bound: of(Part::MemoryBound),
        unexplained: of(Part::Unexplained),
    }
}
