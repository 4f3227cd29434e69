//! Counts and samples of a command → what bounds a loop whose misses are prefetched. The path that most of its
//! iterations take is measured as one block.

use super::candidates::{Candidate, NoCycles, place};
use super::rows::Host;
use super::served::served;
use crate::loop_path::{body, decoded};
use isa::flow::{Edge, Flow, Loop};
use loads::latency::Level;
use loads::prefetch::{Advice, Misses, Pace, Probed, Site, Taken};
use profile::code::Code;
use profile::event::EventKind;
use report::documents::count::{Count, LoadRow};
use report::documents::prefetch::AdviceRow;
use std::collections::HashMap;
use std::ops::Range;

/// Loads with fewer executions an iteration are no part of its misses.
const RARE: f64 = 0.01;
/// Loads whose misses are not known that are named.
const NAMED: usize = 3;

/// Bounds of the loops around a load.
pub(super) struct Bounds {
    /// That.
    pub pace: Pace,
    /// By loop: the loads whose misses are not known, and why.
    unknown: Vec<Option<String>>,
}

/// Bounds of the loops around a load; `probed` are its own timed executions.
pub(super) fn bounds(counts: &Count, one: &Candidate, probed: &Probed, host: &Host) -> Bounds {
    let module = &one.load.0.0;
    let levels = one.access.iter().flat_map(|access| &access.levels);
    let loops = levels.zip(&one.loops).map(|(level, ranges)| {
        let head = |own: &&report::documents::count::LoopRow| {
            own.module == *module && own.head.0 == level.head
        };
        let iterations = counts.loops.iter().find(head).and_then(|own| own.iterations);
        (iterations.filter(|n| *n > 0).map(|n| n as f64), ranges)
    });
    let loops: Vec<(Option<f64>, &Vec<Range<u64>>)> = loops.collect();
    // Loops around one that was not counted are of no use.
    let counted = loops.iter().map_while(|(n, ranges)| Some(((*n)?, *ranges)));
    let level = probed.slowest_level();
    let misses = counted.map(|(n, ranges)| misses(counts, module, ranges, n, level));
    let (misses, unknown) = misses.unzip();
    let taken = loops.first().and_then(|(n, ranges)| taken(counts, module, ranges, (*n)?, host));
    Bounds { pace: Pace { in_flight: host.in_flight_cycles(), misses, taken }, unknown }
}

/// Executions of loads in the code of a loop that this level, or a slower one, serves, in each of its iterations; and
/// the loads of which that is not known.
fn misses(
    counts: &Count,
    module: &str,
    code: &[Range<u64>],
    iterations: f64,
    level: Option<Level>,
) -> (Misses, Option<String>) {
    let is_inside = |row: &&LoadRow| row.module == module && inside(code, row.address.0);
    let (mut sum, mut unknown) = (0.0, Vec::new());
    for row in counts.loads.iter().filter(is_inside) {
        let why = match (row.executions, row.levels.is_empty()) {
            (Some(n), false) => {
                let all = served(row, 0.0, 1.0);
                let slow = all.iter().skip_while(|one| Some(one.level) != level);
                sum += n as f64 * slow.map(|one| one.share).sum::<f64>();
                continue;
            }
            // If all of them missed it would matter as little.
            (Some(n), true) if (n as f64) < RARE * iterations => continue,
            (Some(_), true) => row.reasons.last().map_or("it was not timed", String::as_str),
            (None, _) => "it was not counted",
        };
        unknown.push(format!("{} ({why})", row.address));
    }
    let more = match unknown.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    unknown.truncate(NAMED);
    let misses = Misses { at_least: sum / iterations, is_bound: !unknown.is_empty() };
    (misses, (!unknown.is_empty()).then(|| format!("of {}{more}", unknown.join(", "))))
}

/// The time of an iteration, by the samples of its code.
fn taken(
    counts: &Count,
    module: &str,
    code: &[Range<u64>],
    iterations: f64,
    host: &Host,
) -> Option<Taken> {
    let hot = counts.hot.as_ref()?;
    let unit = match EventKind::of(&hot.event) {
        EventKind::Time | EventKind::Clock => host.cycles_per_ns,
        EventKind::Cycles | EventKind::SomeCycles => 1.0,
        EventKind::Other => return None,
    };
    let own = counts.blocks.iter();
    let own = own.filter(|block| block.module == module && inside(code, block.start.0));
    let samples = own.map(|block| block.samples).sum::<Option<u64>>()?;
    Some(Taken { cycles: samples as f64 * hot.period? * unit / iterations, samples })
}

fn inside(code: &[Range<u64>], at: u64) -> bool {
    code.iter().any(|range| range.contains(&at))
}

/// Adds it to a row.
pub(super) fn add(row: &mut AdviceRow, advice: &Advice, Bounds { pace, unknown }: &Bounds) {
    let number = usize::from(advice.site == Ok(Site::Outer));
    let misses = pace.misses.get(number);
    row.misses = misses.filter(|one| !one.is_bound).map(|one| one.at_least);
    row.taken = pace.taken.map(|taken| taken.cycles);
    row.taken_range = pace.taken.and_then(|taken| taken.range());
    row.taken_samples = pace.taken.map(|taken| taken.samples);
    if row.refused.is_some() {
        return;
    }
    let unknown = match unknown.get(number) {
        Some(unknown) => unknown.clone(),
        None => Some("how often its loop runs was not counted".to_owned()),
    };
    if let Some(why) = unknown {
        row.misses_at_least = misses.map(|one| one.at_least);
        row.unknown.push(format!("misses: {why}"));
    }
    row.speedup_at_most = advice.speedup;
    if pace.taken.is_none() {
        row.unknown.push("gain: what an iteration takes in the program was not sampled".to_owned());
    }
    if let Ok(iteration) = &advice.iteration
        && advice.ic.as_ref().ok() != Some(iteration)
    {
        row.iteration = Some(iteration.cycles);
        row.iteration_source = Some(iteration.source.clone());
    }
}

