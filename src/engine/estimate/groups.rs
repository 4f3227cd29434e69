//! Divides the time of a function's pieces into parts, once for the rows and the regions that show them: each loop
//! for itself, the other blocks as one group. A sample is often taken in the block after the one that took the time,
//! so the sum of blocks is known better than each of them.
//!
//! Mispredicted indirect calls are sampled in the callee, too: their cost is divided first (`callees`). A marked region has the
//! parts of the pieces that its samples are in, weighted by samples. A piece with samples in other regions, too,
//! need not have the same parts in all of them: its intervals are widened to what is possible.

use super::ask::Shared;
use super::callees::{CalleeCosts, Calls};
use super::evidence::{Branches, Context};
use super::isolated::NOT_MEASURED;
use super::known::Isolations;
use super::pieces::{Function, Kind, PieceOf};
use super::stubs::{Direct, direct};
use estimate::{
    BoundBy, Evidence, Interval, Isolated, Mispredicted, Parts, Reason, Sampled, bottleneck, divide,
};
use iced_x86::FlowControl;
use profile::address_space::ModuleAddress;
use profile::hot::{Profile, RegionSamples};
use report::documents::estimate::{Bottleneck, RegionParts};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Time in isolation of unmeasured blocks at most, as a multiple of that of the measured ones.
pub(super) const MORE: f64 = 2.0;
/// Share of the retired µops that the measured ones must have for that.
pub(super) const ENOUGH: f64 = 0.3;

/// Whether instructions of different blocks wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// As long as their latencies say, at most.
    Modelled,
    /// Not analysed.
    Unknown,
}

/// Pieces whose time is divided as one: a loop, or all else of a function.
pub(super) struct Group {
    /// The pieces, by number; the one with most samples first.
    pub pieces: Vec<usize>,
    pub samples: f64,
    pub parts: Sampled,
    /// The parts of each of them for itself, in the same order.
    pub of_pieces: Vec<Parts>,
    /// Their evidence, if mispredicted calls between them and pieces of other functions make all of these one.
    pub joined: Vec<Evidence>,
}

/// The groups of each function.
pub(super) type Groups = Vec<Vec<Group>>;

/// Divides the time of all functions.
pub(super) fn group_time(
    context: &Context,
    functions: &[Function],
    isolated: &Isolations,
    waits: Waits,
) -> Groups {
    let divider = Divider { context, isolated, waits };
    functions.iter().enumerate().map(|(at, function)| divider.groups(at, function)).collect()
}

/// Evidence of pieces, and how to read it.
struct Divider<'a> {
    context: &'a Context<'a>,
    isolated: &'a Isolations,
    waits: Waits,
}

impl Divider<'_> {
    /// The groups of a function, the one with number `at`.
    fn groups(&self, at: usize, function: &Function) -> Vec<Group> {
        let is_loop = |number: &usize| matches!(function.pieces[*number].kind, Kind::Loop(_));
        let (loops, mut others): (Vec<usize>, Vec<usize>) =
            (0..function.pieces.len()).partition(is_loop);
        others.sort_by_key(|number| Reverse(function.pieces[*number].samples));
        let others = Some(others).filter(|others| !others.is_empty());
        let all = loops.into_iter().map(|number| vec![number]).chain(others);
        all.map(|pieces| self.group(at, function, pieces)).collect()
    }

    fn group(&self, at: usize, function: &Function, pieces: Vec<usize>) -> Group {
        let piece = |number: &usize| PieceOf { function, piece: &function.pieces[*number] };
        let places: Vec<PieceOf> = pieces.iter().map(piece).collect();
        let found = |number: &usize| self.isolated.get(&(at, *number));
        let evidence = |(number, place): (&usize, &PieceOf)| {
            let own = self.context.evidence(*place, found(number).unwrap_or(&NOT_MEASURED));
            let latency = if self.waits == Waits::Unknown { 0.0 } else { own.latency };
            Evidence { latency, ..own }
        };
        let mut evidence: Vec<Evidence> = pieces.iter().zip(&places).map(evidence).collect();
        let apart = |(place, one)| without_others(self.context, place, one);
        let apart: Vec<Option<Mispredicted>> =
            places.into_iter().zip(&evidence).map(apart).collect();
        let own = |all: &[Evidence]| -> Vec<Evidence> {
            let own = |(one, apart): (&Evidence, &Option<Mispredicted>)| match apart {
                Some(own) => Evidence { mispredicted: own.clone(), ..one.clone() },
                None => one.clone(),
            };
            all.iter().zip(&apart).map(own).collect()
        };
        let of_pieces: Vec<Parts> = own(&evidence).iter().map(divide).collect();
        let is_missing: Vec<bool> = pieces.iter().map(|number| found(number).is_none()).collect();
        fill_in(&mut evidence, &is_missing);
        let parts = Sampled::divided(&own(&evidence), self.context.shared.clock.error);
        let samples = pieces.iter().map(|number| function.pieces[*number].samples as f64).sum();
        let joined = if apart.iter().any(Option::is_some) { evidence } else { Vec::new() };
        Group { pieces, samples, parts, of_pieces, joined }
    }
}

