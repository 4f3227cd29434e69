//! Functions with few samples each → evidence of all of them as one, by the sample of their blocks, and its parts.

use super::ask::DEVIATIONS;
use super::evidence::Context;
use super::footprint::Footprint;
use super::groups::{ENOUGH, MORE};
use super::isolated::{BLOCK_ERROR, Unmeasured};
use estimate::{BoundBy, Divisions, Evidence, Interval, Isolated, Loads, Mispredicted, Reason};
use report::documents::evidence::{Drawn, Tail};
use report::format::count;

/// The kinds of blocks by their bound in isolation.
const BOUNDS: [BoundBy; 4] =
    [BoundBy::Core, BoundBy::FrontEnd, BoundBy::IssueWidth, BoundBy::Unknown];

/// The step of measuring its blocks.
pub(super) const MEASURING: &str = "measuring other code in isolation";

/// The name of the row.
pub(super) fn name(of: &Tail) -> String {
    format!("other code ({} functions)", count(of.functions as f64))
}

/// How it was analysed.
pub(super) fn assumed(of: &Tail) -> String {
    let measured = of.blocks.iter().filter(|one| one.isolated.is_ok()).count();
    format!(
        "`{}` is analysed as one: {:.0} % of its code was counted, and {measured} draws of its blocks, by µops, were measured in isolation",
        name(of),
        100.0 * of.counted
    )
}

/// The evidence of all, by the bound of their blocks in isolation.
pub(super) fn evidence(of: &Tail, context: &Context) -> Vec<Evidence> {
    let shared = context.shared;
    let whole = Interval::relative(
        shared.cycles * of.samples / shared.samples.max(1) as f64,
        DEVIATIONS / of.samples.max(1.0).sqrt(),
    )
    .widened(shared.clock.error);
    let interval = |(value, low, high)| Interval::new(value, low, high);
    let retiring = interval(of.retiring).widened(context.entries_error);
    let first = shared.core.l1_code.map(|cache| cache.bytes());
    let fetch = Footprint::with(of.footprint, first).each().times(of.fetched);
    let unknown = of.unknown.clone();
    let all = Evidence {
        cycles: whole,
        mispredicted: Mispredicted {
            cycles: interval(of.mispredicted).widened(context.entries_error),
            unknown: unknown
                .map(|(most, why)| (most * (1.0 + context.entries_error), Reason::given(why))),
        },
        contention: None,
        isolated: Err(Reason::given(Unmeasured::FewBlocks)),
        other_values: false,
        divisions: Divisions::Unknown,
        certain: context.certain(),
        is_loop: false,
        latency: retiring.value * mean(&of.blocks, |one| Some(one.latency)).value,
        loads: loads(of, retiring.value),
        fetch: fetch.caches,
        translation: fetch.translation,
        retiring: Ok(retiring),
    };
    let measured: Vec<&Drawn> = of.blocks.iter().filter(|one| one.isolated.is_ok()).collect();
    if (measured.len() as f64) < ENOUGH * of.blocks.len() as f64 || measured.is_empty() {
        return vec![all];
    }
    let parts = BOUNDS.into_iter().filter_map(|bound| {
        let own: Vec<&Drawn> =
            measured.iter().copied().filter(|one| one.kind == Some(bound)).collect();
        let share = own.len() as f64 / measured.len() as f64;
        let loads = first_loads(&own);
        let cycles = alone(&of.blocks, bound, share).times(retiring.value);
        let cycles = cycles.widened(BLOCK_ERROR).widened(context.entries_error);
        (!own.is_empty()).then(|| part(&all, share, Isolated { cycles, bound, loads, among: 0.0 }))
    });
    parts.collect()
}

/// Cycles in isolation of the blocks with this bound, which have this share of all retired µops, as a multiple of what
/// all retire: blocks that could not be measured take as much as the others, or up to twice that.
fn alone(blocks: &[Drawn], bound: BoundBy, share: f64) -> Interval {
    let own = |one: &Drawn| {
        let cycles = *one.isolated.as_ref().ok()?;
        Some(if one.kind == Some(bound) { cycles } else { 0.0 })
    };
    let found = mean(blocks, own);
    let measured = blocks.iter().filter(|one| one.isolated.is_ok()).count();
    let missing = 1.0 - measured as f64 / blocks.len().max(1) as f64;
    let low = found.low + missing * (share - found.low).min(0.0);
    Interval::new(found.value, low, found.high + missing * (MORE - 1.0) * found.value)
}

/// The share of the cycles of blocks in isolation in which loads wait for L1 or stores. Blocks are drawn by the µops that
/// they retire, so that each stands for as many of these.
fn first_loads(of: &[&Drawn]) -> f64 {
    let each = |one: &&Drawn| {
        let cycles = one.isolated.as_ref().map_or(0.0, |cycles| cycles / one.retired);
        (cycles, cycles * one.waits)
    };
    let (cycles, waits) = of
        .iter()
        .map(each)
        .filter(|(cycles, _)| cycles.is_finite())
        .fold((0.0, 0.0), |(cycles, waits), (own, wait)| (cycles + own, waits + wait));
    if cycles > 0.0 { waits / cycles } else { 0.0 }
}

