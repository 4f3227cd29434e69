//! Outcomes of branches → trips of loops, from all branches of a function or from recorded ones, by the one rule
//! for all documents ([`loads::prefetch::Trips`]).

use branches::stacks::{LoopSum, Sums};
use branches::trips::{Body, Next, Outcome, Shape, Stream, Trips, add};
use iced_x86::{FlowControl, Instruction};
use loads::prefetch::{self, TripCount};
use probe::bursts::{Record, Recorded};
use probe::count::Wanted;
use probe::facts::{Block, Exit, Function, Loop};
use probe::plan::What;
use report::documents::branches::TripsRow;
use report::documents::count::{Count, LoopRow, Trips as Row, TripsSource, by_place};
use std::collections::{BTreeMap, BTreeSet};

/// A function for which all branches are recorded: its control flow, and the heads of its loops.
#[derive(Debug, Clone, Default)]
pub struct Followed {
    pub shape: Shape,
    heads: Vec<u64>,
}

impl Followed {
    /// The control flow of a function; nothing of one that calls itself, whose executions cannot be told apart.
    pub fn of(function: &Function) -> Self {
        let index = |at: u64| function.blocks.binary_search_by_key(&at, |block| block.start).ok();
        let calls_itself = |block: &Block| {
            block.instructions.last().is_some_and(|last| {
                last.flow_control() == FlowControl::Call
                    && last.near_branch_target() == function.range.start
            })
        };
        if function.blocks.iter().any(calls_itself) || index(function.range.start) != Some(0) {
            return Self::default();
        }
        let next = function.blocks.iter().map(|block| next(function, block, &index)).collect();
        let mut into = vec![Vec::new(); function.blocks.len()];
        for (from, block) in function.blocks.iter().enumerate() {
            block.successors.iter().for_each(|to| into[*to].push(from));
        }
        let loops = function.loops.iter().map(|one| body(&into, one)).collect();
        let heads = function.loops.iter().map(|one| function.blocks[one.head].start).collect();
        Self { shape: Shape { next, loops }, heads }
    }
}

impl Followed {
    /// The number of the loop with this head.
    pub fn number(&self, head: u64) -> Option<usize> {
        self.heads.iter().position(|own| *own == head)
    }
}

fn next(function: &Function, block: &Block, index: &dyn Fn(u64) -> Option<usize>) -> Next {
    let Some(last) = block.instructions.last() else { return Next::Unknown };
    match (last.flow_control(), block.exit) {
        (FlowControl::ConditionalBranch, _) => {
            Next::Conditional(last.ip(), index(last.near_branch_target()), index(last.next_ip()))
        }
        (FlowControl::IndirectBranch, Exit::Unknown) => Next::Unknown,
        (FlowControl::IndirectBranch, _) => {
            let all = block.successors.iter().map(|to| (function.blocks[*to].start, *to));
            Next::Indirect(last.ip(), all.collect())
        }
        (FlowControl::UnconditionalBranch, _) => target(last, index),
        (FlowControl::Return, _) => Next::Leaves,
        _ => match block.successors.as_slice() {
            [one] => Next::Block(*one),
            [] => Next::Leaves,
            _ => Next::Unknown,
        },
    }
}

fn target(jump: &Instruction, index: &dyn Fn(u64) -> Option<usize>) -> Next {
    index(jump.near_branch_target()).map_or(Next::Leaves, Next::Block)
}

/// The blocks of a natural loop: those that reach its latches without its head.
fn body(into: &[Vec<usize>], of: &Loop) -> Body {
    let mut blocks = BTreeSet::from([of.head]);
    let mut open = of.latches.clone();
    while let Some(block) = open.pop() {
        if blocks.insert(block) {
            open.extend(&into[block]);
        }
    }
    Body { head: of.head, blocks }
}

