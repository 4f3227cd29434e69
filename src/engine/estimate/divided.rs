//! Divides the time of a function's pieces into parts: each loop for itself, the other blocks together. A sample is
//! often taken in the block after the one that took the time, so the sum of blocks is known better than each of
//! them.
//!
//! Mispredicted indirect calls are sampled in the callee, too: their cost is divided first. A marked region has the
//! parts of the pieces that its samples are in, weighted by samples. A piece with samples in other regions, too,
//! need not have the same parts in all of them: its intervals are widened to what is possible.

use super::evidence::{Branches, Context};
use super::isolated::Found;
use super::known::Isolated;
use super::landing::{Calls, Landing};
use super::pieces::{Function, Kind, PieceOf};
use super::reasons::Unmeasured;
use super::schedule::NOT_MEASURED;
use estimate::{
    Bound, Evidence, Interval, Isolated as Alone, Mispredicted, Parts, Reason, bottleneck, together,
};
use iced_x86::FlowControl;
use profile::address_space::ModuleAddress;
use profile::hot::{Profile, RegionSamples};
use report::documents::estimate::{Bottleneck, RegionParts};
use std::collections::{BTreeMap, HashMap};

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
    let own = split.into_iter().zip(&whole);
    let own: Vec<Evidence> = own.map(|(own, whole)| own.unwrap_or(whole.clone())).collect();
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

/// The reason of a share of mispredicted calls.
const LANDED: &str = "indirect calls to it are mispredicted, and the core recovers partly here, partly where it is called";

/// The least share of a piece's time that mispredicted calls are attributed.
const LEAST: f64 = 0.01;

/// Sums the indirect calls of these functions.
pub(super) fn landing(context: &Context, functions: &[Function]) -> Landing {
    let mut found = Landing::default();
    for at in functions.iter().flat_map(Function::pieces) {
        let own = context.indirect_calls(at);
        found.moved += own.cost.value - kept(&own, context, at);
        found.all.cost = found.all.cost.plus_alike(own.cost);
        found.all.unknown += own.unknown;
        found.all.number += own.number;
        found.all.executed += own.executed;
    }
    let direct = direct(functions);
    for function in functions {
        let Some(start) = function.start() else { continue };
        let directly = direct.get(&(function.module.as_str(), start)).copied().unwrap_or(0.0);
        let entered = function.entries.first().and_then(|count| count.as_ref().ok());
        let called = entered.map_or(f64::INFINITY, |count| *count as f64 - directly);
        if called > 0.0 {
            found.called.insert((function.module.clone(), start), called);
        }
    }
    found
}

/// How often each address is called, or jumped to, by its address.
fn direct(functions: &[Function]) -> HashMap<(&str, u64), f64> {
    let mut all: HashMap<(&str, u64), f64> = HashMap::new();
    for function in functions {
        for block in 0..function.flow.blocks.len() {
            let Some((_, last)) = function.instructions(block).last() else { continue };
            let kind = last.decoded.flow_control();
            if matches!(kind, FlowControl::Call | FlowControl::UnconditionalBranch) {
                let to = (function.module.as_str(), last.decoded.near_branch_target());
                *all.entry(to).or_default() += function.executed(block);
            }
        }
    }
    all
}

/// How much of what a piece's calls cost there is room for beside what retires in it.
fn kept(own: &Calls, context: &Context, at: PieceOf) -> f64 {
    let retired = context.retiring(at).map_or(0.0, |one| one.value);
    let sampled =
        context.shared.cycles * at.piece.samples as f64 / context.shared.samples.max(1) as f64;
    own.cost.value.min((sampled - retired).max(0.0))
}

/// The evidence of a piece alone: what its calls cost as far as it is sampled there, and what calls of it cost here.
/// `None` where there is neither. Either may have all of it.
fn split(context: &Context, at: PieceOf, whole: &Evidence) -> Option<Evidence> {
    let PieceOf { function, piece } = at;
    let own = context.indirect_calls(at);
    let start = function.start()?;
    let has_start = piece.blocks.iter().any(|block| function.range(*block).start == start);
    let called = context.landing.called.get(&(function.module.clone(), start));
    let called = called.filter(|_| has_start).copied().unwrap_or(0.0);
    let landed = context.landing.landed(called);
    if own.cost.high.max(own.unknown).max(landed.high) <= LEAST * whole.cycles.value {
        return None;
    }
    let others = context.mispredicted(at, Branches::Others).cycles;
    let kept = Interval::new(kept(&own, context, at), 0.0, own.cost.high);
    let here = Interval::new(landed.value, 0.0, landed.value);
    let cycles = others.plus_alike(kept).plus_alike(here);
    let mut unknown = whole.mispredicted.unknown.clone();
    if landed.above() > 0.0 {
        unknown.get_or_insert_with(|| (0.0, Reason::given(LANDED))).0 += landed.above();
    }
    Some(Evidence { mispredicted: Mispredicted { cycles, unknown }, ..whole.clone() })
}

