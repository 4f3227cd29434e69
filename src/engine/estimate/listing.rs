//! Lists the instructions of the document's loops and blocks with their counts, branches and loads, and the source
//! lines that samples of these loops and blocks are in, with their parts.
//!
//! The parts of a loop or block go to its instructions: Retiring by µops, Bad Speculation by mispredictions, Core
//! Bound to the critical path, Memory Bound by the time of loads beyond the first cache. Parts without such
//! evidence, and fetching, are divided by samples.

use super::evidence::Context;
use super::latency;
use crate::core_model::CoreModel;
use crate::hot::Sources;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code, Window};
use profile::hot::{Annotated, AnnotatedLine, Profile};
use report::documents::count::{BranchRow, LoadRow, LoopRow};
use report::documents::estimate::{
    Bottleneck, Causes, Estimate, Instruction, Part, Parts, Row, Share, ShareSource, SourceLine,
};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use tma::Address;

/// Rows with more instructions than this have no listing: nobody reads it, and documents stay small.
const LONGEST: usize = 512;
/// Runs of the dependency analysis.
const RUNS: u32 = 2;

/// Context of the listing of rows.
struct Listing<'a> {
    context: &'a Context<'a>,
    model: &'a CoreModel,
    analyser: Analyser,
    /// Whether loads were recorded.
    loads: bool,
}

/// Lists the function of a file that begins at an address.
pub(super) type Listed<'a> = &'a mut dyn FnMut(&str, u64) -> Option<Annotated>;

/// By the samples of a profile.
pub(super) fn of_profile(profile: &mut Profile) -> impl FnMut(&str, u64) -> Option<Annotated> + '_ {
    |module, start| {
        let is_it = |f: &profile::hot::HotFunction| f.path == module && f.start == start;
        let index = profile.functions.iter().position(is_it)?;
        Some(profile.annotate(index))
    }
}

/// Enters the instructions of all loops and blocks.
pub(super) fn enter(
    document: &mut Estimate,
    listed: Listed<'_>,
    model: &CoreModel,
    context: &Context,
    loads: bool,
) {
    let analyser = Analyser::new(model.latencies.clone());
    let mut listing = Listing { context, model, analyser, loads };
    for function in 0..document.functions.len() {
        let of = &document.functions[function];
        let (module, Some(range)) = (of.module.clone(), of.range()) else { continue };
        let Some(code) = listed(&module, range.start) else { continue };
        for (rows, is_loop) in [(&mut document.loops, true), (&mut document.blocks, false)] {
            for row in rows.iter_mut().filter(|row| row.module == module) {
                if let Some(own) = row.range().filter(|own| range.contains(&own.start)) {
                    listing.fill(row, &code, own, is_loop);
                }
            }
        }
        let is_own = |row: &&Row| {
            row.module == module && row.range().is_some_and(|own| range.contains(&own.start))
        };
        let pieces = document.loops.iter().chain(&document.blocks);
        let mut pieces: Vec<&Row> = pieces.filter(is_own).collect();
        pieces.sort_by_key(|row| row.code.len());
        let found = lines(&pieces, &mut Sources::new(&[], &module));
        document.functions[function].lines = found;
    }
}

