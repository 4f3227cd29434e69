//! Counts and samples of a command → what bounds a loop whose misses are prefetched.

use super::candidates::Candidate;
use super::path::address;
use super::rows::Host;
use crate::documents::count::{Count, LoadRow};
use crate::documents::prefetch::AdviceRow;
use loads::prefetch::{Advice, Pace, Probed, Site, Taken};
use std::ops::Range;

/// What bounds the loops around a load; `probed` are its own timed executions.
pub(super) fn pace(counts: &Count, one: &Candidate, probed: &Probed, host: &Host) -> Pace {
    let module = &one.load.0.0;
    let levels = one.access.iter().flat_map(|access| &access.levels);
    let loops = levels.zip(&one.loops).map(|(level, ranges)| {
        let head = |own: &&crate::documents::count::LoopRow| {
            own.module == *module && address(&own.head) == Some(level.head)
        };
        let iterations = counts.loops.iter().find(head).and_then(|own| own.iterations);
        (iterations.filter(|n| *n > 0).map(|n| n as f64), ranges)
    });
    let loops: Vec<(Option<f64>, &Vec<Range<u64>>)> = loops.collect();
    // Loops around one that was not counted are of no use.
    let counted = loops.iter().map_while(|(n, ranges)| Some(((*n)?, *ranges)));
    let level = probed.slowest_level().unwrap_or_default();
    let misses = counted.map(|(n, ranges)| misses(counts, module, ranges, level) / n).collect();
    let taken = loops.first().and_then(|(n, ranges)| taken(counts, module, ranges, (*n)?, host));
    Pace { in_flight: host.in_flight_cycles(), misses, taken }
}

/// Executions of loads in some code that this level, or a slower one, serves.
fn misses(counts: &Count, module: &str, code: &[Range<u64>], level: &str) -> f64 {
    let is_inside = |row: &&LoadRow| {
        row.module == module && address(&row.address).is_some_and(|at| inside(code, at))
    };
    let own = counts.loads.iter().filter(is_inside).map(|row| {
        let slow = row.levels.iter().skip_while(|one| one.level != level);
        row.executions.unwrap_or(0) as f64 * slow.map(|one| one.share).sum::<f64>()
    });
    own.sum()
}

/// What an iteration takes, by the samples of its code.
fn taken(
    counts: &Count,
    module: &str,
    code: &[Range<u64>],
    iterations: f64,
    host: &Host,
) -> Option<Taken> {
    let hot = counts.hot.as_ref()?;
    let unit = match hot.event.as_str() {
        clock if clock.contains("clock") => host.cycles_per_ns,
        cycles if cycles.contains("cycles") => 1.0,
        _ => return None,
    };
    let own = counts.blocks.iter().filter(|block| {
        block.module == module && address(&block.start).is_some_and(|at| inside(code, at))
    });
    let samples = own.map(|block| block.samples).sum::<Option<u64>>()?;
    Some(Taken { cycles: samples as f64 * hot.period? * unit / iterations, samples })
}

fn inside(code: &[Range<u64>], at: u64) -> bool {
    code.iter().any(|range| range.contains(&at))
}

/// Adds it to a row.
pub(super) fn add(row: &mut AdviceRow, advice: &Advice, pace: &Pace) {
    let number = usize::from(advice.site == Ok(Site::Outer));
    row.misses = pace.misses.get(number).copied();
    row.taken = pace.taken.map(|taken| taken.cycles);
    row.speedup_at_most = advice.speedup.filter(|_| row.refused.is_none());
    if let (Ok(iteration), None) = (&advice.iteration, &row.refused)
        && advice.ic.as_ref().ok() != Some(iteration)
    {
        row.iteration = Some(iteration.cycles);
        row.iteration_source = Some(iteration.source.clone());
    }
}