/// Code of an iteration.
pub(super) struct Iteration {
    /// Where the loop begins.
    pub start: u64,
    /// The code, without the jumps between its blocks.
    pub code: Vec<u8>,
    /// Where it is from, in words.
    pub source: String,
}

/// An iteration of the innermost loop around a load: the loop's block, or the blocks that counts of edges lead through.
pub(super) fn most_frequent(
    code: &mut [Code],
    counts: &Count,
    one: &Candidate,
) -> Result<Iteration, NoCycles> {
    if let Ok((start, code)) = &one.body {
        let source = "measured block".to_owned();
        return Ok(Iteration { start: *start, code: code.clone(), source });
    }
    let (code, at) = place(code, &one.load.0, one.load.1).ok_or(NoCycles::NoCode)?;
    let flow = code.flow(at).ok_or(NoCycles::NoCode)?;
    let innermost = flow.block_at(at.address).and_then(|number| flow.blocks[number].innermost);
    let own = innermost.and_then(|number| flow.loops.get(number)).ok_or(NoCycles::NoLoop)?;
    let path = path(&flow, own, &edges(counts, &one.load.0.0))?;
    let inst = |range: std::ops::Range<u64>| -> Vec<u8> {
        let inside = flow.instructions.iter().filter(|(at, _)| range.contains(at));
        inside.flat_map(|(_, inst)| inst.bytes.iter().copied()).collect()
    };
    let blocks = path.iter().map(|number| &flow.blocks[*number]);
    let parts: Vec<(u64, Vec<u8>)> =
        blocks.map(|block| (block.start, inst(block.start..block.end))).collect();
    let all = decoded(&parts)?;
    let mut lines: Vec<(u64, &isa::code::Inst)> = Vec::new();
    for (start, bytes) in &parts {
        let end = start + bytes.len() as u64;
        let mut own: Vec<_> = all.iter().filter(|(at, _)| (*start..end).contains(*at)).collect();
        own.sort_by_key(|(at, _)| **at);
        lines.extend(own.into_iter().map(|(at, inst)| (*at, inst)));
    }
    let start = flow.blocks[own.head].start;
    let source = format!(
        "measured block: the most frequent path of {} of {} blocks, without its jumps",
        path.len(),
        own.blocks.len()
    );
    Ok(Iteration { start, code: body(&lines, start)?, source })
}

/// The loop's blocks from its head on, by the edge that was taken most often.
fn path(flow: &Flow, own: &Loop, taken: &HashMap<(u64, u64), u64>) -> Result<Vec<usize>, NoCycles> {
    let (mut number, mut path) = (own.head, Vec::new());
    while path.len() <= own.blocks.len() {
        let block = &flow.blocks[number];
        path.push(number);
        let next = block.edges.iter().filter_map(|edge| match edge {
            Edge::Block(to) => Some(*to).filter(|to| own.blocks.contains(to)),
            Edge::Outside(_) => None,
        });
        let times = |to: &usize| taken.get(&(block.start, flow.blocks[*to].start)).copied();
        number = next.max_by_key(times).ok_or(NoCycles::Leaves)?;
        if number == own.head {
            return Ok(path);
        }
    }
    Err(NoCycles::Nested)
}

/// How often each edge of a module was taken.
fn edges(counts: &Count, module: &str) -> HashMap<(u64, u64), u64> {
    let own = counts.edges.iter().filter(|edge| edge.module == module);
    own.filter_map(|edge| Some(((edge.from.0, edge.to.0), edge.count?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::LevelShare;

    fn load(at: u64, executions: Option<u64>, dram: Option<f64>) -> LoadRow {
        let level = |share| LevelShare { level: Level::Memory, share, ..LevelShare::default() };
        LoadRow {
            module: "/a".to_owned(),
            address: at.into(),
            executions,
            levels: dram.into_iter().map(level).collect(),
            reasons: vec!["latency: it is atomic".to_owned()],
            ..LoadRow::default()
        }
    }

    /// Uncounted or untimed misses are not 0 misses.
    #[test]
    fn misses_of_loads_that_are_not_known_are_a_bound() {
        let known = load(0x10, Some(1000), Some(0.5));
        let with = |more: &[LoadRow]| {
            let loads = [std::slice::from_ref(&known), more].concat();
            let counts = Count { loads, ..Count::default() };
            misses(&counts, "/a", std::slice::from_ref(&(0x10..0x40)), 1000.0, Some(Level::Memory))
        };
        assert_eq!(with(&[]), (Misses { at_least: 0.5, is_bound: false }, None));
        let outside = load(0x50, None, None);
        assert_eq!(with(&[outside]).1, None);
        let bound = Misses { at_least: 0.5, is_bound: true };
        let uncounted = with(&[load(0x18, None, Some(0.9))]);
        assert_eq!(uncounted, (bound, Some("of 0x18 (it was not counted)".to_owned())));
        let untimed = with(&[load(0x20, Some(1000), None), load(0x28, Some(3), None)]);
        assert_eq!(untimed.1.as_deref(), Some("of 0x20 (latency: it is atomic)"));
    }
}
