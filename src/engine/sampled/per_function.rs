//! Counts that samples read → level 1 of each function.

use super::located::Located;
use profile::counts::{Match, Names};
use profile::hot::{FunctionReads, Profile, ReadSum, Reads};
use report::documents::report_parts::{FunctionNode, FunctionTree, PerFunction};
use report::flame::Breakdown;
use std::sync::Arc;
use tma::counts::{Counts, GroupCounts, Reading};
use tma::schedule::to_level;
use tma::tables::{EventId, Table};
use tma::tree::Evaluator;

/// Fewest readings of a function whose tree is trusted: a mean of 30 is about normal.
const FEWEST: u64 = 30;
/// Share of readings from other functions, of what there would be if the thread changed function all the time, above
/// which a function cannot be told from what runs around it.
const INSEPARABLE: f64 = 0.5;
/// Time from other functions that hardly changes a value.
const HARMLESS: f64 = 0.05;
/// Readings count everything in their time and are a small sample of all that could have been taken: without this
/// factor the jackknife would take them for the whole population, without sampling error.
const POPULATION: u64 = 1 << 20;

/// Level 1 of every function; `None` without such counts, or without a table that has them.
pub(super) fn per_function(profile: &Profile, located: &Located) -> Option<PerFunction> {
    let reads = profile.reads();
    let mut counted = Counted::new(located.tables(), reads)?;
    let mut found = PerFunction {
        table: counted.table.name.clone(),
        event: profile.event.clone(),
        readings: reads.readings,
        interval_ns: reads.interval,
        smallest_share: (FEWEST as f64 / reads.readings.max(1) as f64).min(1.0),
        ..PerFunction::default()
    };
    for (function, own) in profile.functions.iter().zip(&reads.functions) {
        if own.all.readings == 0 || reads.enabled <= 0.0 {
            continue;
        }
        let share = own.all.enabled / reads.enabled;
        let LevelOne { nodes, mixed, reason } = counted.level_one(own, share);
        found.functions.push(FunctionTree {
            name: function.name.clone(),
            short: function.short.clone(),
            module: function.module.clone(),
            share,
            readings: own.all.readings,
            mixed,
            trusted: reason.is_none(),
            nodes,
            reason,
        });
    }
    found.functions.sort_by(|a, b| b.share.total_cmp(&a.share));
    found.notes = notes(&found, reads);
    Some(found)
}

/// Level 1 of some time, such as that in a region.
pub(crate) struct LevelOne {
    pub nodes: Vec<FunctionNode>,
    /// Share of its readings that began elsewhere.
    mixed: f64,
    /// Why it is not to be trusted, if so.
    pub reason: Option<String>,
}

/// Level 1 of what was counted in each of some times, and the table; `None` as of [`per_function`].
pub(crate) fn of_times<'r>(
    tables: &[Arc<Table>],
    reads: &Reads,
    all: impl Iterator<Item = &'r FunctionReads>,
) -> Option<(String, Vec<LevelOne>)> {
    let mut counted = Counted::new(tables, reads)?;
    let of_time =
        |of: &FunctionReads| counted.level_one(of, of.all.enabled / reads.enabled.max(1.0));
    let found = all.map(of_time).collect();
    Some((counted.table.name.clone(), found))
}

/// A table with all events of level 1 among those that samples read.
struct Counted<'t> {
    table: &'t Table,
    /// By position in the readings.
    events: Vec<(usize, EventId)>,
    evaluator: Evaluator<'t>,
}

impl<'t> Counted<'t> {
    /// The first such table.
    fn new(tables: &'t [Arc<Table>], reads: &Reads) -> Option<Self> {
        let (table, events) = tables.iter().find_map(|t| Some((&**t, level_1(t, reads)?)))?;
        Some(Self { table, events, evaluator: Evaluator::new(table) })
    }

    /// Level 1 of some time that is this share of all.
    fn level_one(&mut self, of: &FunctionReads, share: f64) -> LevelOne {
        let mixed = 1.0 - of.same.enabled / of.all.enabled.max(1.0);
        let reason = doubt(of.all.readings, of.same.readings, share, mixed);
        let nodes = match of.all.readings < FEWEST {
            true => unknown(self.table, reason.as_deref()),
            false => self.nodes(of),
        };
        LevelOne { nodes, mixed, reason }
    }

