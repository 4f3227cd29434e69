//! What `tdtool doctor` tries besides counting: sampling, block measurement, the load of the machine,
//! and what is known of the core.

mod blocks;

use crate::core_model;
use crate::predicting;
use crate::record::{SampleAsk, sample};
use pmu::machine::{Finding, Level, Load, Machine, Root, TableMatch, Ticks};
use pmu::perf;
use std::sync::Arc;
use std::time::Duration;
use tma::Core;

/// How long the load is measured.
const LOAD_WINDOW: Duration = Duration::from_millis(300);
/// Load above which block measurements usually wait for an idle core.
const MAX_BUSY: f64 = 0.1;
/// Stolen time above which timings are disturbed.
const MAX_STOLEN: f64 = 0.01;
/// Tries sampling and block measurement, and measures the load.
pub fn examine(machine: &Machine, tables: &[TableMatch], core: &Arc<Core>) -> Vec<Finding> {
    // First, because what follows is load itself.
    let load = load();
    // The block makes the self-test.
    let blocks = blocks::blocks(machine, core);
    let mut all = vec![facts(core), sampling(machine, tables)];
    all.extend(blocks);
    all.extend([self_test(core), uncontended(machine, load)]);
    all
}

fn finding(id: &'static str, level: Level, what: String) -> Finding {
    Finding { id, level, what, cause: None, remedy: None }
}

/// What the table states of the core, for block measurements and dependencies.
fn facts(core: &Core) -> Finding {
    let notes = core_model::notes(core);
    if notes.is_empty() {
        let what = "core facts: the table states all of them".to_owned();
        return finding("core_facts", Level::Ok, what);
    }
    let cause = "results that need an unknown fact use a default and report that";
    let remedy = "state it under [facts] in a table, and use that with --tables DIR";
    Finding {
        cause: Some(cause.to_owned()),
        remedy: Some(remedy.to_owned()),
        ..finding("core_facts", Level::Limited, notes.join("; "))
    }
}

/// What the processor answered about itself, what it left open, and where that contradicts its table.
fn self_test(core: &Core) -> Finding {
    let Some(answers) = core.answers() else {
        let what = "self-test: no answers, since it was not made or the core was shared; the table's facts are used".to_owned();
        return finding("self_test", Level::Limited, what);
    };
    let mut known = Vec::new();
    let mut open = Vec::new();
    let mut ask = |question: &'static str, answer: Option<String>| match answer {
        Some(answer) => known.push(answer),
        None => open.push(question),
    };
    let either = |answer: Option<bool>, yes: &str, no: &str| {
        answer.map(|is| if is { yes.to_owned() } else { no.to_owned() })
    };
    let mix = answers.mix.as_deref().unwrap_or("an unnamed mix");
    let width = answers.width.map(|w| format!("{w:.1} instructions a cycle ({mix})"));
    ask("sustained width", width);
    ask("nop fusion", either(answers.nops_fused, "nops share slots", "a nop takes a slot"));
    let moves = "moves share the slot of what changes their target";
    ask("move fusion", either(answers.moves_fused, moves, "a move takes a slot"));
    let fences = "fences slow the code after them";
    ask("fences", either(answers.fence_slows, fences, "fences do not slow code"));
    let loops = "short loops differ from long ones";
    ask("loops", either(answers.loop_differs, loops, "short loops are like long ones"));
    let aligned = "jump targets need alignment to 64";
    ask("alignment", either(answers.needs_alignment, aligned, "jump targets need no alignment"));
    let distances = answers.false_distances.as_ref().map(|distances| {
        let each: Vec<String> = distances.iter().map(|d| format!("{d:#x}")).collect();
        match each.is_empty() {
            true => "no false store-to-load dependence".to_owned(),
            false => format!("loads wait falsely for stores {} above", each.join(", ")),
        }
    });
    ask("false dependences", distances);
    let costs = answers.misprediction.map(|c| format!("a misprediction costs {c:.0} cycles"));
    ask("mispredictions", costs);
    ask("other mispredictions", predicting::others(answers));
    if !open.is_empty() {
        known.push(format!("open: {}", open.join(", ")));
    }
    let what = format!("self-test: {}", known.join("; "));
    let contradictions = core.contradictions();
    if contradictions.is_empty() {
        let level = if open.is_empty() { Level::Ok } else { Level::Limited };
        let cause = (!open.is_empty()).then(|| "the core was shared during the test".to_owned());
        return Finding { cause, ..finding("self_test", level, what) };
    }
    let cause = format!("it differs from the table and wins: {}", contradictions.join("; "));
    Finding { cause: Some(cause), ..finding("self_test", Level::Limited, what) }
}

