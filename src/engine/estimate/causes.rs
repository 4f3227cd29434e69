//! Which instructions of a loop or block the parts of its time go to: Retiring by µops, Bad Speculation by
//! mispredictions, Core Bound to the critical path, Memory Bound by what loads take beyond the first cache; what has
//! no such evidence, and fetching, by samples.

use super::evidence::Context;
use super::latency;
use isa::deps::Code;
use report::documents::count::{BranchRow, LoadRow};
use report::documents::estimate::{Parts, Row};
use report::documents::estimate_code::Causes;

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

/// Enters the share of the row's parts that each of its instructions has.
pub(super) fn enter(row: &mut Row, context: &Context) {
    let weights = weights(row, context);
    let found = divided(&row.parts, &weights);
    for (one, causes) in row.code.iter_mut().zip(found) {
        one.causes = Some(causes);
    }
}

fn weights(row: &Row, context: &Context) -> Vec<Weight> {
    let bytes = |hex: &str| -> Vec<u8> {
        let byte = |at| hex.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        (0..hex.len()).step_by(2).filter_map(byte).collect()
    };
    let all: Vec<u8> = row.code.iter().flat_map(|one| bytes(&one.bytes)).collect();
    let code = Code::of_bytes(&all, context.shared.core.facts()).ok();
    let uops = code.as_ref().zip(context.shared.ports.as_ref());
    let uops = uops.map(|(code, ports)| ports.uops(&code.instructions, &code.effects));
    let slots = |number: usize| match &uops {
        Some(all) => all.get(number).and_then(Option::as_ref).map_or(1.0, |one| one.slots),
        None => 1.0,
    };
    let weight = |(number, one): (usize, &report::documents::estimate_code::Instruction)| {
        let at = one.address.0;
        let counted = context.counted;
        let entries = counted.entries(&row.module, at).unwrap_or(0) as f64;
        let wrong =
            |of: &BranchRow| of.mispredicted.as_ref().map(|of| of.cycles.unwrap_or(of.value));
        let missed = |of: &LoadRow| latency::beyond_first(of, context.counted.count);
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
fn divided(parts: &Parts, weights: &[Weight]) -> Vec<Causes> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::estimate::Share;

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
        let found = divided(&parts, &[load, add, branch]);
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
        let found = divided(&parts, &[Weight::default(), Weight::default()]);
        assert!(found.iter().all(|one| one.unexplained == 0.4), "{found:?}");
        assert!(divided(&parts, &[]).is_empty());
    }
}