impl Listing<'_> {
    fn fill(&mut self, row: &mut Row, code: &Annotated, own: Range<u64>, is_loop: bool) {
        let blocks = || code.blocks.iter().filter(|b| own.contains(&b.block.start));
        let lines: Vec<&AnnotatedLine> =
            blocks().flat_map(|b| &b.lines).filter(|l| own.contains(&l.address)).collect();
        let loops_back = blocks().count() == 1 && blocks().all(|b| b.back_to == Some(own.start));
        self.numbers(row, &own, is_loop || loops_back);
        if lines.is_empty() || lines.len() > LONGEST {
            let why = match lines.len() {
                0 => "its code was not found".to_owned(),
                n => format!("{n} instructions are too many to list"),
            };
            row.reasons.insert("code".to_owned(), why);
            return;
        }
        row.code = lines.iter().map(|line| self.instruction(&row.module, line)).collect();
        let bytes: Vec<u8> = lines.iter().flat_map(|line| line.bytes.iter().copied()).collect();
        if loops_back {
            self.critical(row, &bytes);
        } else {
            let why = "only a loop of one block has one path to follow".to_owned();
            row.reasons.insert("critical_cycles".to_owned(), why);
        }
        enter_causes(row, &bytes, self.context);
    }

    /// Trips and mispredictions, or why they are not known.
    fn numbers(&self, row: &mut Row, own: &Range<u64>, is_loop: bool) {
        let head = row.head.unwrap_or(own.start.into());
        let of_row = |l: &&LoopRow| l.module == row.module && l.head == head;
        if is_loop {
            let counted = self.context.counted.count.loops.iter().find(of_row);
            row.trips = counted.and_then(|l| l.trips.mean);
            if row.trips.is_none() {
                let why = counted.and_then(|l| l.reason.clone());
                let why = why.unwrap_or_else(|| "it was not counted".to_owned());
                row.reasons.insert("trips".to_owned(), why);
            }
        }
        let known = self.context.counted.branches(&row.module, own.clone());
        let known: Vec<(f64, f64)> = known.filter_map(mispredicted).collect();
        let executed: f64 = known.iter().map(|(_, all)| all).sum();
        if executed > 0.0 {
            row.mispredicted = Some(known.iter().map(|(wrong, _)| wrong).sum::<f64>() / executed);
        } else {
            let why = match self.context.branches {
                true => "it has no recorded branches",
                false => "branches were not recorded: they cannot take much of the time",
            };
            row.reasons.insert("mispredicted".to_owned(), why.to_owned());
        }
        if self.context.counted.loads(&row.module, own.clone()).next().is_none() {
            let why = match self.loads {
                true => "it has no recorded loads",
                false => "loads were not recorded: nothing was left that they could explain",
            };
            row.reasons.insert("loads".to_owned(), why.to_owned());
        }
    }

    fn instruction(&self, module: &str, line: &AnnotatedLine) -> Instruction {
        let at = line.address..line.address + 1;
        let counted = self.context.counted;
        let branch = counted.branches(module, at.clone()).find_map(mispredicted);
        let load = counted.loads(module, at).next();
        Instruction {
            address: line.address.into(),
            bytes: line.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: line.text.clone(),
            samples: line.samples,
            share: line.share,
            critical: false,
            source: line.source.clone(),
            mispredicted: branch.filter(|(_, all)| *all > 0.0).map(|(wrong, all)| wrong / all),
            levels: load.map_or_else(Vec::new, |load| load.levels.clone()),
            causes: None,
        }
    }

    /// Marks the loop-carried critical path of a loop of one block.
    fn critical(&mut self, row: &mut Row, bytes: &[u8]) {
        let core = &self.model.core;
        let settings =
            Settings { window: Window::of(core).entries, runs: RUNS, initial_values: Vec::new() };
        let found = Code::of_bytes(bytes, core.facts());
        let found = found.map(|code| self.analyser.analyse(&code, &settings).recurrences);
        let Some(longest) = found.ok().and_then(|all| all.into_iter().next()) else {
            let why = "no loop-carried dependency".to_owned();
            row.reasons.insert("critical_cycles".to_owned(), why);
            return;
        };
        row.critical_cycles = Some(longest.middle);
        for edge in &longest.path {
            if let Some(on_it) = row.code.get_mut(edge.reader) {
                on_it.critical = true;
            }
        }
    }
}

/// Mispredictions of a branch and its executions, where both are known.
fn mispredicted(row: &BranchRow) -> Option<(f64, f64)> {
    Some((row.mispredicted.as_ref()?.value, row.executions? as f64))
}

/// Shares are rounded to this fraction of one, as documents have many instructions.
const STEPS: f64 = 1e4;

/// The evidence of an instruction.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    slots: f64,
    mispredicted: f64,
    critical: f64,
    missed: f64,
    samples: f64,
}

/// Enters the share of the row's parts that each of its instructions has; `bytes` are theirs.
fn enter_causes(row: &mut Row, bytes: &[u8], context: &Context) {
    let found = attribute(&row.parts, &weights(row, bytes, context));
    row.code.iter_mut().zip(found).for_each(|(one, causes)| one.causes = Some(causes));
}

