//! Single events per iteration: cache misses, split accesses, instructions.

use super::{Counter, Sample, Stop};
use crate::counters::{CorePmu, generic};
use crate::measurement::{Assumed, Assumption, Miss, Outcome};
use crate::stats::median;
use pmu::machine::Encoding;
use pmu::perf;
use tma::Result;

/// Counts per iteration up to this are noise: one in fifty iterations.
const NOISE: f64 = 0.02;
/// Tolerance of the instruction count, as a share.
const INSTRUCTIONS: f64 = 0.01;

const HARDWARE: u32 = 0;
const CACHE: u32 = 3;
/// `PERF_COUNT_HW_CACHE_RESULT_MISS`.
const MISS: u64 = 1 << 16;
/// `PERF_COUNT_HW_CACHE_OP_WRITE`.
const WRITE: u64 = 1 << 8;
/// `PERF_COUNT_HW_CACHE_L1I`; L1D is 0.
const L1I: u64 = 1;

/// An event to count: perf's generic event, and names in event tables.
struct TrackedEvent {
    name: &'static str,
    generic: Option<(u32, u64, &'static str)>,
    events: &'static [&'static str],
}

const TRACKED: [TrackedEvent; 6] = [
    TrackedEvent {
        name: "instructions",
        generic: Some((HARDWARE, 1, "instructions")),
        events: &["INST_RETIRED.ANY", "ex_ret_instr"],
    },
    TrackedEvent {
        name: "l1d-read-misses",
        generic: Some((CACHE, MISS, "L1-dcache-load-misses")),
        events: &["MEM_LOAD_RETIRED.L1_MISS", "ls_any_fills_from_sys.all"],
    },
    TrackedEvent {
        name: "l1d-write-misses",
        generic: Some((CACHE, MISS | WRITE, "L1-dcache-store-misses")),
        events: &[],
    },
    TrackedEvent {
        name: "l1i-read-misses",
        generic: Some((CACHE, MISS | L1I, "L1-icache-load-misses")),
        events: &["FRONTEND_RETIRED.L1I_MISS", "ic_tag_hit_miss.instruction_cache_miss"],
    },
    TrackedEvent {
        name: "split-loads",
        generic: None,
        events: &["MEM_INST_RETIRED.SPLIT_LOADS", "MEM_UOPS_RETIRED.SPLIT_LOADS"],
    },
    TrackedEvent {
        name: "split-stores",
        generic: None,
        events: &["MEM_INST_RETIRED.SPLIT_STORES", "MEM_UOPS_RETIRED.SPLIT_STORES"],
    },
];

impl TrackedEvent {
    /// Every encoding that may count it here, with its name.
    fn encodings(&self, core: &CorePmu) -> Vec<(Encoding, String)> {
        let own = self.generic.map(|(kind, config, name)| {
            (generic(&core.pmu, kind, config), format!("the kernel's generic event {name}"))
        });
        let named = core.table.iter().flat_map(|table| {
            let ids = self.events.iter().filter_map(|name| table.event(name));
            ids.filter_map(|id| {
                let coded = perf::code(table, id, &core.pmu, core.smt).ok()?;
                Some((coded.encoding, table.events[usize::from(id)].name.clone()))
            })
        });
        own.into_iter().chain(named).collect()
    }
}

/// Counts each of them in a group with the cycles.
pub(super) fn measure(core: &CorePmu, counter: &mut Counter<'_>) -> Result<Vec<Miss>> {
    let mut misses = Vec::new();
    for wanted in &TRACKED {
        for (encoding, name) in wanted.encodings(core) {
            match counter.group(&[core.cycles, encoding])? {
                Ok(samples) => {
                    misses.push(miss(wanted.name, &name, &samples));
                    break;
                }
                Err(Stop::Refused(_)) => {}
                // Other encodings would fail too.
                Err(_) => break,
            }
        }
    }
    Ok(misses)
}

