//! Single events per iteration: what missed, what was split, how many instructions there were.

use super::counter::Counter;
use super::sample::{Sample, Stop};
use crate::counters::{CorePmu, generic};
use crate::measurement::{Assumption, Miss, Outcome};
use crate::timing::stats::median;
use pmu::machine::Encoding;
use pmu::perf;
use tma::Result;

/// More of them per iteration than this is a miss and no noise: one in fifty iterations.
const NOISE: f64 = 0.02;
/// How far the counted instructions may be from the block's own.
const INSTRUCTIONS: f64 = 0.01;

const HARDWARE: u32 = 0;
const CACHE: u32 = 3;
/// `PERF_COUNT_HW_CACHE_RESULT_MISS`.
const MISS: u64 = 1 << 16;
/// `PERF_COUNT_HW_CACHE_OP_WRITE`.
const WRITE: u64 = 1 << 8;
/// `PERF_COUNT_HW_CACHE_L1I`; L1D is 0.
const L1I: u64 = 1;

/// An event worth knowing: the kernel's own idea of it, then the tables' names.
struct Wanted {
    name: &'static str,
    generic: Option<(u32, u64, &'static str)>,
    events: &'static [&'static str],
}

const WANTED: [Wanted; 6] = [
    Wanted {
        name: "instructions",
        generic: Some((HARDWARE, 1, "instructions")),
        events: &["INST_RETIRED.ANY", "ex_ret_instr"],
    },
    Wanted {
        name: "l1d-read-misses",
        generic: Some((CACHE, MISS, "L1-dcache-load-misses")),
        events: &["MEM_LOAD_RETIRED.L1_MISS", "ls_any_fills_from_sys.all"],
    },
    Wanted {
        name: "l1d-write-misses",
        generic: Some((CACHE, MISS | WRITE, "L1-dcache-store-misses")),
        events: &[],
    },
    Wanted {
        name: "l1i-read-misses",
        generic: Some((CACHE, MISS | L1I, "L1-icache-load-misses")),
        events: &["FRONTEND_RETIRED.L1I_MISS", "ic_tag_hit_miss.instruction_cache_miss"],
    },
    Wanted {
        name: "split-loads",
        generic: None,
        events: &["MEM_INST_RETIRED.SPLIT_LOADS", "MEM_UOPS_RETIRED.SPLIT_LOADS"],
    },
    Wanted {
        name: "split-stores",
        generic: None,
        events: &["MEM_INST_RETIRED.SPLIT_STORES", "MEM_UOPS_RETIRED.SPLIT_STORES"],
    },
];

impl Wanted {
    /// Every way to count it here, with its name.
    fn ways(&self, core: &CorePmu) -> Vec<(Encoding, String)> {
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

/// Counts each of them by itself, the clock beside it.
///
/// # Errors
/// The sandbox cannot be started.
pub(super) fn measure(core: &CorePmu, counter: &mut Counter<'_>) -> Result<Vec<Miss>> {
    let mut misses = Vec::new();
    for wanted in &WANTED {
        for (encoding, name) in wanted.ways(core) {
            match counter.group(&[core.cycles, encoding])? {
                Ok(samples) => {
                    misses.push(miss(wanted.name, &name, &samples));
                    break;
                }
                Err(Stop::Refused(_)) => {}
                // Others would fare no better.
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
        // A difference of two commands may fall below zero by noise.
        per_iteration: median(&values).max(0.0),
        how: format!(
            "{event}, {} differences between {low:.4} and {high:.4}, at {:.3} cycles",
            values.len(),
            median(&cycles)
        ),
    }
}

/// Lets the counts bear witness on the assumptions they can tell of.
pub fn witness(assumptions: &mut Vec<Assumption>, misses: &[Miss], instructions: usize) {
    let count = |name: &str| misses.iter().find(|m| m.name == name).map(|m| m.per_iteration);
    let about = [
        ("l1-data", ["l1d-read-misses", "l1d-write-misses"]),
        ("l1-code", ["l1i-read-misses", ""]),
        ("line-crossing", ["split-loads", "split-stores"]),
    ];
    for (name, events) in about {
        let known: Vec<(&str, f64)> =
            events.into_iter().filter_map(|e| Some((e, count(e)?))).collect();
        let assumption = assumptions.iter_mut().find(|i| i.name == name);
        if let (false, Some(assumption)) = (known.is_empty(), assumption) {
            testify(assumption, &known);
        }
    }
    if let Some(counted) = count("instructions") {
        let held = (counted / instructions as f64 - 1.0).abs() <= INSTRUCTIONS;
        assumptions.push(Assumption {
            name: "instruction-count",
            outcome: if held { Outcome::Held } else { Outcome::Violated },
            how: format!("the PMU counted {counted:.3} a copy, the block has {instructions}"),
        });
    }
}

/// A count above noise violates; one within it confirms what nothing else could check.
fn testify(assumption: &mut Assumption, known: &[(&str, f64)]) {
    let worst = known.iter().map(|(_, n)| *n).fold(0.0, f64::max);
    let list: Vec<String> = known.iter().map(|(e, n)| format!("{n:.4} {e}")).collect();
    assumption.how += &format!("; the PMU counted {} an iteration", list.join(" and "));
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

    fn assumption(name: &'static str, outcome: Outcome) -> Assumption {
        Assumption { name, outcome, how: "address trace".to_owned() }
    }

    #[test]
    fn a_measured_miss_overrules_the_trace_and_its_absence_confirms_what_the_trace_could_not() {
        let mut all = vec![
            assumption("l1-data", Outcome::Held),
            assumption("l1-code", Outcome::Unchecked),
            assumption("line-crossing", Outcome::Violated),
        ];
        let misses = [
            counted("l1d-read-misses", 0.5),
            counted("l1i-read-misses", 0.001),
            counted("split-loads", 0.0),
            counted("instructions", 3.002),
        ];
        witness(&mut all, &misses, 3);
        let verdicts: Vec<_> = all.iter().map(|i| (i.name, i.outcome)).collect();
        assert_eq!(
            verdicts,
            [
                ("l1-data", Outcome::Violated),
                ("l1-code", Outcome::Held),
                // The trace saw it cross: a PMU that counts no such event proves nothing.
                ("line-crossing", Outcome::Violated),
                ("instruction-count", Outcome::Held),
            ]
        );
        assert!(all[0].how.contains("0.5000 l1d-read-misses"), "{}", all[0].how);
    }
}
