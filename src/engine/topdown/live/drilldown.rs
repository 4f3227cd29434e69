//! Measures: the collector runs, and its counts become the report. With `--drilldown` level 1 first, then only below
//! what is flagged, until a leaf.

use super::collect::{Beside, collect, conclude};
use super::{CoreTable, CountedCore, LiveAsk, Outcome, Update, choose_tables, cores, prepare};
use crate::notes::add_new;
use crate::topdown::{Ask, Chosen};
use pmu::Measurement;
use pmu::kernel::Kernel;
use pmu::machine::{Finding, Machine};
use pmu::perf::NoHooks;
use report::documents::{Selection, Source};
use tma::Result;
use tma::counts::Counts;
use tma::schedule::Plan;
use tma::tables::{Library, NodeId, Table};
use tma::tree::{Evaluator, Flags};

/// Measures.
///
/// # Errors
/// An unknown table or node; a command that cannot be started; a target that does not exist;
/// with `require_pmu`, a machine without a usable core PMU.
pub fn live(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    update: &mut dyn FnMut(Update),
) -> Result<Outcome> {
    if ask.drilldown {
        let (tables, blocked) = choose_tables(machine, library, ask)?;
        if blocked.is_none() && tables.iter().any(|t| t.table.depth() > 0) {
            return run(machine, tables, ask, update);
        }
    }
    let (cores, blocked) = prepare(machine, library, ask)?;
    let alone = Beside { observer: &mut NoHooks, companion: &mut NoHooks, kernel: None };
    measure(machine, &cores, ask, blocked, update, alone)
}

/// As [`live`] without drill-down, through `kernel`.
///
/// # Errors
/// As [`live`].
pub fn live_through(
    kernel: &mut dyn Kernel,
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    update: &mut dyn FnMut(Update),
) -> Result<Outcome> {
    let (cores, blocked) = prepare(machine, library, ask)?;
    let beside = Beside { observer: &mut NoHooks, companion: &mut NoHooks, kernel: Some(kernel) };
    measure(machine, &cores, ask, blocked, update, beside)
}

/// Runs the collector once (with all its repeats) and fills the report.
pub(crate) fn measure(
    machine: &Machine,
    cores: &[CountedCore],
    ask: &LiveAsk,
    blocked: Option<Finding>,
    update: &mut dyn FnMut(Update),
    beside: Beside,
) -> Result<Outcome> {
    let source = if blocked.is_some() { Source::NoPmu } else { Source::Pmu };
    let measured = collect(machine, cores, ask, source, update, beside)?;
    Ok(conclude(cores, ask, source, blocked, &measured))
}

/// Measures level after level: each step counts the children of what is flagged so far, and its
/// groups join those of the steps before, so that one flags is made of all of them. The command
/// runs once for each level reached, at most as often as the tree is deep.
fn run(
    machine: &Machine,
    tables: Vec<CoreTable>,
    ask: &LiveAsk,
    update: &mut dyn FnMut(Update),
) -> Result<Outcome> {
    let depth = tables.iter().map(|t| t.table.depth()).max().unwrap_or(1);
    if ask.command.is_some() {
        update(Update::Runs(depth.saturating_mul(ask.repeats.max(1))));
    }
    // Runs were announced for all levels together.
    let mut quiet = |u: Update| {
        if !matches!(u, Update::Runs(_)) {
            update(u);
        }
    };
    let mut collected = |cores: &[CountedCore]| {
        let alone = Beside { observer: &mut NoHooks, companion: &mut NoHooks, kernel: None };
        collect(machine, cores, ask, Source::Pmu, &mut quiet, alone)
    };
    let mut chosen: Vec<Vec<NodeId>> = vec![Vec::new(); tables.len()];
    let mut so_far: Option<Measurement> = None;
    for level in 1..=depth {
        let mut step: Vec<CountedCore> = Vec::new();
        for (at, own) in tables.iter().enumerate() {
            let table = &own.table;
            let next = below(table, tables.len() == 1, so_far.as_ref(), level);
            if next.is_empty() {
                continue;
            }
            let names: Vec<&str> =
                next.iter().map(|n| table.nodes[usize::from(*n)].id.as_str()).collect();
            let nodes = Some(names.join(","));
            let narrowed = Ask { level: Some(level), nodes, ..ask.ask.clone() };
            step.extend(cores(machine, vec![own.clone()], &narrowed, true)?);
            chosen[at].extend(next);
        }
        if step.is_empty() {
            break;
        }
        let mut measured = collected(&step)?;
        if let (false, [only]) = (tables.len() == 1, step.as_slice()) {
            // The counts of a single kind of core have no name; next to others they need one.
            name(&mut measured, &only.table.name);
        }
        let ended = measured.interrupted.is_some();
        so_far = Some(match so_far {
            None => measured,
            Some(before) => joined(before, measured),
        });
        if ended {
            break;
        }
    }
    let of = |(core, nodes)| all_levels(core, nodes, ask.ask.without_details);
    let whole: Vec<CountedCore> = tables.into_iter().zip(chosen).map(of).collect();
    let Some(measured) = so_far else {
        return Ok(conclude(&whole, ask, Source::Pmu, None, &collected(&whole)?));
    };
    let mut outcome = conclude(&whole, ask, Source::Pmu, None, &measured);
    outcome.report.notes.push("drill-down: each level was measured in a separate run".into());
    Ok(outcome)
}

