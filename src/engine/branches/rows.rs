//! The analysis of an event → rows of the document, including calls between functions, targets of indirect
//! branches, and branches that are hard to predict.

use crate::notes::{WithoutCode, add_new};
use crate::trips;
use branches::stacks::{
    Analysis, BlockSum, Counts, Distribution, Edge, EdgeSum, LoopShape, LoopSum,
};
use iced_x86::FlowControl;
use loads::recorded::is_hard;
use profile::address_space::ModuleAddress;
use profile::files::{SearchPaths, missing};
use profile::module::{Module, ModuleKind};
use report::documents::branches::{
    BlockRow, BranchKind, Branches, CallRow, EdgeRow, EventRow, IndirectRow, InstructionRow,
    IterationsRow, LoopRow, ModuleEntries, ModuleRow, RangeRow, TargetRow,
};
use std::collections::BTreeMap;
use tma::Address;

/// An event of a file.
#[derive(Clone, Copy)]
pub struct EventOf<'a> {
    /// The file.
    pub source: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its number over all files.
    pub number: usize,
}

/// Adds the rows of an event.
pub fn add(document: &mut Branches, event: EventOf, mut found: Analysis, search: &SearchPaths) {
    let number = event.number;
    document.events.push(event_row(event, &found));
    add_modules(document, &found, search);
    let from = document.edges.len();
    let mut edges: Vec<(Edge, EdgeSum)> =
        found.sums.edges.iter().map(|(edge, sum)| (*edge, sum.clone())).collect();
    edges.sort_by(|(a, x), (b, y)| y.count.cmp(&x.count).then(a.cmp(b)));
    let known = known(&found);
    for (edge, sum) in edges {
        let branch = edge.from.and_then(|from| known.get(&from)).copied().unwrap_or_default();
        document.edges.extend(edge_row(&mut found, number, edge, &sum, branch));
    }
    without_code(document, number, found.places.modules(), search);
    let own = &document.edges[from..];
    document.calls.extend(calls(own));
    document.indirect.extend(indirect(own));
    let mut ranges: Vec<_> = found.sums.ranges.iter().collect();
    ranges.sort_by(|(a, x), (b, y)| y.count.cmp(&x.count).then(a.cmp(b)));
    document.ranges.extend(ranges.into_iter().map(|(range, sum)| RangeRow {
        event: number,
        module: module(&found, range.module),
        first: Address(range.first),
        last: Address(range.last),
        count: sum.count,
        cycles_mean: sum.cycles.mean(),
        cycles_median: sum.cycles.median(),
    }));
    let mut blocks: Vec<&BlockSum> = found.blocks.iter().collect();
    blocks.sort_by(|a, b| b.count.cmp(&a.count).then(a.start.cmp(&b.start)));
    document.blocks.extend(blocks.into_iter().map(|block| BlockRow {
        event: number,
        module: module(&found, block.module),
        function: block.function.clone(),
        start: Address(block.start),
        end: Address(block.end),
        count: block.count,
        timed: block.cycles.number(),
        cycles_mean: block.cycles.mean(),
        cycles_median: block.cycles.median(),
        histogram: histogram(&block.cycles),
    }));
    let mut instructions: Vec<_> = found.sums.instructions.iter().collect();
    instructions.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
    let instructions: Vec<(ModuleAddress, u64)> =
        instructions.into_iter().map(|(place, samples)| (*place, *samples)).collect();
    document.instructions.extend(instructions.into_iter().map(|(place, samples)| InstructionRow {
        event: number,
        module: module(&found, place.module),
        address: Address(place.address),
        function: found.places.function(place).map(|function| function.short),
        samples,
    }));
    let loops = std::mem::take(&mut found.loops);
    let rows = loops.iter().filter(|(_, sum)| sum.taken > 0);
    document.loops.extend(rows.map(|(shape, sum)| loop_row(&mut found, number, shape, sum)));
}

/// The entries of an event by module, that with most first.
fn entries_by_module(found: &Analysis) -> Vec<ModuleEntries> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (edge, sum) in &found.sums.edges {
        let Some(place) = edge.from.or(edge.to) else { continue };
        let entries = sums.entry(module(found, place.module)).or_default();
        *entries = entries.saturating_add(sum.count).saturating_add(sum.repeated);
    }
    let row = |(module, entries): (String, u64)| ModuleEntries { module, entries };
    let mut rows: Vec<ModuleEntries> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.entries));
    rows
}

/// Says of which modules the code is not known.
fn without_code(document: &mut Branches, event: usize, modules: &[Module], search: &SearchPaths) {
    let mut without = WithoutCode::default();
    // The code of a branch from outside is that of no module, so that it is missed in none: only its target is named.
    let is_missed = |edge: &&EdgeRow| {
        let module = || document.modules.iter().find(|row| row.path == edge.module);
        edge.kind.is_none() && (edge.from.is_some() || module().is_some_and(|row| row.file_offsets))
    };
    let own = document.edges.iter().filter(|edge| edge.event == event);
    own.filter(is_missed).for_each(|edge| without.add(&edge.module, edge.count));
    let left_out = "its functions, blocks and kinds of branches are left out";
    let notes = without.notes(modules, search, "branch", "branches", left_out);
    add_new(&mut document.notes, notes);
}