fn weights(row: &Row, bytes: &[u8], context: &Context) -> Vec<Weight> {
    let code = Code::of_bytes(bytes, context.shared.core.facts()).ok();
    let uops = code.as_ref().zip(context.shared.ports.as_ref());
    let uops = uops.map(|(code, ports)| ports.uops(&code.instructions, &code.effects));
    let slots = |number: usize| match &uops {
        Some(all) => all.get(number).and_then(Option::as_ref).map_or(1.0, |one| one.slots),
        None => 1.0,
    };
    let weight = |(number, one): (usize, &Instruction)| {
        let at = one.address.0;
        let counted = context.counted;
        let entries = counted.entries(&row.module, at).unwrap_or(0) as f64;
        let wrong =
            |of: &BranchRow| of.mispredicted.as_ref().map(|of| of.cycles.unwrap_or(of.value));
        let missed = |of: &LoadRow| latency::beyond_first(of, counted.count);
        Weight {
            slots: slots(number) * entries,
            mispredicted: counted.branches(&row.module, at..at + 1).filter_map(wrong).sum(),
            critical: f64::from(u8::from(one.critical)),
            missed: counted.loads(&row.module, at..at + 1).map(missed).sum(),
            samples: one.samples as f64,
        }
    };
    row.code.iter().enumerate().map(weight).collect()
}

/// Attributes each part to instructions, by their weights.
fn attribute(parts: &Parts, weights: &[Weight]) -> Vec<Causes> {
    let equal = 1.0 / weights.len().max(1) as f64;
    let by = |pick: fn(&Weight) -> f64| -> Option<Vec<f64>> {
        let all: f64 = weights.iter().map(pick).sum();
        (all > 0.0).then(|| weights.iter().map(|one| pick(one) / all).collect())
    };
    let sampled = by(|one| one.samples).unwrap_or_else(|| vec![equal; weights.len()]);
    let or_sampled = |pick| by(pick).unwrap_or_else(|| sampled.clone());
    let slots = or_sampled(|one| one.slots);
    let wrong = or_sampled(|one| one.mispredicted);
    let critical = or_sampled(|one| one.critical);
    let missed = or_sampled(|one| one.missed);
    let round = |value: f64| (value * STEPS).round() / STEPS;
    let one = |at: usize| Causes {
        retiring: round(parts.retiring.value * slots[at]),
        bad_speculation: round(parts.bad_speculation.value * wrong[at]),
        frontend_bound: round(
            (parts.fetch_latency.value + parts.fetch_bandwidth.value) * sampled[at],
        ),
        backend_bound: round(
            parts.core_bound.value * critical[at] + parts.memory_bound.value * missed[at],
        ),
        unexplained: round(parts.unexplained.value * sampled[at]),
    };
    (0..weights.len()).map(one).collect()
}

/// The instructions of a line by address, each with the loop or block that it is in.
type LineCode<'a> = BTreeMap<Address, (&'a Instruction, &'a Row)>;

/// The lines of a function with samples, in order of file and number. `pieces` are its loops and blocks with their
/// instructions, the smallest first: an instruction is of the first that has it.
fn lines(pieces: &[&Row], sources: &mut Sources) -> Vec<SourceLine> {
    let mut by_line: BTreeMap<(&str, u32), LineCode> = BTreeMap::new();
    let mut seen: HashSet<Address> = HashSet::new();
    for piece in pieces {
        for one in &piece.code {
            let is_new = seen.insert(one.address);
            if let Some((file, line)) = one.source.as_ref().filter(|_| is_new) {
                let own = by_line.entry((file, *line)).or_default();
                own.insert(one.address, (one, piece));
            }
        }
    }
    let row = |((file, line), code): ((&str, u32), LineCode)| {
        let of = |(one, piece): &(&Instruction, &Row)| (one.share, piece.parts.clone());
        let weighted: Vec<(f64, Parts)> = code.values().map(of).collect();
        let share = weighted.iter().map(|(share, _)| share).sum();
        let mut named = code.values().filter(|(one, _)| one.samples > 0).map(|(_, p)| p.bottleneck);
        let first = named.next().unwrap_or_default();
        let is_one = named.all(|other| other == first);
        SourceLine {
            file: file.to_owned(),
            line,
            text: sources.line(file, line),
            share,
            bottleneck: if is_one { first } else { Bottleneck::default() },
            parts: mean(&weighted),
            code: code.values().map(|(one, _)| (*one).clone()).collect(),
        }
    };
    by_line.into_iter().map(row).filter(|line| line.share > 0.0).collect()
}