    fn nodes(&mut self, of: &FunctionReads) -> Vec<FunctionNode> {
        let whole = self.evaluator.evaluate(&counts(&self.events, &of.all));
        let is_enough = of.same.readings >= FEWEST;
        let within = is_enough.then(|| self.evaluator.values(&counts(&self.events, &of.same)));
        let node = |n: u16| {
            let at = usize::from(n);
            let of = &whole.nodes[at].quantity;
            let inside = within.as_ref().and_then(|within| within.nodes[at].quantity.get());
            FunctionNode {
                id: self.table.nodes[at].id.to_string(),
                label: self.table.nodes[at].label.to_string(),
                value: of.get(),
                error: of.error.as_ref().ok().copied().filter(|_| of.value.is_ok()),
                bias: of.get().zip(inside).map(|(all, inside)| (all - inside).abs()),
                missing: of.value.as_ref().err().map(ToString::to_string),
            }
        };
        to_level(self.table, 1).into_iter().map(node).collect()
    }
}

/// The nodes that the time of functions goes to, by their trees.
pub(super) fn breakdown(trees: &PerFunction) -> Breakdown {
    let mut breakdown = Breakdown::of("counted per function");
    for tree in trees.functions.iter().filter(|tree| tree.trusted) {
        let share = |node: &FunctionNode| Some((node.label.clone(), node.value?));
        let shares: Vec<(String, f64)> = tree.nodes.iter().filter_map(share).collect();
        breakdown.insert(&tree.name, &tree.module, &shares);
    }
    breakdown
}

/// The table's events, by position in the readings, if they have all that level 1 needs.
fn level_1(table: &Table, reads: &Reads) -> Option<Vec<(usize, EventId)>> {
    let names = Names::new(table);
    let mut events: Vec<(usize, EventId)> = Vec::new();
    for (position, name) in reads.events.iter().enumerate() {
        if let Match::Event { id, .. } = names.resolve(name)
            && !events.iter().any(|(_, known)| *known == id)
        {
            events.push((position, id));
        }
    }
    let has = |id: &EventId| events.iter().any(|(_, known)| known == id);
    let needed = to_level(table, 1);
    let complete = needed.iter().all(|n| table.events_of(*n, false).iter().all(has));
    (complete && !needed.is_empty() && !events.is_empty()).then_some(events)
}

/// Nodes of a function with too few readings.
fn unknown(table: &Table, reason: Option<&str>) -> Vec<FunctionNode> {
    let node = |n: u16| FunctionNode {
        id: table.nodes[usize::from(n)].id.to_string(),
        label: table.nodes[usize::from(n)].label.to_string(),
        missing: reason.map(str::to_owned),
        ..FunctionNode::default()
    };
    to_level(table, 1).into_iter().map(node).collect()
}

/// Counts of one group.
fn counts(events: &[(usize, EventId)], sum: &ReadSum) -> Counts {
    let parts = sum.parts().filter(|part| part.running > 0).map(|part| Reading {
        enabled: part.enabled,
        running: part.running,
        values: events.iter().map(|(at, _)| part.values.get(*at).copied().unwrap_or(0)).collect(),
    });
    let readings: Vec<Reading> = parts.collect();
    let running = readings.iter().fold(0_u64, |sum, part| sum.saturating_add(part.running));
    let enabled = running.saturating_mul(POPULATION);
    let events = events.iter().map(|(_, id)| *id).collect();
    Counts { groups: vec![GroupCounts::Live { events, readings, enabled }], ..Counts::default() }
}

/// Why a function's tree is not to be trusted, if it is not.
fn doubt(readings: u64, same: u64, share: f64, mixed: f64) -> Option<String> {
    if readings < FEWEST {
        return Some(format!("{readings} readings; {FEWEST} are needed"));
    }
    // If the thread changed function all the time, the previous sample would be elsewhere with this probability.
    let elsewhere = (1.0 - share).max(f64::MIN_POSITIVE);
    if mixed > HARMLESS && mixed / elsewhere > INSEPARABLE {
        let why = "it runs for less than the time between two readings: its values are those of all code around it";
        return Some(why.to_owned());
    }
    (mixed > HARMLESS && same < FEWEST)
        .then(|| format!("{same} readings that began and ended in it; {FEWEST} are needed"))
}

fn notes(found: &PerFunction, reads: &Reads) -> Vec<String> {
    let interval = report::format::seconds(found.interval_ns / 1e9);
    let share = 100.0 * found.smallest_share;
    let mut notes = vec![format!(
        "what was counted between two samples of a thread ({interval}, median) is attributed to the function of the \
         later one; ± is the sampling error and the difference that this makes. Trusted are functions with at least \
         {share:.2} % of the time that run for longer than {interval} at a time"
    )];
    if reads.unlike > 0 {
        notes.push(format!("{} readings of other events were left out", reads.unlike));
    }
    notes
}