/// Blocks that were too cold to be measured take as much beyond retiring as the others of their function.
fn fill_in(all: &mut [Evidence], is_missing: &[bool]) {
    let (mut retired, mut alone, mut every, mut front, mut waits) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for one in all.iter() {
        let Ok(own) = one.retiring.as_ref().map(|own| own.value) else { continue };
        every += own;
        if let Ok(found) = &one.isolated {
            retired += own;
            let cycles = found.cycles.value.max(own);
            alone += cycles;
            front += if found.bound == BoundBy::FrontEnd { cycles } else { 0.0 };
            waits += found.loads * cycles;
        }
    }
    if retired <= 0.0 || retired < ENOUGH * every {
        return;
    }
    let times = alone / retired;
    let bound = if front > alone / 2.0 { BoundBy::FrontEnd } else { BoundBy::Core };
    let loads = waits / alone;
    for (one, is_missing) in all.iter_mut().zip(is_missing) {
        if let (true, Ok(own)) = (is_missing, &one.retiring) {
            let cycles = Interval::new(times * own.value, own.value, MORE * times * own.value);
            one.isolated = Ok(Isolated { cycles, bound, loads, among: 0.0 });
        }
    }
}

/// The reason of a share of mispredicted calls.
const IN_CALLEE: &str = "indirect calls to it are mispredicted, and the core recovers partly here, partly where it is called";

/// The least share of a piece's time that mispredicted calls are attributed.
const LEAST: f64 = 0.01;

/// Divides what the indirect calls of these functions cost between the places where it can be sampled.
pub(super) fn divide_calls(
    context: &Context,
    functions: &[Function],
    isolated: &Isolations,
) -> CalleeCosts {
    let mut all = Calls::default();
    let (mut callers, mut callees) = (Vec::new(), Vec::new());
    let (direct, mut not_recorded) = (direct(functions), 0.0);
    for (number, function) in functions.iter().enumerate() {
        let called = called(function, &direct);
        let blocks = 0..function.flow.blocks.len();
        not_recorded += blocks.map(|block| unrecorded(context, function, block)).sum::<f64>();
        for (piece, at) in function.pieces().enumerate() {
            let own = context.indirect_calls(at);
            let (has_calls, is_called) = (own.cost.high > 0.0, is_start(at) && called > 0.0);
            all.add(own);
            if !has_calls && !is_called {
                continue;
            }
            let found = isolated.get(&(number, piece));
            let own = context.evidence(at, found.unwrap_or(&NOT_MEASURED));
            let excess = excess(&own, context, at, has_calls);
            if is_called {
                callees.push((at.key(), excess, called));
            }
            if has_calls {
                callers.push((at.key(), excess));
            }
        }
    }
    CalleeCosts::new(&all, not_recorded, callers, callees)
}

/// Executions at most of a block that was not counted and ends in an indirect branch: as many as its samples' time allows.
fn unrecorded(context: &Context, function: &Function, block: usize) -> f64 {
    let last = function.instructions(block).last();
    let kind = last.map(|(_, inst)| inst.decoded.flow_control());
    // A jump whose targets are known stays in its function.
    let is_one = match kind {
        Some(FlowControl::IndirectCall) => true,
        Some(FlowControl::IndirectBranch) => function.flow.blocks[block].unresolved,
        _ => false,
    };
    if !is_one || function.entries[block].is_ok() || function.is_stub {
        return 0.0;
    }
    let Shared { cycles, samples, .. } = context.shared;
    let sampled = cycles * function.samples[block] as f64 / (*samples).max(1) as f64;
    sampled / context.retired(function, block).max(f64::MIN_POSITIVE)
}

