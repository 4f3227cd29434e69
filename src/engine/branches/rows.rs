//! The analysis of an event → rows of the document.

use super::calls;
use super::hard::{self, Known};
use crate::missing_code::{WithoutCode, add_new};
use crate::recorded_trips;
use branches::stacks::{
    Analysis, BlockSum, Counts, Distribution, Edge, EdgeSum, LoopShape, LoopSum,
};
use iced_x86::FlowControl;
use profile::address_space::ModuleAddress;
use profile::files::{SearchPaths, missing};
use profile::module::{Module, ModuleKind};
use report::documents::branches::{
    BlockRow, BranchKind, Branches, EdgeRow, EventRow, InstructionRow, IterationsRow, LoopRow,
    ModuleEntries, ModuleRow, RangeRow,
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
    let known = hard::known(&found);
    for (edge, sum) in edges {
        let branch = edge.from.and_then(|from| known.get(&from)).copied().unwrap_or_default();
        document.edges.extend(edge_row(&mut found, number, edge, &sum, branch));
    }
    without_code(document, number, found.places.modules(), search);
    let own = &document.edges[from..];
    document.calls.extend(calls::calls(own));
    document.indirect.extend(calls::indirect(own));
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
        trips: recorded_trips::row(sum, &found.sums),
        iterations: IterationsRow {
            count: sum.iterations.number(),
            mean: sum.iterations.mean(),
            median: sum.iterations.median(),
            modes: sum.clean.modes(),
            histogram: histogram(&sum.iterations),
        },
    }
}
