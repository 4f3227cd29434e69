//! Exact counts as text and in callgrind's format. `loads` has loads, `mispredicted` modelled mispredictions and
//! registers.

mod loads;
mod mispredicted;

use crate::documents::count::{
    BlockRow, Count, How, LoopRow, ProbeKind, Refused, Trips, TripsSource,
};
use crate::documents::flame::{Costs, FunctionCosts, FunctionId, LineCosts};
use crate::render::formats;
use crate::render::width::{Page, Subject, Worth, more_in_json};
use loads::loads;
use mispredicted::{FEW, branches, values};
use profile::symbols::demangle::demangle_short;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Rows of blocks and loops in text.
const MOST: usize = 40;
/// Rows of blocks without a count.
const MOST_REFUSED: usize = 10;
/// Entries of the hottest block, as a multiple of [`FEW`], from which blocks with few are left to `verbose`.
const HOT: u64 = 100;

/// The document as text: the blocks that were entered most often, the loops, what has no count; `verbose` shows rows of
/// few executions and what the model rests on, too.
pub fn text(document: &Count, page: Page, verbose: bool) -> String {
    let mut out = String::new();
    hot(document, page, &mut out);
    let mut blocks: Vec<&BlockRow> = document.blocks.iter().filter(|b| b.count > 0).collect();
    blocks.sort_by(|a, b| b.count.cmp(&a.count).then(a.start.cmp(&b.start)));
    if blocks.is_empty() && !document.blocks.is_empty() {
        // A note says why, and the summary what could have been counted.
        summary(document, verbose, &mut out);
        return page.fitted(out);
    }
    let cells = |entries: String, how: &str| {
        [(Worth::All, format!("{entries:>14}")), (Worth::Little, format!("  {how:<8}"))]
    };
    page.heading(&mut out, &cells("entries".to_owned(), "how"), "block");
    let is_hot = blocks.first().is_some_and(|first| first.count >= HOT * FEW);
    let all = blocks.len();
    blocks.retain(|block| verbose || !is_hot || block.count >= FEW);
    let few = all - blocks.len();
    for block in blocks.iter().take(MOST) {
        let how = block.probe.map_or_else(|| block.how.to_string(), |probe| probe.to_string());
        let place = format!("{}..{}", block.start, block.end);
        let subject =
            Subject { place: &place, name: &demangle_short(&block.function), ..Subject::default() };
        page.row(&mut out, &cells(block.count.to_string(), &how), subject);
    }
    more_in_json(&mut out, blocks.len().saturating_sub(MOST), "blocks");
    if few > 0 {
        let _ = writeln!(out, "{few:>14}  blocks with under {FEW} entries each (-v)");
    }
    refused(document, page, &mut out);
    loops(document, page, &mut out);
    branches(document, page, verbose, &mut out);
    loads(document, page, &mut out);
    values(document, page, &mut out);
    summary(document, verbose, &mut out);
    how(&blocks[..blocks.len().min(MOST)], &mut out);
    if out.split_whitespace().any(|cell| cell == "?") {
        out.push_str("?: not known\n");
    }
    page.fitted(out)
}

/// Blocks and functions without a count: those of functions that ran first.
fn refused(document: &Count, page: Page, out: &mut String) {
    let ran = ran(document);
    let has_run = |r: &Refused| ran.contains(&(r.module.as_str(), r.function.as_str()));
    let mut rows: Vec<&Refused> = document.refused.iter().collect();
    rows.sort_by_key(|row| !has_run(row));
    for row in rows.iter().take(MOST_REFUSED) {
        let cells =
            [(Worth::All, format!("{:>14}", "?")), (Worth::Little, format!("  {:<8}", "none"))];
        let (name, why) = (demangle_short(&row.function), format!(": {}", row.reason));
        page.row(out, &cells, Subject { place: &row.start.to_string(), name: &name, after: &why });
    }
    more_in_json(out, rows.len().saturating_sub(MOST_REFUSED), "without a count");
}

/// Meaning of the shown words of the column `how`.
fn how(blocks: &[&BlockRow], out: &mut String) {
    let probes = [
        (ProbeKind::Retarget, "a call goes through the probe"),
        (ProbeKind::Single, "a jump to the probe replaces one instruction"),
        (ProbeKind::Multi, "it replaces several"),
        (
            ProbeKind::Pun,
            "a jump over a shorter instruction, whose last bytes are those of the next one",
        ),
    ];
    let is_shown = |probe| blocks.iter().any(|block| block.probe == Some(probe));
    let mut shown: Vec<String> = probes
        .into_iter()
        .filter(|(probe, _)| is_shown(*probe))
        .map(|(probe, meaning)| format!("{probe}: {meaning}"))
        .collect();
    if blocks.iter().any(|block| block.how == How::Derived) {
        shown.push(format!("{}: no probe: from the counts around it", How::Derived));
    }
    if !shown.is_empty() {
        let _ = writeln!(out, "how: {}", shown.join("; "));
    }
}

/// How the functions were chosen.
fn hot(document: &Count, page: Page, out: &mut String) {
    let Some(hot) = &document.hot else { return };
    let (percent, samples) = (100.0 * hot.asked, hot.samples);
    let _ =
        writeln!(out, "functions that hold {percent:.0} % of {samples} samples of {}", hot.event);
    for row in &hot.functions {
        let not = row.reason.as_ref().map_or(String::new(), |why| format!(" (not counted: {why})"));
        let file = row.module.rsplit('/').next().unwrap_or_default();
        let cells = [(Worth::All, format!("{:>13.1}%", 100.0 * row.share))];
        let (name, after) = (demangle_short(&row.function), format!(" {file}{not}"));
        page.row(out, &cells, Subject { name: &name, after: &after, ..Subject::default() });
    }
    out.push('\n');
}