/// The mean of parts, by their weights; a part with several sources has none of them.
fn mean(of: &[(f64, Parts)]) -> Parts {
    let mut mean = Parts::sum(of.iter().map(|(weight, parts)| (*weight, parts)));
    for part in Part::every() {
        let Some(share) = mean.get(part).cloned() else { continue };
        let mut known = of.iter().filter_map(|(_, parts)| parts.get(part));
        let first = known.next().map(|share| share.source);
        let is_one = known.all(|other| Some(other.source) == first);
        let source = match is_one || !share.has_value() {
            true => share.source,
            false => ShareSource::Several,
        };
        mean.set(part, Share { source, reason: None, ..share });
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of Retiring 0.2 the load has 2 of 4 slots, Memory Bound 0.5 is all the load's, Bad Speculation 0.1 the
    /// branch's, Core Bound 0.1 the critical addition's; what is unexplained, 0.1, goes where the samples are.
    #[test]
    fn parts_go_to_the_instructions_that_cause_them() {
        let share = |value| Share { value, ..Share::default() };
        let parts = Parts {
            retiring: share(0.2),
            bad_speculation: share(0.1),
            core_bound: share(0.1),
            memory_bound: share(0.5),
            unexplained: share(0.1),
            ..Parts::default()
        };
        let load = Weight { slots: 2.0, missed: 7.0, ..Weight::default() };
        let add = Weight { slots: 1.0, critical: 1.0, samples: 4.0, ..Weight::default() };
        let branch = Weight { slots: 1.0, mispredicted: 3.0, ..Weight::default() };
        let found = attribute(&parts, &[load, add, branch]);
        let list = |of: &Causes| {
            [of.retiring, of.bad_speculation, of.frontend_bound, of.backend_bound, of.unexplained]
        };
        assert_eq!(list(&found[0]), [0.1, 0.0, 0.0, 0.5, 0.0]);
        assert_eq!(list(&found[1]), [0.05, 0.0, 0.0, 0.1, 0.1]);
        assert_eq!(list(&found[2]), [0.05, 0.1, 0.0, 0.0, 0.0]);
    }

    /// By hand: 0.8 unexplained and no samples: 0.4 each.
    #[test]
    fn without_evidence_all_have_the_same() {
        let unexplained = Share { value: 0.8, ..Share::default() };
        let parts = Parts { unexplained, ..Parts::default() };
        let found = attribute(&parts, &[Weight::default(), Weight::default()]);
        assert!(found.iter().all(|one| one.unexplained == 0.4), "{found:?}");
        assert!(attribute(&parts, &[]).is_empty());
    }

    fn piece(bottleneck: Part, memory: f64, code: &[(u64, u32, f64)]) -> Row {
        let one = |(address, line, share): &(u64, u32, f64)| Instruction {
            address: Address(*address),
            samples: (share * 100.0) as u64,
            share: *share,
            source: Some(("a.c".to_owned(), *line)),
            ..Instruction::default()
        };
        let memory_bound = Share { value: memory, ..Share::default() };
        Row {
            bottleneck: bottleneck.into(),
            parts: Parts { memory_bound, ..Parts::default() },
            code: code.iter().map(one).collect(),
            ..Row::default()
        }
    }

    /// By hand: line 1 has 0.3 of memory 0.8 and 0.1 of memory 0.4, so (0.24 + 0.04) / 0.4 = 0.7. The outer loop's
    /// copy of the inner instruction does not count twice.
    #[test]
    fn a_line_has_the_weighted_parts_of_its_pieces() {
        let inner = piece(Part::MemoryBound, 0.8, &[(0x10, 1, 0.3)]);
        let outer = piece(Part::CoreBound, 0.4, &[(0x8, 1, 0.1), (0x10, 1, 0.3), (0x18, 2, 0.2)]);
        let found = lines(&[&inner, &outer], &mut Sources::new(&[], "none"));
        assert_eq!(found.len(), 2);
        assert!((found[0].share - 0.4).abs() < 1e-12, "{:?}", found[0]);
        assert!((found[0].parts.memory_bound.value - 0.7).abs() < 1e-12, "{:?}", found[0]);
        assert_eq!((found[0].bottleneck, found[0].code.len()), (Bottleneck(None), 2));
        let core = Bottleneck::from(Part::CoreBound);
        assert_eq!((found[1].bottleneck, found[1].text.clone()), (core, None));
    }
}