fn event_row(of: EventOf, found: &Analysis) -> EventRow {
    let EventOf { source, name, number } = of;
    let sums = &found.sums;
    let is_sampled = sums.samples > 0;
    EventRow {
        event: number,
        source: source.to_owned(),
        name: name.to_owned(),
        samples: is_sampled.then_some(sums.samples),
        entries: sums.entries,
        skipped: sums.skipped,
        modules: entries_by_module(found),
        has_cycles: found.sums.has_cycles(),
        has_predictions: found.sums.has_predictions(),
        bias: match (is_sampled, sums.is_traced) {
            (true, _) => bias(name),
            (false, true) => "a trace: counts are executions of what was traced",
            (false, false) => "counts of an unknown event: their bias is unknown",
        }
        .to_owned(),
    }
}

/// How the sampled event distorts counts of branches: windows end where it overflows.
fn bias(event: &str) -> &'static str {
    match Counts::of(event) {
        Counts::TakenBranches | Counts::Branches => {
            "sampled by branches: counts are in proportion to executions"
        }
        Counts::Cycles | Counts::Time => {
            "sampled by time: code that takes longer is seen more often than it is executed"
        }
        Counts::NotRecorded => {
            "the sampled event is not recorded: the bias of the counts is unknown"
        }
        Counts::Other => {
            "sampled by another event: branches near it are seen more often than they are executed"
        }
    }
}

/// The modules of the rows, each once.
fn add_modules(document: &mut Branches, found: &Analysis, search: &SearchPaths) {
    for module in found.places.modules() {
        let build_id = module.build_id.as_ref();
        let row = ModuleRow {
            path: module.path.clone(),
            build_id: build_id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
            file_offsets: module.kind == ModuleKind::File && missing(search, module).is_some(),
        };
        if !document.modules.contains(&row) {
            document.modules.push(row);
        }
    }
}

fn module(found: &Analysis, number: usize) -> String {
    found.places.module(number).map(|m| m.path.clone()).unwrap_or_default()
}

fn edge_row(
    found: &mut Analysis,
    event: usize,
    edge: Edge,
    sum: &EdgeSum,
    branch: Known,
) -> Option<EdgeRow> {
    let own = edge.from.or(edge.to)?.module;
    let other = edge.to.map(|to| to.module).filter(|to| *to != own);
    let mut name =
        |place: Option<ModuleAddress>| found.places.function(place?).map(|function| function.short);
    let (from_function, to_function) = (name(edge.from), name(edge.to));
    Some(EdgeRow {
        event,
        module: module(found, own),
        from: edge.from.map(|place| Address(place.address)),
        to: edge.to.map(|place| Address(place.address)),
        to_module: other.map(|number| module(found, number)),
        from_function,
        to_function,
        kind: edge.from.and_then(|from| found.places.branch(from)).map(kind),
        count: sum.count,
        share: sum.count as f64 / found.sums.entries as f64,
        mispredicted: (sum.marked > 0).then_some(sum.mispredicted),
        marked: sum.marked,
        executions: branch.executions,
        hard: branch.is_hard(),
        cycles_mean: sum.cycles.mean(),
        cycles_median: sum.cycles.median(),
    })
}

fn kind(kind: FlowControl) -> BranchKind {
    match kind {
        FlowControl::ConditionalBranch => BranchKind::Conditional,
        FlowControl::UnconditionalBranch => BranchKind::Jump,
        FlowControl::IndirectBranch => BranchKind::IndirectJump,
        FlowControl::Call => BranchKind::Call,
        FlowControl::IndirectCall => BranchKind::IndirectCall,
        FlowControl::Return => BranchKind::Return,
        _ => BranchKind::Other,
    }
}

fn histogram(of: &Distribution) -> Vec<(u64, u64)> {
    of.counts().collect()
}

fn loop_row(found: &mut Analysis, event: usize, shape: &LoopShape, sum: &LoopSum) -> LoopRow {
    let head = ModuleAddress { module: shape.module, address: shape.head };
    LoopRow {
        event,
        module: module(found, shape.module),
        function: found.places.function(head).map(|function| function.short),
        head: Address(shape.head),
        back: Address(shape.back),
        target: Address(shape.target),
        unknown: shape.body.is_empty().then(|| "the loop is entered in several places".to_owned()),
        taken: sum.taken,
        trips: trips::trips_row(sum, &found.sums),
        iterations: IterationsRow {
            count: sum.iterations.number(),
            mean: sum.iterations.mean(),
            median: sum.iterations.median(),
            modes: sum.clean.modes(),
            histogram: histogram(&sum.iterations),
        },
    }
}