/// The most frequent trips, where executions of the loop were seen from beginning to end.
fn most_frequent(trips: &Trips) -> String {
    let all: u64 = trips.histogram.iter().map(|(_, n)| n).sum();
    let mut sorted = trips.histogram.clone();
    sorted.sort_by_key(|(trips, n)| (std::cmp::Reverse(*n), *trips));
    let share = |n: u64| 100.0 * n as f64 / all.max(1) as f64;
    let shown = sorted.iter().take(3).map(|(trips, n)| format!("{trips} ({:.0} %)", share(*n)));
    match sorted.is_empty() {
        true => String::new(),
        false => {
            let of = if trips.source == Some(TripsSource::Sampled) { ", sampled" } else { "" };
            format!("  trips{of}: {}", shown.collect::<Vec<_>>().join(", "))
        }
    }
}

fn loops(document: &Count, page: Page, out: &mut String) {
    let ran = ran(document);
    let run = |one: &&LoopRow| match one.iterations {
        Some(number) => number > 0,
        None => ran.contains(&(one.module.as_str(), one.function.as_str())),
    };
    let mut loops: Vec<_> = document.loops.iter().filter(run).collect();
    if loops.is_empty() {
        return;
    }
    loops.sort_by(|a, b| b.iterations.cmp(&a.iterations).then(a.head.cmp(&b.head)));
    let more = loops.len().saturating_sub(MOST);
    let cells = |iterations: &str, entries: &str, each: &str| {
        [
            (Worth::All, format!("{iterations:>14}")),
            (Worth::Little, format!("  {entries:>12}")),
            (Worth::Some, format!("  {each:>10}")),
        ]
    };
    out.push('\n');
    page.heading(out, &cells("iterations", "entries", "each"), "loop, by its head");
    for one in loops.into_iter().take(MOST) {
        let number = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
        let mean = one.trips.mean.map_or("?".to_owned(), |mean| format!("{mean:.1}"));
        let (iterations, entries) = (number(one.iterations), number(one.entries));
        let trips = most_frequent(&one.trips);
        let why = one.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let (name, after) = (demangle_short(&one.function), format!("{trips}{why}"));
        let subject = Subject { place: &one.head.to_string(), name: &name, after: &after };
        page.row(out, &cells(&iterations, &entries, &mean), subject);
    }
    more_in_json(out, more, "loops");
}

/// The functions that have a block with entries, by module and name.
fn ran(document: &Count) -> BTreeSet<(&str, &str)> {
    let run = document.blocks.iter().filter(|block| block.count > 0);
    run.map(|block| (block.module.as_str(), block.function.as_str())).collect()
}

fn summary(document: &Count, verbose: bool, out: &mut String) {
    let count = |how| document.blocks.iter().filter(|b| b.how == how).count();
    let _ = writeln!(
        out,
        "\nblocks: {} counted by probes, {} derived, without a count: {}",
        count(How::Placed),
        count(How::Derived),
        document.refused.len()
    );
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    document.refused.iter().for_each(|r| *reasons.entry(&r.reason).or_default() += 1);
    for (reason, number) in reasons {
        let _ = writeln!(out, "  {number:>6}  {reason}");
    }
    let wrong = document.contradictions.len();
    let agree = match wrong {
        0 if document.checked == 0 => "no count is redundant".to_owned(),
        0 => "all agree".to_owned(),
        _ => {
            // The ends of a window cut calls.
            let differ = if document.process.is_some() { "differ" } else { "do not agree" };
            format!("{wrong} {differ}: {}", document.contradictions.join("; "))
        }
    };
    let _ = writeln!(out, "flow conservation: {} sums checked, {agree}", document.checked);
    for cost in &document.cost {
        let ratio = |s: f64| format!(", {:.2} times the {s:.3} s without probes", cost.seconds / s);
        let plain = cost.plain.map_or(String::new(), ratio);
        let probes =
            if cost.probes > 0 { format!(", {} probes", cost.probes) } else { String::new() };
        let what = if document.process.is_some() { "window" } else { "run" };
        let _ = writeln!(out, "cost: {what} of {}{probes}: {:.3} s{plain}", cost.run, cost.seconds);
    }
    let of_model = document.model.iter().filter(|_| verbose);
    for note in document.notes.iter().chain(of_model) {
        let _ = writeln!(out, "note: {note}");
    }
}

/// The document in callgrind's format. A block's instructions are at its first address.
pub fn callgrind(document: &Count) -> String {
    let instructions = |b: &BlockRow| b.count * b.instructions as u64;
    let mut functions: Vec<FunctionCosts> = Vec::new();
    for block in document.blocks.iter().filter(|b| b.count > 0) {
        let (object, name) = (block.module.clone(), block.function.clone());
        let id = FunctionId { object, file: None, name };
        let costs = vec![instructions(block), block.count];
        let line = LineCosts { file: None, position: block.start.to_string(), costs };
        match functions.last_mut().filter(|last| last.id == id) {
            Some(last) => last.lines.push(line),
            None => functions.push(FunctionCosts { id, lines: vec![line], calls: Vec::new() }),
        }
    }
    let sum = |of: &dyn Fn(&BlockRow) -> u64| document.blocks.iter().map(of).sum::<u64>();
    formats::callgrind_text(&Costs {
        command: document.command.join(" "),
        remarks: Vec::new(),
        positions: "instr",
        events: vec!["Ir".to_owned(), "Entries".to_owned()],
        summary: vec![sum(&instructions), sum(&|b| b.count)],
        functions,
    })
}
