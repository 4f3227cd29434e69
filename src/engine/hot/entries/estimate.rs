//! From hits in a window of a live process to how often a block is entered, and how well that is known.

use crate::hot::entries::ratio::scaled;
use pmu::breakpoints::{Counted, Coverage, Outcome};

use std::time::Duration;

/// Window of a live process, for each group of at most four places.
pub(super) const WINDOW: Duration = Duration::from_secs(2);

/// How often a block is entered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entries {
    /// Of the run, or a second.
    pub count: f64,
    /// Half width, as a ratio; `None` where there may have been any number more.
    pub error: Option<f64>,
    /// For people.
    pub how: String,
}

fn too_often(counted: Counted) -> String {
    format!(
        "not known: {} entries were counted in {:.2} s, too many to count them all, and no \
         enclosing reference point was entered often and evenly enough to scale by",
        counted.hits,
        counted.on.as_secs_f64()
    )
}

/// Known entries of enclosing places, with their errors, scaled to the places inside: each time by
/// the ratio of two that were counted together.
fn chain(
    outcome: &Outcome,
    block: usize,
    around: &[usize],
    known: &dyn Fn(usize) -> Option<(f64, f64)>,
) -> Option<(f64, f64)> {
    let mut found: Vec<(usize, f64, f64)> = Vec::new();
    // From the coldest inwards, the block last.
    for &at in around.iter().rev().chain([&block]) {
        let direct = known(at);
        let through = |&(reference, count, error): &(usize, f64, f64)| {
            let together = outcome.together.get(at)?.get(reference)?;
            scaled(together, (count, error))
        };
        let best = found.iter().filter_map(through).min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((count, error)) = direct.or(best) {
            found.push((at, count, error));
        }
    }
    found.into_iter().find(|f| f.0 == block).map(|(_, count, error)| (count, error))
}

/// Entries a second of a live process.
pub(super) fn rate(outcome: &Outcome, places: &[usize]) -> Result<Entries, String> {
    let (&block, around) = places.split_first().ok_or("not counted")?;
    let known = |at: usize| {
        let Counted { hits, on, slowed, .. } = outcome.counted[at];
        // What hits take keeps a program from running if they are all of one thread, and not at all
        // if they are of others: half of it, give or take as much.
        let half = 0.5 * slowed.as_secs_f64();
        let time = on.as_secs_f64() - half;
        let error = (1.0 / (hits.max(1) as f64).sqrt()).hypot(half / (time - half));
        (on >= WINDOW / 10 && hits > 0 && slowed < on / 2).then(|| (hits as f64 / time, error))
    };
    let counted = outcome.counted[block];
    if counted.coverage == Coverage::Never {
        return Err("not counted: its file is not mapped there".to_owned());
    }
    let seconds = WINDOW.as_secs();
    if counted.coverage != Coverage::Windows
        && let Some((count, error)) = known(block)
    {
        let how = format!("a second, from a window of {seconds} s");
        return Ok(Entries { count, error: Some(error), how });
    }
    let around: Vec<usize> = around
        .iter()
        .copied()
        .filter(|a| outcome.counted[*a].coverage != Coverage::Windows)
        .collect();
    let known = |at: usize| if at == block { None } else { known(at) };
    chain(outcome, block, &around, &known)
        .map(|(count, error)| Entries {
            count,
            error: Some(error),
            how: format!(
                "a second, from {} in parts of {seconds} s, scaled by an enclosing reference point",
                counted.hits
            ),
        })
        .ok_or_else(|| too_often(counted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// 3,000 hits in 2 s, which took 0.4 s: 1,500 to 1,875 a second, whether they delayed the
    /// program or other threads alone.
    #[test]
    fn a_rate_covers_what_counting_itself_took() {
        let seconds = Duration::from_secs_f64;
        let counted = Counted {
            hits: 3_000,
            coverage: Coverage::Late,
            on: seconds(2.0),
            slowed: seconds(0.4),
        };
        let outcome = Outcome { counted: vec![counted], ..Outcome::default() };
        let rate = rate(&outcome, &[0]).expect("known");
        let error = rate.error.expect("known") * rate.count;
        assert!(rate.count - error <= 1_500.0 && rate.count + error >= 1_875.0, "{rate:?}");
        assert!(rate.count > 1_500.0 && rate.count < 1_875.0, "{rate:?}");
    }
}