/// The part of the evidence of blocks that are alike.
fn part(of: &Evidence, share: f64, isolated: Isolated) -> Evidence {
    let Mispredicted { cycles, unknown } = of.mispredicted.clone();
    let loads = of.loads.clone().map(|loads| Loads {
        at_most: loads.at_most.times(share),
        carried: loads.carried.times(share),
        unknown: loads.unknown * share,
        levels: loads.levels.map(|level| level.times(share)),
    });
    Evidence {
        cycles: of.cycles.times(share),
        retiring: of.retiring.clone().map(|all| all.times(share)),
        mispredicted: Mispredicted {
            cycles: cycles.times(share),
            unknown: unknown.map(|(most, why)| (most * share, why)),
        },
        isolated: Ok(isolated),
        latency: of.latency * share,
        loads,
        fetch: of.fetch * share,
        translation: of.translation * share,
        ..of.clone()
    }
}

/// Latencies of all loads, by those of the drawn blocks.
fn loads(of: &Tail, retired: f64) -> Result<Loads, Reason> {
    let known = |one: &Drawn| one.loads.as_ref().ok().copied();
    if let Some(why) = of.blocks.iter().find_map(|one| one.loads.as_ref().err())
        && of.blocks.iter().filter_map(known).all(|(measured, _)| measured == 0.0)
    {
        return Err(Reason::given(why.clone()));
    }
    // Where there was no time for some, these are like the others.
    let one = |which: fn((f64, f64)) -> f64| {
        let usual = mean(&of.blocks, |one| known(one).map(which).filter(|cycles| *cycles > 0.0));
        mean(&of.blocks, |one| Some(known(one).map_or(usual.value * one.retired, which)))
    };
    let at_most = one(|(measured, _)| measured).times(retired);
    let unknown = one(|(_, unknown)| unknown).high * retired;
    // Those of the drawn blocks are not kept.
    let levels = [Interval::new(0.0, 0.0, at_most.high); 4];
    Ok(Loads { at_most, carried: Interval::default(), unknown, levels })
}

/// The mean of something of the drawn blocks over what they retire, with the error of the sample.
fn mean(blocks: &[Drawn], of: impl Fn(&Drawn) -> Option<f64>) -> Interval {
    let ratio = |one: &Drawn| Some(of(one)? / one.retired).filter(|ratio| ratio.is_finite());
    let all: Vec<f64> = blocks.iter().filter_map(ratio).collect();
    let number = all.len() as f64;
    if all.is_empty() {
        return Interval::default();
    }
    let mean = all.iter().sum::<f64>() / number;
    let squares: f64 = all.iter().map(|one| (one - mean).powi(2)).sum();
    let error = DEVIATIONS * (squares / (number - 1.0).max(1.0) / number).sqrt();
    Interval::new(mean, (mean - error).max(0.0), mean + error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::evidence::Why;

    fn drawn(isolated: Option<f64>, kind: BoundBy) -> Drawn {
        Drawn {
            retired: 2.0,
            latency: 0.0,
            isolated: isolated.ok_or_else(|| Why("it calls".to_owned())),
            kind: isolated.map(|_| kind),
            waits: 0.0,
            loads: Ok((0.0, 0.0)),
        }
    }

    /// By hand: ratios of 1 and 3 are 2, with a standard error of √2 ÷ √2 = 1.
    #[test]
    fn the_mean_of_a_sample_has_its_error() {
        let blocks = [drawn(Some(2.0), BoundBy::Core), drawn(Some(6.0), BoundBy::Core)];
        let found = mean(&blocks, |one| one.isolated.clone().ok());
        assert_eq!(found, Interval::new(2.0, 0.0, 4.0));
        assert_eq!(mean(&[], |_| Some(1.0)), Interval::default());
    }

    /// By hand: 2 and 4 cycles for each that is retired, and in half of the latter loads wait.
    #[test]
    fn blocks_that_wait_for_loads_count_by_their_cycles() {
        let (one, other) = (drawn(Some(4.0), BoundBy::Core), drawn(Some(8.0), BoundBy::Core));
        let other = Drawn { waits: 0.5, ..other };
        assert!((first_loads(&[&one, &other]) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(first_loads(&[]), 0.0);
    }

    /// By hand: two of four were measured, with twice what they retire; the others retire 1, or take up to 4.
    #[test]
    fn blocks_that_were_not_measured_are_like_the_others() {
        let one = drawn(Some(4.0), BoundBy::Core);
        let none = drawn(None, BoundBy::Core);
        let blocks = [one.clone(), one, none.clone(), none];
        assert_eq!(alone(&blocks, BoundBy::Core, 1.0), Interval::new(2.0, 1.5, 3.0));
        assert_eq!(alone(&blocks, BoundBy::FrontEnd, 0.0), Interval::default());
    }
}
