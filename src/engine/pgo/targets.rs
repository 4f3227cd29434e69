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
use std::collections::BTreeSet;
use std::path::Path;
use tma::Result;

/// Result of the run.
pub(super) struct Found {
    pub targets: Targets,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    pub notes: Vec<String>,
}

/// Records the targets of these functions' jumps and calls that are not known by the flow.
///
/// # Errors
/// The command cannot be started or traced.
pub(super) fn recorded(
    code: &Code,
    flows: &[Flow],
    module: &str,
    command: &Command,
) -> Result<Found> {
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
    let (jumped, unplaced) = jumped(code, &found, Path::new(module));
    for (at, seen) in jumped {
        targets.entry(at).or_default().extend(seen);
    }
    let mut notes = found.notes;
    if found.observed.is_empty() {
        notes
            .push("--targets: counts determine all edges, so that nothing was recorded".to_owned());
    } else if targets.is_empty() && unplaced == 0 {
        let why = found.observed.iter().find_map(|one| one.refused.as_ref());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        notes.push(format!("--targets: no jump or call was recorded{why}"));
    }
    if unplaced > 0 {
        notes.push(format!(
            "--targets: {unplaced} recorded jumps and calls are left out: it is not known where the file was in memory"
        ));
    }
    Ok(Found { targets, interrupted: found.interrupted, notes })
}

/// The jumps and calls at the ends of executed blocks whose edges the counts do not determine.
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

/// Targets of indirect jumps and calls of the module, and how many records have none that is known.
fn jumped(code: &Code, found: &Recorded, module: &Path) -> (Targets, u64) {
    let (mut all, mut unplaced) = (Targets::new(), 0);
    for burst in &found.bursts {
        // Each program image may have the file elsewhere.
        let bias = if code.module.is_fixed { Some(0) } else { found.bias(burst.image, module) };
        for record in &burst.records {
            let Some(observed) = found.observed.get(record.site as usize) else { continue };
            if observed.request.what != What::Target {
                continue;
            }
            let Some(bias) = bias else {
                unplaced += 1;
                continue;
            };
            let targets = all.entry(observed.request.at).or_default();
            *targets.entry(record.value.wrapping_sub(bias)).or_default() += 1;
        }
    }
    (all, unplaced)
}
