//! Contention for cache lines, as recorded addresses show it: its code, its lines, and notes on both.

use super::compared::{around, contending, kind, waited};
use super::evidence::Context;
use super::known::Known;
use super::pieces::Function;
use estimate::{Part, Parts};
use report::documents::count::{ContendedLine, Contention, Count};
use report::format::seconds;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tma::text::several;

/// The code with stores, by file, and its samples. In isolation nobody contends for their lines, and what they take there,
/// as locked instructions or by store forwarding, may seem to explain them.
pub(super) fn storing(functions: &[Function]) -> (Vec<(&str, Range<u64>)>, u64) {
    let (mut found, mut samples) = (Vec::new(), 0);
    for at in functions.iter().flat_map(Function::pieces) {
        let blocks = at.piece.blocks.iter().filter(|block| at.function.stores(**block));
        let before = found.len();
        found.extend(blocks.map(|block| (at.function.module.as_str(), at.function.range(*block))));
        samples += if found.len() > before { at.piece.samples } else { 0 };
    }
    (found, samples)
}

/// The share of the samples in code that accesses lines for which threads contend.
pub(super) fn share(known: &Known, counts: &Count) -> f64 {
    let lines = &counts.contended_lines;
    let pieces = known.functions.iter().flat_map(Function::pieces);
    let own = pieces.filter(|at| kind(lines, &at.function.module, &around(*at)).is_some());
    own.map(|at| at.piece.samples as f64).sum::<f64>() / known.shared.samples.max(1) as f64
}

/// The lines that threads contend for, of kinds that cost something, as far as that is known.
pub(super) fn lines(context: &Context, parts: &Parts) -> Vec<ContendedLine> {
    let is_known = context.pinned.as_ref().map(|run| run.failed.is_none());
    let costs = |line: &ContendedLine| {
        // Not `of`, which has the whole of Memory Bound where the kind has no part of its own.
        let share = parts.get(Part::contending(contending(line.contention)));
        share.is_some_and(|share| share.value > 0.0)
    };
    let all = context.counted.count.contended_lines.iter();
    let all = all.filter(|line| is_known.is_some_and(|is_known| !is_known || costs(line)));
    all.cloned().collect()
}

/// Why its cost is not known; the time that threads wait for locks in the kernel, which had this share.
pub(super) fn notes(context: &Context, kernel: f64) -> Vec<String> {
    let Some(run) = &context.pinned else { return Vec::new() };
    let unknown = run.failed.as_ref().map(|why| {
        let lines = several(context.counted.count.contended_lines.len(), "cache line");
        format!("threads contend for {lines}; what that costs is not known: {why}")
    });
    let task = context.shared.cycles / (context.shared.clock.ghz * 1e9);
    let waits = waited(run, task, kernel).map(|less| {
        format!(
            "on one CPU the command spends {} less in the kernel, {:.0} % of its processor time: its threads probably wait for locks",
            seconds(less),
            100.0 * less / task
        )
    });
    unknown.into_iter().chain(waits).chain(several_kinds(context)).collect()
}

/// The functions that contend for lines in several ways.
fn several_kinds(context: &Context) -> Option<String> {
    let mut kinds: BTreeMap<&str, BTreeSet<Contention>> = BTreeMap::new();
    for line in &context.counted.count.contended_lines {
        for access in &line.accesses {
            kinds.entry(&access.function).or_default().insert(line.contention);
        }
    }
    let names: Vec<&str> =
        kinds.into_iter().filter(|(_, kinds)| kinds.len() > 1).map(|(name, _)| name).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("of lines that {names} contends for in several ways, all time is that of the most frequent one")
    })
}