fn sampling(machine: &Machine, tables: &[TableMatch]) -> Finding {
    let ask = SampleAsk::default();
    let blocked = perf::blocked(machine, tables);
    let nothing = |why: String| {
        let (_, remedy) = machine.kernel.why_denied();
        let what = "no sampling: reports show no hot functions and blocks".to_owned();
        let found = finding("sampling", Level::Blocked, what);
        Finding { cause: Some(why), remedy: Some(remedy), ..found }
    };
    let chosen = match sample::choose(machine, &[], blocked.as_ref(), &ask, false) {
        Ok(chosen) => chosen,
        Err(error) => return nothing(error.to_string()),
    };
    let Some(plan) = chosen.plan else { return nothing(chosen.notes.join("; ")) };
    let names: Vec<String> = plan.events.iter().map(|e| e.full_name(plan.user_only)).collect();
    let mode = if plan.user_only { "user mode only" } else { "user and kernel mode" };
    let what = format!("sampling on {}, {} per second, {mode}", names.join(" and "), ask.frequency);
    let level = if chosen.notes.is_empty() { Level::Ok } else { Level::Limited };
    let cause = (!chosen.notes.is_empty()).then(|| chosen.notes.join("; "));
    Finding { cause, ..finding("sampling", level, what) }
}

fn load() -> Option<Load> {
    let root = Root::system();
    let before = Ticks::read(&root)?;
    std::thread::sleep(LOAD_WINDOW);
    Ticks::read(&root)?.since(&before)
}

fn uncontended(machine: &Machine, load: Option<Load>) -> Finding {
    let Some(load) = load else {
        let what = "load unknown: /proc/stat is absent";
        return finding("load", Level::Limited, what.to_owned());
    };
    let cpus = machine.topology.cpus.len();
    let what = format!(
        "load: {:.0} % busy ({:.1} of {cpus} CPUs), {:.0} % stolen by the hypervisor",
        100.0 * load.busy,
        load.busy * cpus as f64,
        100.0 * load.stolen
    );
    if load.busy <= MAX_BUSY && load.stolen <= MAX_STOLEN {
        return finding("load", Level::Ok, what);
    }
    let cause = "other processes affect samples and wall times; block measurements wait for an \
                 idle core or end unstable";
    let remedy = "stop other processes, or let blocks wait longer: --budget 30000";
    let (cause, remedy) = (Some(cause.to_owned()), Some(remedy.to_owned()));
    Finding { cause, remedy, ..finding("load", Level::Limited, what) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::self_test::{Answers, Returns, Targets};

    #[test]
    fn the_self_test_s_answers_are_named_and_contradict_a_table_visibly() {
        let of = |name: &str, answers: Answers| {
            let core = Core::modelled(&events::library(), name).unwrap();
            core.self_test.answers_or(|| answers);
            self_test(&core)
        };
        let answers = Answers {
            width: Some(5.9),
            mix: Some("load-constant".to_owned()),
            nops_fused: Some(true),
            moves_fused: Some(false),
            fence_slows: Some(true),
            loop_differs: Some(false),
            needs_alignment: Some(false),
            false_distances: Some(vec![0x400, 0x800, 0x1000]),
            misprediction: Some(22.4),
            ready_misprediction: Some(18.2),
            indirect_misprediction: Some(26.6),
            return_misprediction: Some(17.0),
            misprediction_load: Some(4.5),
            targets: Some(Targets { quarter: 0.36, eighth: 0.2 }),
            returns: Some(Returns { alternate: 0.0, fives: 0.3 }),
        };
        // As measured natively on a Zen 4.
        let found = of("zen4", answers.clone());
        assert_eq!(found.level, Level::Ok, "{:?}", found.cause);
        assert!(found.what.contains("5.9 instructions a cycle (load-constant)"), "{}", found.what);
        assert!(found.what.contains("a misprediction costs 22 cycles"), "{}", found.what);
        let indirect = "18 where nothing is waited for, 27 of an indirect jump, of whose targets the last one is predicted";
        assert!(found.what.contains(indirect), "{}", found.what);
        assert!(found.what.contains("nops share slots") && found.what.contains("0x400, 0x800"));
        let other = Answers { nops_fused: Some(false), width: Some(7.9), ..answers };
        let found = of("zen4", other);
        let cause = found.cause.unwrap();
        assert!(cause.contains("not fused, the table states fused"), "{cause}");
        assert!(cause.contains("7.9 instructions a cycle, the table states 6"), "{cause}");
        let open = of("zen4", Answers::default());
        assert!(open.what.contains("open: sustained width, nop fusion"), "{}", open.what);
        assert_eq!(self_test(&Core::default()).level, Level::Limited);
    }

    #[test]
    fn an_idle_machine_needs_no_remedy_and_a_busy_one_gets_one() {
        let machine = Machine::detect();
        let judged = |busy, stolen| uncontended(&machine, Some(Load { busy, stolen }));
        assert_eq!(judged(0.05, 0.0).level, Level::Ok);
        assert!(judged(0.05, 0.0).remedy.is_none());
        for (busy, stolen) in [(0.5, 0.0), (0.0, 0.05)] {
            let found = judged(busy, stolen);
            assert_eq!(found.level, Level::Limited);
            assert!(found.remedy.is_some_and(|r| r.contains("--budget")), "{}", found.what);
        }
        assert_eq!(uncontended(&machine, None).level, Level::Limited);
    }
}
