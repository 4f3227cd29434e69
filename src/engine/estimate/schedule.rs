//! Which pieces are measured in isolation.

use super::interrupt::Interrupt;
use super::isolated::{Found, Isolation};
use super::known::{Isolated, Known};
use super::own_values::{OwnValues, matter};
use super::pieces::{Function, Piece, PieceOf};
use super::progress::Progress;
use super::reasons::Unmeasured;
use super::shared::Shared;
use crate::steps::Left;
use std::time::{Duration, Instant};
use tma::Result;

/// Share of all samples in the pieces that are measured in isolation.
const MEASURED: f64 = 0.97;
/// Share of the run's samples in each of these at least.
const LEAST: f64 = 0.003;
/// Share of the run's samples from which on all variants that tell a piece's bound are measured.
const EXPLAINED: f64 = 0.04;
/// Time of all measurements at most, or that of the sampled run if that is longer.
const TIME: Duration = Duration::from_secs(30);

/// Results of measuring in isolation.
pub(super) struct Alone {
    /// By function and piece.
    pub measured: Isolated,
    /// With the program's values.
    pub own: OwnValues,
    /// How many pieces were not measured because of a signal.
    pub interrupted: usize,
}

/// A piece that was not measured.
pub(super) const NOT_MEASURED: std::result::Result<Found, Unmeasured> =
    Err(Unmeasured::Cold(MEASURED));

/// Measures the hottest pieces of a run until it is interrupted. `after` each of them it is called with all that is measured.
///
/// # Errors
/// The sandbox cannot be started.
pub(super) fn isolation(
    known: &Known,
    progress: &mut Progress,
    interrupt: &Interrupt,
    after: &mut dyn FnMut(&Isolated),
) -> Result<Alone> {
    let Known { ask, functions, .. } = *known;
    let Shared { samples, cycles, .. } = *known.shared;
    let seconds = progress.plain;
    let mut own = OwnValues::new(&ask.command, seconds);
    let order = hottest(functions, samples);
    let begin = Instant::now();
    let most = TIME.max(Duration::from_secs_f64(seconds));
    let (mut measured, mut interrupted) = (Isolated::new(), 0);
    for (number, (at, piece)) in order.iter().enumerate() {
        if begin.elapsed() > most {
            measured.insert((*at, *piece), Err(Unmeasured::NoTime));
            continue;
        }
        if interrupt.is_set() {
            interrupted += 1;
            measured.insert((*at, *piece), Err(Unmeasured::Interrupted));
            continue;
        }
        let left = Left { counts: 1, isolated: order.len() - number, ..Left::all() };
        progress.begin_apart(
            &format!("measuring {} of {} in isolation", number + 1, order.len()),
            left,
        );
        let function = &functions[*at];
        let piece_of = PieceOf { function, piece: &function.pieces[*piece] };
        let is_hot = piece_of.piece.samples as f64 >= EXPLAINED * samples as f64;
        let mut found =
            Isolation::new(&ask.model, is_hot, interrupt).piece(function, piece_of.piece)?;
        let Piece { samples: own_samples, entries, .. } = *piece_of.piece;
        let each = cycles * own_samples as f64 / (samples as f64 * entries.max(1.0));
        let has_runs = ask.process.is_none();
        if is_hot && has_runs && matter(piece_of, &found, each) && !interrupt.is_set() {
            found = own.measured(&ask.model, piece_of, found, interrupt)?;
        }
        if interrupt.is_set() && found.is_err() {
            interrupted += 1;
            found = Err(Unmeasured::Interrupted);
        }
        measured.insert((*at, *piece), found);
        after(&measured);
    }
    Ok(Alone { measured, own, interrupted })
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