/// Whether a piece has the start of its function.
fn is_start(at: PieceOf) -> bool {
    let PieceOf { function, piece } = at;
    let start = function.start();
    piece.blocks.iter().any(|block| Some(function.range(*block).start) == start)
}

/// How often a function is called where no direct call of it is known; infinite where it is not known how often it was
/// entered.
fn called(function: &Function, direct: &Direct) -> f64 {
    let Some(start) = function.start().filter(|_| !function.is_stub) else { return 0.0 };
    let directly = direct.get(&(function.module.as_str(), start)).copied().unwrap_or(0.0);
    let entered = function.entries.first().and_then(|count| count.as_ref().ok());
    entered.map_or(f64::INFINITY, |count| *count as f64 - directly)
}

/// What a piece takes beyond its time in isolation, or what retires, and other mispredictions: at least without what its loads,
/// fetching and latencies could take; those that a mispredicted call waits for are in its cost.
fn excess(own: &Evidence, context: &Context, at: PieceOf, calls: bool) -> Interval {
    let retired = own.retiring.clone().unwrap_or_default();
    let alone = own.isolated.as_ref().map_or(retired, |alone| alone.whole());
    let others = context.mispredicted(at, Branches::Others);
    let contended = own.contention.map(|of| of.cycles).unwrap_or_default();
    let value =
        own.cycles.value - alone.value.max(retired.value) - others.cycles.value - contended.value;
    let loads = own.loads.as_ref().map_or(own.cycles.high, |all| all.at_most.high + all.unknown);
    let waits = if calls { 0.0 } else { own.latency };
    let unknown = others.unknown.as_ref().map_or(0.0, |(most, _)| *most);
    let could = loads + waits + own.fetch + own.translation + contended.high + unknown;
    let least = own.cycles.low - alone.high.max(retired.high) - others.cycles.high - could;
    let (value, most) = (value.max(0.0), own.cycles.high - retired.low);
    Interval::new(value, least.clamp(0.0, value), most.max(value))
}

/// The mispredictions of a piece alone: what calls in it, or of it, cost as far as it is sampled there. `None` where there
/// is neither.
fn without_others(context: &Context, at: PieceOf, whole: &Evidence) -> Option<Mispredicted> {
    let (here, calls) = context.callee_costs.at(&at.key())?;
    let others = context.mispredicted(at, Branches::Others).cycles;
    // What the calls in it cost, if all of that were sampled there.
    let own = whole.mispredicted.cycles.high - others.high;
    if here.high.max(own) <= LEAST * whole.cycles.value {
        return None;
    }
    let mut unknown = whole.mispredicted.unknown.clone();
    let known = if calls { here } else { Interval::new(here.value, here.low, here.value) };
    if !calls && here.above() > 0.0 {
        unknown.get_or_insert_with(|| (0.0, Reason::given(IN_CALLEE))).0 += here.above();
    }
    Some(Mispredicted { cycles: others.plus_alike(known), unknown })
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
    groups: &Groups,
) -> Vec<RegionParts> {
    let sums = &profile.by_region().sums;
    if sums.is_empty() {
        return Vec::new();
    }
    let mut pieces = Pieces::default();
    for (function, groups) in functions.iter().zip(groups) {
        for own in groups {
            let blocks = pieces.blocks.entry(&function.module).or_default();
            for block in own.pieces.iter().flat_map(|number| &function.pieces[*number].blocks) {
                let range = function.range(*block);
                blocks.insert(range.start, (range.end, pieces.all.len()));
            }
            pieces.all.push((own.samples as u64, own.parts.parts.clone()));
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
    use estimate::{Divisions, Loads};

    fn evidence(retired: f64, isolated: Result<f64, &'static str>) -> Evidence {
        let alone = |cycles| Isolated {
            cycles: Interval::exact(cycles),
            bound: BoundBy::Core,
            loads: 0.0,
            among: 0.0,
        };
        Evidence {
            contention: None,
            cycles: Interval::exact(100.0),
            retiring: Ok(Interval::exact(retired)),
            mispredicted: Mispredicted::default(),
            isolated: isolated.map(alone).map_err(Reason::given),
            other_values: false,
            divisions: Divisions::Absent,
            certain: 1.0,
            is_loop: false,
            latency: 0.0,
            loads: Ok(Loads::default()),
            fetch: 0.0,
            translation: 0.0,
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
