//! Chooses the code of which loads are recorded: that which is unexplained without them, as far as time allows.

use super::divided::{Waits, divided};
use super::evidence::Context;
use super::known::Isolated;
use super::pieces::{Function, Piece};
use crate::places::Places;
use estimate::Part;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Loads are recorded of the pieces that hold this share of the unexplained time.
const LOOKED_AT: f64 = 0.93;
/// Time of a probe that records addresses and of one that times, together, as a multiple of one that counts. This and
/// the following were chosen so that the ten real programs of docs/results/accuracy.md take at most eight times the
/// plain run.
const RECORDING: f64 = 6.0;
/// The least of this multiple.
const RECORDING_AT_LEAST: f64 = 2.0;
/// Seconds of an execution of a probe at least, where the runs differ by chance only: an increment in memory takes some
/// cycles.
const LEAST_EACH: f64 = 1e-9;
/// The unexplained share that is worth a run that may take too long.
const MUCH: f64 = 0.3;
/// Time of both runs at least, as a multiple of a plain one.
const BOTH: f64 = 2.2;

/// Times of the runs before, and the limit of those with loads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    /// Seconds of the run without probes, and with counts.
    pub plain: f64,
    pub counted: f64,
    /// Seconds that both runs with loads may take.
    pub most: f64,
}

/// Time that is unexplained without loads.
pub(super) struct Unexplained {
    /// Its share of all pieces.
    pub share: f64,
    /// The code that has most of it.
    pub places: Places,
    /// Whether there was no time for some of it.
    pub is_part: bool,
}

/// A piece with what is unexplained of it.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    function: &'a Function,
    piece: &'a Piece,
    /// Samples.
    left: f64,
    /// Executions of its blocks with loads or stores.
    executed: f64,
}

/// Time of all pieces that is unexplained without dependencies between blocks: loads may take what these could.
pub(super) fn unexplained(
    context: &Context,
    functions: &[Function],
    isolated: &Isolated,
    time: Time,
) -> Unexplained {
    let mut all: Vec<Candidate> = Vec::new();
    let mut samples = 0.0;
    for (at, function) in functions.iter().enumerate() {
        for own in divided(context, at, function, isolated, Waits::Unknown) {
            samples += own.samples;
            let left = own.parts.of(Part::Unexplained).value;
            all.extend(own.pieces.iter().map(|number| {
                let piece = &function.pieces[*number];
                let probed = piece.blocks.iter().filter(|block| function.has_access(**block));
                let executed = probed.map(|block| function.executed(*block)).sum();
                // Each of several pieces analysed together may have it.
                Candidate { function, piece, left: piece.samples as f64 * left, executed }
            }));
        }
    }
    let whole: f64 = all.iter().map(|one| one.left).sum();
    let counted = |function: &Function| -> f64 {
        (0..function.flow.blocks.len()).map(|block| function.executed(block)).sum()
    };
    let probes: f64 = functions.iter().map(counted).sum();
    let each = ((time.counted - time.plain) / probes.max(1.0)).max(LEAST_EACH);
    let share = whole / samples.max(1.0);
    let left = time.most - BOTH * time.plain;
    let mut found = chosen(&all, LOOKED_AT * whole, left / (RECORDING * each));
    if found.0.is_empty() && share > MUCH {
        found = chosen(&all, LOOKED_AT * whole, left / (RECORDING_AT_LEAST * each));
    }
    let (chosen, is_part) = found;
    let mut places: BTreeMap<PathBuf, Vec<Range<u64>>> = BTreeMap::new();
    for one in chosen {
        let own = places.entry(PathBuf::from(&one.function.module)).or_default();
        own.extend(one.piece.blocks.iter().map(|block| one.function.range(*block)));
    }
    Unexplained { share, places: Arc::new(places), is_part }
}

/// The candidates that hold `enough` of what is left; of those, if they are executed more than `most` times, the ones
/// that are worth it most; and whether that is so.
fn chosen<'a>(all: &[Candidate<'a>], enough: f64, most: f64) -> (Vec<Candidate<'a>>, bool) {
    let mut all = all.to_vec();
    all.sort_by(|a, b| b.left.total_cmp(&a.left));
    let mut held = 0.0;
    let number = all.iter().take_while(|one| {
        let before = held;
        held += one.left;
        before < enough
    });
    let number = number.count();
    all.truncate(number);
    let worth = |one: &Candidate| one.left / one.executed.max(1.0);
    all.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let mut executed = 0.0;
    all.retain(|one| {
        let fits = executed + one.executed <= most;
        executed += if fits { one.executed } else { 0.0 };
        fits
    });
    let is_part = all.len() < number;
    (all, is_part)
}
