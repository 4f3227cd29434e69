//! Where jumps and calls go whose targets do not follow from counts: recorded in bursts of a further run.

use super::code::Code;
use super::counted::Targets;
use iced_x86::{FlowControl, Instruction};
use pmu::Command;
use pmu::perf::Signals;
use probe::bursts::{Pace, Recorded, record};
use probe::count::Wanted;
use probe::facts::{Exit, Function};
use probe::flow::{Flow, How};
use probe::plan::{What, branches};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tma::Result;

/// Pages of memory: a file is mapped at a multiple of them.
const IN_PAGE: u64 = 0xfff;
/// Recorded targets by which the place of a file in memory is found.
const MOST_VALUES: usize = 256;

/// Records the targets of these functions' jumps and calls that are not known by the flow.
///
/// # Errors
/// The command cannot be started or traced.
pub(super) fn recorded(
    code: &Code,
    flows: &[Flow],
    module: &str,
    command: &Command,
) -> Result<(Targets, Option<i32>)> {
    let asked: Vec<BTreeSet<u64>> =
        code.functions.iter().zip(flows).map(|(one, flow)| open(&one.facts, flow)).collect();
    let wanted = |one: &super::code::Function| Wanted {
        path: Path::new(module).to_owned(),
        range: one.facts.range.clone(),
    };
    let wanted: Vec<Wanted> = code.functions.iter().map(wanted).collect();
    let requests = |number: usize, function: &Function| {
        let mut all = branches(function);
        all.retain(|request| asked[number].contains(&request.at));
        all
    };
    let signals = Signals::catch()?;
    let found = record(command, &wanted, &requests, Pace::default(), &signals)?;
    let mut targets = outcomes(code, &found);
    for (at, seen) in jumped(code, &found) {
        targets.entry(at).or_default().extend(seen);
    }
    Ok((targets, found.interrupted))
}

/// The jumps and calls at the ends of executed blocks that lead where the counts do not tell.
fn open(function: &Function, flow: &Flow) -> BTreeSet<u64> {
    let mut fitted = BTreeSet::new();
    for edge in flow.edges.iter().filter(|edge| edge.flow.how >= How::Fitted) {
        fitted.insert(edge.from);
    }
    let is_open = |number: usize, last: &Instruction| {
        let is_indirect =
            matches!(last.flow_control(), FlowControl::IndirectBranch | FlowControl::IndirectCall);
        let ran = flow.blocks[number].number() != Some(0);
        ran && (is_indirect && is_unknown(function, number) || fitted.contains(&number))
    };
    let lasts = function.blocks.iter().enumerate();
    let lasts = lasts.filter_map(|(number, block)| Some((number, block.instructions.last()?)));
    lasts.filter(|(number, last)| is_open(*number, last)).map(|(_, last)| last.ip()).collect()
}

/// Whether the targets of an indirect jump or call are not all known: it is a call, or has no table.
fn is_unknown(function: &Function, block: usize) -> bool {
    matches!(function.blocks[block].exit, Exit::Unknown | Exit::MayEnd)
}

/// Outcomes of conditional jumps.
fn outcomes(code: &Code, found: &Recorded) -> Targets {
    let mut all = Targets::new();
    for record in found.bursts.iter().flat_map(|burst| &burst.records) {
        let Some(observed) = found.observed.get(record.site as usize) else { continue };
        let last = (observed.request.what == What::Outcome)
            .then(|| code.instruction(observed.function, observed.request.at))
            .flatten();
        if let Some(last) = last {
            let to = if record.value == 0 { last.next_ip() } else { last.near_branch_target() };
            *all.entry(last.ip()).or_default().entry(to).or_default() += 1;
        }
    }
    all
}

/// Targets of indirect jumps and calls.
fn jumped(code: &Code, found: &Recorded) -> Targets {
    // By program image, which may have the file elsewhere: jump, and address in the process.
    let mut images: BTreeMap<usize, BTreeMap<(u64, u64), u64>> = BTreeMap::new();
    for burst in &found.bursts {
        let of = images.entry(burst.image).or_default();
        for record in &burst.records {
            let Some(observed) = found.observed.get(record.site as usize) else { continue };
            if observed.request.what == What::Target {
                *of.entry((observed.request.at, record.value)).or_default() += 1;
            }
        }
    }
    let mut all = Targets::new();
    for seen in images.values() {
        let values: BTreeSet<u64> = seen.keys().map(|(_, value)| *value).collect();
        let Some(bias) = bias(code, &values) else { continue };
        for ((at, value), times) in seen {
            *all.entry(*at).or_default().entry(value.wrapping_sub(bias)).or_default() += times;
        }
    }
    all
}

/// What a process adds to the addresses of the file: that by which most of these addresses are places that can be
/// jumped to, if it is the only such.
fn bias(code: &Code, values: &BTreeSet<u64>) -> Option<u64> {
    if code.module.is_fixed {
        return Some(0);
    }
    let mut places: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for block in code.functions.iter().flat_map(|one| &one.facts.blocks).filter(|b| b.is_entered) {
        places.entry(block.start & IN_PAGE).or_default().push(block.start);
    }
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    for value in values.iter().take(MOST_VALUES) {
        for place in places.get(&(value & IN_PAGE)).into_iter().flatten() {
            *votes.entry(value.wrapping_sub(*place)).or_default() += 1;
        }
    }
    let most = votes.values().copied().max()?;
    let mut best = votes.iter().filter(|(_, votes)| **votes == most);
    let (bias, _) = best.next()?;
    best.next().is_none().then_some(*bias)
}