/// Calls and jumps from one function into another; returns are the same edges backwards.
pub fn calls(edges: &[EdgeRow]) -> Vec<CallRow> {
    let mut sums: BTreeMap<(String, String, String, String), CallRow> = BTreeMap::new();
    for edge in edges {
        let (Some(from), Some(to)) = (&edge.from_function, &edge.to_function) else { continue };
        let is_call = edge.kind.is_some_and(BranchKind::is_call);
        let is_no_jump = matches!(edge.kind, Some(BranchKind::Return | BranchKind::Other));
        if !is_call && (from == to || is_no_jump) {
            continue;
        }
        let to_module = edge.to_module.clone().unwrap_or_else(|| edge.module.clone());
        let key = (edge.module.clone(), from.clone(), to_module.clone(), to.clone());
        let row = sums.entry(key).or_insert_with(|| CallRow {
            event: edge.event,
            module: edge.module.clone(),
            from: from.clone(),
            to: to.clone(),
            to_module: edge.to_module.clone(),
            count: 0,
        });
        row.count = row.count.saturating_add(edge.count);
    }
    let mut rows: Vec<CallRow> = sums.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

/// Indirect jumps and calls with their targets.
pub fn indirect(edges: &[EdgeRow]) -> Vec<IndirectRow> {
    let mut sums: BTreeMap<(&str, Address), IndirectRow> = BTreeMap::new();
    for edge in edges {
        let (Some(from), Some(kind)) = (edge.from, edge.kind) else { continue };
        if !kind.is_indirect() {
            continue;
        }
        let row = sums.entry((&edge.module, from)).or_insert_with(|| IndirectRow {
            event: edge.event,
            module: edge.module.clone(),
            from,
            function: edge.from_function.clone(),
            kind,
            hard: edge.hard,
            ..IndirectRow::default()
        });
        row.count = row.count.saturating_add(edge.count);
        row.marked = row.marked.saturating_add(edge.marked);
        if let Some(wrong) = edge.mispredicted {
            row.mispredicted = Some(row.mispredicted.unwrap_or(0) + wrong);
        }
        row.targets.push(TargetRow {
            module: edge.to_module.clone(),
            to: edge.to,
            function: edge.to_function.clone(),
            count: edge.count,
            share: 0.0,
            mispredicted: edge.mispredicted,
            marked: edge.marked,
        });
    }
    let mut rows: Vec<IndirectRow> = sums.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    for row in &mut rows {
        let all = row.count as f64;
        row.targets.iter_mut().for_each(|target| target.share = target.count as f64 / all);
    }
    rows
}

/// Sums of a branch over all of its targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// Times that it was taken.
    pub taken: u64,
    /// Times that it was taken with its prediction.
    pub marked: u64,
    /// Times that this prediction was wrong.
    pub mispredicted: u64,
    /// Executions of the block that it ends, where the flow of its function is known.
    pub executions: Option<u64>,
}

impl Known {
    /// Whether it is hard: mispredictions ÷ executions. Entries show taken executions only, so that the
    /// mispredictions are at least these; executions are those of its block, else the taken ones.
    pub fn is_hard(&self) -> bool {
        is_hard(self.mispredicted, self.of())
    }

    /// The share of its executions that were mispredicted, at least; of the taken ones where executions are not known.
    pub fn share(&self) -> f64 {
        self.mispredicted as f64 / self.of().max(1) as f64
    }

    /// The executions that the mispredictions are of: as many of all as of the taken ones are marked.
    fn of(&self) -> u64 {
        let executed = self.executions.unwrap_or(0).max(self.taken);
        let share = self.marked as f64 / self.taken.max(1) as f64;
        (executed as f64 * share) as u64
    }
}

/// The branches of an event whose module is known.
pub fn known(found: &Analysis) -> BTreeMap<ModuleAddress, Known> {
    let mut all: BTreeMap<ModuleAddress, Known> = BTreeMap::new();
    for (edge, sum) in &found.sums.edges {
        let Some(from) = edge.from else { continue };
        let own = all.entry(from).or_default();
        own.taken = own.taken.saturating_add(sum.count);
        own.marked = own.marked.saturating_add(sum.marked);
        own.mispredicted = own.mispredicted.saturating_add(sum.mispredicted);
    }
    for block in &found.blocks {
        let at = |address| ModuleAddress { module: block.module, address };
        // The last one ends it.
        if let Some((_, own)) = all.range_mut(at(block.start)..at(block.end)).next_back() {
            own.executions = Some(block.count);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_and_executed_counts() {
        let branch = |taken, marked, mispredicted, executions| {
            Known { taken, marked, mispredicted, executions }.is_hard()
        };
        assert!(branch(100, 100, 50, None) && branch(100, 100, 50, Some(200)));
        assert!(branch(1000, 20, 20, None), "what is not marked is not predicted");
        assert!(!branch(16, 16, 16, Some(128)), "1 in 8 of its executions");
        assert!(!branch(1, 1, 1, None) && !branch(100, 0, 0, Some(100)));
    }
}