/// Adds the trips that the outcomes of a run tell to the document's loops. `functions` are by number in
/// `wanted`; `threads` has the records of each thread of each burst, and whether nothing ran before.
pub fn enter(
    document: &mut Count,
    recorded: &Recorded,
    wanted: &[Wanted],
    functions: &BTreeMap<usize, Followed>,
    threads: &[(bool, Vec<Record>)],
) {
    // A branch that is not recorded leaves the way open.
    let open: BTreeSet<usize> =
        recorded.observed.iter().filter(|o| o.refused.is_some()).map(|o| o.function).collect();
    let none = Followed::default();
    let of = |number: usize| match open.contains(&number) {
        true => &none,
        false => functions.get(&number).unwrap_or(&none),
    };
    let shapes: Vec<Shape> = (0..wanted.len()).map(|number| of(number).shape.clone()).collect();
    let mut trips: Vec<Vec<Trips>> =
        shapes.iter().map(|shape| vec![Trips::default(); shape.loops.len()]).collect();
    let outcome = |record: &Record| {
        let observed = &recorded.observed[record.site as usize];
        Outcome { function: observed.function, at: observed.request.at, value: record.value }
    };
    for (is_first, records) in threads {
        let is_branch = |record: &&Record| {
            let what = recorded.observed[record.site as usize].request.what;
            matches!(what, What::Outcome | What::Target)
        };
        let outcomes = records.iter().filter(is_branch).map(outcome).collect();
        add(&shapes, &Stream { is_first: *is_first, outcomes }, &mut trips);
    }
    // The entries are of another window.
    let is_window = document.process.is_some();
    let rows = by_place(&document.loops, |row| (&row.module, row.head));
    for (number, found) in trips.into_iter().enumerate() {
        let module = wanted[number].path.display().to_string();
        for (head, found) in of(number).heads.iter().zip(found) {
            let row = rows.get(&(module.clone(), (*head).into()));
            let row = row.map(|row| &mut document.loops[*row]);
            let seen = found.whole.number() + found.truncated;
            // More than there were: the way through the function was not understood.
            let fits = |row: &&mut LoopRow| {
                is_window || row.entries.is_none_or(|n| found.whole.number() <= n)
            };
            if let (Some(row), true) = (row.filter(fits), seen > 0) {
                let is_all = !is_window && row.entries == Some(found.whole.number());
                row.trips = Row {
                    source: Some(if is_all { TripsSource::Exact } else { TripsSource::Sampled }),
                    histogram: found.whole.counts().collect(),
                    truncated: Some(found.truncated),
                    ..row.trips.clone()
                };
            }
        }
    }
}

/// The recorded trips of a loop, in an event with these sums. Counts without windows show no ends, and so no trips.
pub(crate) fn recorded(sum: &LoopSum, of: &Sums) -> prefetch::Trips {
    // The head may be entered again by another branch, or by none.
    let seen = sum.trips.counts().chain(sum.truncated.counts());
    let seen = seen.map(|(trips, n)| trips.saturating_mul(n)).fold(0, u64::saturating_add);
    prefetch::Trips {
        whole: sum.trips.counts().collect(),
        taken: seen.saturating_sub(sum.entered),
        entered: sum.entered,
        left: sum.left,
        at_least: sum.truncated.counts().last().map(|(trips, _)| trips),
        is_complete: of.is_traced,
    }
}

/// As a row of `tdtool.branches/1`.
pub(crate) fn trips_row(sum: &LoopSum, of: &Sums) -> TripsRow {
    let mut row = TripsRow {
        whole: sum.trips.number(),
        mean: sum.trips.mean(),
        histogram: sum.trips.counts().collect(),
        truncated: sum.truncated.number(),
        at_least: sum.truncated.counts().last().map(|(trips, _)| trips),
        ..TripsRow::default()
    };
    match recorded(sum, of).count() {
        TripCount::Exactly(trips) => row.always = Some(trips),
        TripCount::About(trips) => row.about = Some(trips),
        TripCount::AtLeast(trips) => row.mean_at_least = Some(trips),
        TripCount::Unknown => {}
    }
    row
}