fn miss(name: &str, event: &str, samples: &[Sample]) -> Miss {
    let values: Vec<f64> = samples.iter().filter_map(|s| s.per_iteration(1)).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cycles: Vec<f64> = samples.iter().filter_map(|s| s.per_iteration(0)).collect();
    Miss {
        name: name.to_owned(),
        // Noise can make the difference of two commands negative.
        per_iteration: median(&values).max(0.0),
        how: format!(
            "{event}: {} repetitions from {low:.4} to {high:.4}, at {:.3} cycles",
            values.len(),
            median(&cycles)
        ),
    }
}

/// Checks assumptions with the counts.
pub fn check_with_counts(assumptions: &mut Vec<Assumption>, misses: &[Miss], instructions: usize) {
    let count = |name: &str| misses.iter().find(|m| m.name == name).map(|m| m.per_iteration);
    let about = [
        (Assumed::L1Data, ["l1d-read-misses", "l1d-write-misses"]),
        (Assumed::L1Code, ["l1i-read-misses", ""]),
        (Assumed::LineCrossing, ["split-loads", "split-stores"]),
    ];
    for (name, events) in about {
        let known: Vec<(&str, f64)> =
            events.into_iter().filter_map(|e| Some((e, count(e)?))).collect();
        let assumption = assumptions.iter_mut().find(|i| i.name == name);
        if let (false, Some(assumption)) = (known.is_empty(), assumption) {
            apply_counts(assumption, &known);
        }
    }
    if let Some(counted) = count("instructions") {
        let held = (counted / instructions as f64 - 1.0).abs() <= INSTRUCTIONS;
        assumptions.push(Assumption {
            name: Assumed::InstructionCount,
            outcome: if held { Outcome::Held } else { Outcome::Violated },
            how: format!("the PMU counted {counted:.3} per copy; the block has {instructions}"),
        });
    }
}

/// A count above noise violates an assumption; one within noise confirms an unchecked one.
fn apply_counts(assumption: &mut Assumption, known: &[(&str, f64)]) {
    let worst = known.iter().map(|(_, n)| *n).fold(0.0, f64::max);
    let list: Vec<String> = known.iter().map(|(e, n)| format!("{n:.4} {e}")).collect();
    assumption.how += &format!("; the PMU counted {} per iteration", list.join(" and "));
    assumption.outcome = match assumption.outcome {
        _ if worst > NOISE => Outcome::Violated,
        Outcome::Unchecked => Outcome::Held,
        other => other,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(name: &str, per_iteration: f64) -> Miss {
        Miss { name: name.to_owned(), per_iteration, how: String::new() }
    }

    fn assumption(name: Assumed, outcome: Outcome) -> Assumption {
        Assumption { name, outcome, how: "address trace".to_owned() }
    }

    #[test]
    fn a_counted_miss_overrules_the_trace_and_its_absence_confirms_an_unchecked_assumption() {
        let mut all = vec![
            assumption(Assumed::L1Data, Outcome::Held),
            assumption(Assumed::L1Code, Outcome::Unchecked),
            assumption(Assumed::LineCrossing, Outcome::Violated),
        ];
        let misses = [
            counted("l1d-read-misses", 0.5),
            counted("l1i-read-misses", 0.001),
            counted("split-loads", 0.0),
            counted("instructions", 3.002),
        ];
        check_with_counts(&mut all, &misses, 3);
        let verdicts: Vec<_> = all.iter().map(|i| (i.name, i.outcome)).collect();
        assert_eq!(
            verdicts,
            [
                (Assumed::L1Data, Outcome::Violated),
                (Assumed::L1Code, Outcome::Held),
                // The trace saw it cross: a PMU that counts no such event proves nothing.
                (Assumed::LineCrossing, Outcome::Violated),
                (Assumed::InstructionCount, Outcome::Held),
            ]
        );
        assert!(all[0].how.contains("0.5000 l1d-read-misses"), "{}", all[0].how);
    }
}
