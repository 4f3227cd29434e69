//! Parts of the pieces of a function: each loop for itself, its other blocks together. A sample is often taken in the
//! block after the one that took the time, so that the sum of blocks is known better than each of them.

use super::evidence::Context;
use super::isolated::Found;
use super::known::Isolated;
use super::landed::split;
use super::pieces::{Function, Kind, PieceOf};
use super::reasons::Unmeasured;
use super::schedule::NOT_MEASURED;
use estimate::{Bound, Evidence, Interval, Isolated as Alone, Parts, together};

/// Time beyond retiring of unmeasured blocks at most, as a multiple of that of the measured ones.
const MORE: f64 = 2.0;
/// Share of the retired µops that the measured ones must have for that.
const ENOUGH: f64 = 0.3;

/// Whether instructions of different blocks wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// As long as their latencies say, at most.
    Modelled,
    /// Not analysed.
    Unknown,
}

/// Samples whose time is attributed as one.
pub(super) struct Divided {
    /// The pieces, by number; the one with most samples first.
    pub pieces: Vec<usize>,
    pub samples: f64,
    pub parts: Parts,
    /// Their evidence, if mispredicted calls between them and pieces of other functions make all of these one.
    pub joined: Vec<Evidence>,
}

/// The pieces of `function`, the one with number `at`, without those that stand for themselves only as rows: each loop, and
/// all else together.
pub(super) fn divided(
    context: &Context,
    at: usize,
    function: &Function,
    isolated: &Isolated,
    waits: Waits,
) -> Vec<Divided> {
    let mut all = Vec::new();
    let mut outside: Vec<(usize, Evidence)> = Vec::new();
    for (number, piece) in function.pieces.iter().enumerate() {
        let found = isolated.get(&(at, number)).unwrap_or(&NOT_MEASURED);
        let mut evidence = context.evidence(PieceOf { function, piece }, found);
        if waits == Waits::Unknown {
            evidence.latency = 0.0;
        }
        if matches!(piece.kind, Kind::Loop(_)) {
            let samples = piece.samples as f64;
            let (parts, joined) = alone(context, &[PieceOf { function, piece }], vec![evidence]);
            all.push(Divided { pieces: vec![number], samples, parts, joined });
        } else {
            outside.push((number, evidence));
        }
    }
    if !outside.is_empty() {
        outside.sort_by_key(|(number, _)| std::cmp::Reverse(function.pieces[*number].samples));
        let (pieces, mut evidence): (Vec<usize>, Vec<Evidence>) = outside.into_iter().unzip();
        let samples = pieces.iter().map(|number| function.pieces[*number].samples as f64).sum();
        let not_looked_at = |number: &usize| !isolated.contains_key(&(at, *number));
        let is_missing: Vec<bool> = pieces.iter().map(not_looked_at).collect();
        fill_in(&mut evidence, &is_missing);
        let piece = |number: &usize| PieceOf { function, piece: &function.pieces[*number] };
        let own: Vec<PieceOf> = pieces.iter().map(piece).collect();
        let (parts, joined) = alone(context, &own, evidence);
        all.push(Divided { pieces, samples, parts, joined });
    }
    all
}

/// The parts of pieces without those that they are joined with; and their evidence, if there are such.
fn alone(context: &Context, pieces: &[PieceOf], whole: Vec<Evidence>) -> (Parts, Vec<Evidence>) {
    let split = |(place, one)| split(context, place, one);
    let split: Vec<Option<Evidence>> = pieces.iter().copied().zip(&whole).map(split).collect();
    if split.iter().all(Option::is_none) {
        return (together(&whole), Vec::new());
    }
    let own: Vec<Evidence> = split
        .into_iter()
        .zip(&whole)
        .map(|(own, whole)| own.unwrap_or_else(|| whole.clone()))
        .collect();
    (together(&own), whole)
}

/// The parts of a piece, as a row shows them.
pub(super) fn piece_parts(
    context: &Context,
    at: PieceOf,
    found: &Result<Found, Unmeasured>,
) -> Parts {
    alone(context, &[at], vec![context.evidence(at, found)]).0
}

/// Blocks that were too cold to be measured take as much beyond retiring as the others of their function.
fn fill_in(all: &mut [Evidence], is_missing: &[bool]) {
    let (mut retired, mut alone, mut every, mut front) = (0.0, 0.0, 0.0, 0.0);
    for one in all.iter() {
        let Ok(own) = one.retiring.as_ref().map(|own| own.value) else { continue };
        every += own;
        if let Ok(found) = &one.isolated {
            retired += own;
            let cycles = found.cycles.value.max(own);
            alone += cycles;
            front += if found.bound == Bound::FrontEnd { cycles } else { 0.0 };
        }
    }
    if retired <= 0.0 || retired < ENOUGH * every {
        return;
    }
    let times = alone / retired;
    let bound = if front > alone / 2.0 { Bound::FrontEnd } else { Bound::Core };
    for (one, is_missing) in all.iter_mut().zip(is_missing) {
        if let (true, Ok(own)) = (is_missing, &one.retiring) {
            let cycles = Interval::new(times * own.value, own.value, MORE * times * own.value);
            one.isolated = Ok(Alone { cycles, bound });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::{Loads, Reason};

    fn evidence(retired: f64, isolated: Result<f64, &'static str>) -> Evidence {
        let alone = |cycles| Alone { cycles: Interval::exact(cycles), bound: Bound::Core };
        Evidence {
            cycles: Interval::exact(100.0),
            retiring: Ok(Interval::exact(retired)),
            mispredicted: estimate::Mispredicted::default(),
            isolated: isolated.map(alone).map_err(Reason::given),
            other_values: false,
            is_loop: false,
            latency: 0.0,
            loads: Ok(Loads::default()),
            fetch: 0.0,
        }
    }

    /// By hand: 30 cycles in isolation for 10 that retire, so 15 for 5.
    #[test]
    fn blocks_that_were_too_cold_are_like_the_others() {
        let mut all =
            [evidence(10.0, Ok(30.0)), evidence(5.0, Err("cold")), evidence(5.0, Err("it calls"))];
        fill_in(&mut all, &[false, true, false]);
        let found = all[1].isolated.as_ref().unwrap();
        assert_eq!(found.cycles, Interval::new(15.0, 5.0, 30.0));
        assert!(all[2].isolated.is_err(), "what failed stays unknown");
        let mut few = [evidence(1.0, Ok(3.0)), evidence(9.0, Err("cold"))];
        fill_in(&mut few, &[false, true]);
        assert!(few[1].isolated.is_err(), "too little was measured");
    }
}