/// Fewest samples of a region that is analysed.
const FEWEST: u64 = 30;
/// A piece with more than this share of its samples outside of a region is shared with others.
const STRAY: f64 = 0.02;

/// Pieces by address.
#[derive(Default)]
struct Pieces<'a> {
    /// Samples and parts.
    all: Vec<(u64, Parts)>,
    /// By file: the start of each block with its end and piece.
    blocks: HashMap<&'a str, BTreeMap<u64, (u64, usize)>>,
}

impl Pieces<'_> {
    fn at(&self, path: &str, address: u64) -> Option<usize> {
        let (_, (end, piece)) = self.blocks.get(path)?.range(..=address).next_back()?;
        (address < *end).then_some(*piece)
    }
}

/// The parts of every region with samples.
pub(super) fn regions(
    profile: &Profile,
    functions: &[Function],
    isolated: &Isolated,
    context: &Context,
) -> Vec<RegionParts> {
    let sums = &profile.by_region().sums;
    if sums.is_empty() {
        return Vec::new();
    }
    let mut pieces = Pieces::default();
    for (at, function) in functions.iter().enumerate() {
        for own in divided(context, at, function, isolated, Waits::Modelled) {
            let blocks = pieces.blocks.entry(&function.module).or_default();
            for block in own.pieces.iter().flat_map(|number| &function.pieces[*number].blocks) {
                let range = function.range(*block);
                blocks.insert(range.start, (range.end, pieces.all.len()));
            }
            pieces.all.push((own.samples as u64, own.parts));
        }
    }
    let row = |((region, thread), sum): (&(u32, Option<u32>), &RegionSamples)| {
        let (parts, shared) = parts(profile, &pieces, sum);
        RegionParts {
            region: *region,
            thread: *thread,
            samples: sum.samples,
            shared,
            bottleneck: Bottleneck(bottleneck(&parts)),
            parts,
        }
    };
    sums.iter().map(row).collect()
}

/// The parts of a region, and the share of its samples in code that others share.
fn parts(profile: &Profile, pieces: &Pieces, sum: &RegionSamples) -> (Parts, f64) {
    let all = sum.samples as f64;
    if sum.samples < FEWEST {
        let why = format!("{} samples; {FEWEST} are needed", sum.samples);
        return (Parts::unknown(Reason::given(why)), 0.0);
    }
    let mut own: BTreeMap<usize, u64> = BTreeMap::new();
    let mut outside = 0;
    let find = |place: &ModuleAddress| pieces.at(profile.module_path(place.module), place.address);
    for (place, samples) in &sum.places {
        match place.as_ref().and_then(find) {
            Some(piece) => *own.entry(piece).or_default() += samples,
            None => outside += samples,
        }
    }
    let (mut weighted, mut shared) = (Vec::new(), 0.0);
    for (piece, samples) in own {
        let (of_all, parts) = &pieces.all[piece];
        let share = (samples as f64 / (*of_all).max(1) as f64).min(1.0);
        if share < 1.0 - STRAY {
            shared += samples as f64 / all;
        }
        weighted.push((samples as f64, parts.within(share)));
    }
    if outside > 0 {
        let why = "its samples are in code that was not analysed, or in the kernel";
        weighted.push((outside as f64, Parts::unknown(Reason::given(why))));
    }
    let sum_of = Parts::sum(weighted.iter().map(|(samples, parts)| (*samples, parts)));
    (sum_of.sampled(sum.samples), shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::Loads;

    fn evidence(retired: f64, isolated: Result<f64, &'static str>) -> Evidence {
        let alone = |cycles| Alone { cycles: Interval::exact(cycles), bound: Bound::Core };
        Evidence {
            cycles: Interval::exact(100.0),
            retiring: Ok(Interval::exact(retired)),
            mispredicted: Mispredicted::default(),
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