/// Level 1, or the children at `level` of what is flagged so far in any scope.
fn below(table: &Table, alone: bool, so_far: Option<&Measurement>, level: u32) -> Vec<NodeId> {
    let Some(measured) = so_far else {
        return table.children(None).collect();
    };
    let mut evaluator = Evaluator::new(table);
    let mut flagged = vec![false; table.nodes.len()];
    let mine = |c: &&Counts| alone || c.core.as_ref() == Some(&table.name);
    for counts in measured.counts.iter().filter(mine) {
        let flags = Flags::new(table, &evaluator.values(counts));
        for (all, here) in flagged.iter_mut().zip(flags.flagged) {
            *all |= here;
        }
    }
    let under_flagged = |parent: Option<NodeId>| parent.is_some_and(|p| flagged[usize::from(p)]);
    let nodes = table.tree().filter(|(_, n)| n.level == level && under_flagged(n.parent));
    nodes.map(|(n, _)| n).collect()
}

/// The core as the report of all steps shows it.
fn all_levels(core: CoreTable, mut nodes: Vec<NodeId>, without_details: bool) -> CountedCore {
    let CoreTable { table, pmu, texts, note } = core;
    nodes.sort_unstable();
    let level = nodes.iter().map(|n| table.nodes[usize::from(*n)].level).max().unwrap_or(0);
    let mut selection = Selection::level(&table, 0, false);
    selection.tree.clone_from(&nodes);
    selection.without_details = without_details;
    let chosen = Chosen { level, selection, counted: nodes };
    CountedCore { table, pmu, texts, note, chosen, plan: Plan::default(), groups: Vec::new() }
}

/// Two steps as one measurement: groups side by side, software counts of the last, the first exit
/// that was not well.
fn joined(before: Measurement, mut next: Measurement) -> Measurement {
    let bad = before.exit.filter(|e| e.code() != 0);
    next.exit = bad.or(next.exit);
    next.counts = side_by_side(before.counts, next.counts);
    next.repeats = match (before.repeats.len(), next.repeats.len()) {
        (a, b) if a == b => {
            before.repeats.into_iter().zip(next.repeats).map(|(a, b)| side_by_side(a, b)).collect()
        }
        _ => Vec::new(),
    };
    for (next, mut all) in
        [(&mut next.notes, before.notes), (&mut next.of_control, before.of_control)]
    {
        add_new(&mut all, std::mem::take(next));
        *next = all;
    }
    next
}

fn side_by_side(mut before: Vec<Counts>, next: Vec<Counts>) -> Vec<Counts> {
    for counts in next {
        let same = |c: &&mut Counts| c.core == counts.core && c.scope == counts.scope;
        match before.iter_mut().find(same) {
            Some(known) => known.groups.extend(counts.groups),
            None => before.push(counts),
        }
    }
    before
}

fn name(measured: &mut Measurement, core: &str) {
    let runs = measured.repeats.iter_mut().flatten();
    for counts in measured.counts.iter_mut().chain(runs) {
        counts.core.get_or_insert_with(|| core.to_owned());
    }
}
