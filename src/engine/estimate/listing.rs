//! The instructions of the document's loops and blocks, and what counts, branches and loads say of each.

use super::causes;
use super::evidence::Context;
use super::lines::lines;
use crate::core_model::CoreModel;
use crate::hot::source::Sources;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code, Window};
use profile::hot::{Annotated, AnnotatedLine, Profile};
use report::documents::count::BranchRow;
use report::documents::estimate::{Estimate, Row};
use report::documents::estimate_code::Instruction;
use std::ops::Range;

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
        if loops_back {
            self.critical(row, &lines);
        } else {
            let why = "only a loop of one block has one path to follow".to_owned();
            row.reasons.insert("critical_cycles".to_owned(), why);
        }
        causes::enter(row, self.context);
    }

    /// Trips and mispredictions, or why they are not known.
    fn numbers(&self, row: &mut Row, own: &Range<u64>, is_loop: bool) {
        let head = row.head.unwrap_or(own.start.into());
        let of_row =
            |l: &&report::documents::count::LoopRow| l.module == row.module && l.head == head;
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
    fn critical(&mut self, row: &mut Row, lines: &[&AnnotatedLine]) {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| line.bytes.iter().copied()).collect();
        let core = &self.model.core;
        let settings =
            Settings { window: Window::of(core).entries, runs: RUNS, initial_values: Vec::new() };
        let found = Code::of_bytes(&bytes, core.facts());
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
