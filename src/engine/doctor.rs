//! What `tdtool doctor` tries out beside counting: sampling, measuring a block, and whether the
//! machine is calm enough for it.

use crate::record::sample::{self, SampleAsk};
use bench::{Options, Pmu, Profiler, Status};
use isa::code::Block;
use pmu::machine::{Finding, Level, Load, Machine, Root, TableMatch, Ticks};
use pmu::perf;
use std::sync::Arc;
use std::time::Duration;
use tma::Core;

/// How long the machine is looked at.
const MOMENT: Duration = Duration::from_millis(300);
/// What others may take of it before block measurements wait for them.
const CALM: f64 = 0.1;
/// Of stolen time even little shows in timings.
const LITTLE_STOLEN: f64 = 0.01;
/// `add rax, rbx`: a cycle, and nothing that could fail.
const SIMPLEST: [u8; 3] = [0x48, 0x01, 0xd8];

/// Sampling, block measurement and the machine's load right now: tried, not guessed.
pub fn examine(machine: &Machine, tables: &[TableMatch], core: &Arc<Core>) -> Vec<Finding> {
    // First of all: what is tried below is load itself.
    let load = load();
    vec![sampling(machine, tables), block(machine, core), calm(machine, load)]
}

fn finding(id: &'static str, level: Level, what: String) -> Finding {
    Finding { id, level, what, cause: None, remedy: None }
}

fn sampling(machine: &Machine, tables: &[TableMatch]) -> Finding {
    let ask = SampleAsk::default();
    let blocked = perf::blocked(machine, tables);
    let nothing = |why: String| {
        let (_, remedy) = machine.kernel.why_denied();
        let what = "nothing can be sampled: a report does not say where the time goes".to_owned();
        let found = finding("sampling", Level::Blocked, what);
        Finding { cause: Some(why), remedy: Some(remedy), ..found }
    };
    let chosen = match sample::choose(machine, &[], blocked.as_ref(), &ask, false) {
        Ok(chosen) => chosen,
        Err(error) => return nothing(error.to_string()),
    };
    let Some(plan) = chosen.plan else { return nothing(chosen.notes.join("; ")) };
    let names: Vec<String> = plan.events.iter().map(|e| e.full_name(plan.user_only)).collect();
    let mode = if plan.user_only { "user mode alone" } else { "user and kernel mode" };
    let what = format!("sampling on {}, {} a second, {mode}", names.join(" and "), ask.frequency);
    let level = if chosen.notes.is_empty() { Level::Ok } else { Level::Limited };
    let cause = (!chosen.notes.is_empty()).then(|| chosen.notes.join("; "));
    Finding { cause, ..finding("sampling", level, what) }
}

/// Measures the simplest block there is.
fn block(machine: &Machine, core: &Arc<Core>) -> Finding {
    let not = |why: String| {
        let what = "blocks cannot be measured by themselves".to_owned();
        Finding { cause: Some(why), ..finding("block", Level::Blocked, what) }
    };
    let pmu = match machine.core_pmus().next() {
        // Whether it counts is for the measurement itself to find; here it is only the clock's name.
        Some(pmu) => format!("core PMU {}, or the time-stamp counter", pmu.name),
        None => "the time-stamp counter, against loops of known latency".to_owned(),
    };
    let options = Options {
        core: core.clone(),
        pmu: Pmu::Absent(String::new()),
        counts: false,
        ..Options::quick()
    };
    let block = match Block::decode(&SIMPLEST) {
        Ok(block) => block,
        Err(error) => return not(error.to_string()),
    };
    let report = match Profiler::new(options).measure(&block) {
        Ok(report) => report,
        Err(error) => {
            let remedy = error.remedy().map(str::to_owned);
            return Finding { remedy, ..not(error.to_string()) };
        }
    };
    match report.status {
        Status::Ok | Status::Unstable => {}
        _ => return not(report.reason.unwrap_or_else(|| "the trial failed".to_owned())),
    }
    let layers = match report.sandbox.as_slice() {
        [] => "every layer of the sandbox, namespaces included".to_owned(),
        missing => format!("a sandbox with {}", missing.join("; ")),
    };
    let what = format!("block measurement: clock {pmu}; {layers}");
    let level = if report.sandbox.is_empty() { Level::Ok } else { Level::Limited };
    finding("block", level, what)
}

fn load() -> Option<Load> {
    let root = Root::system();
    let before = Ticks::read(&root)?;
    std::thread::sleep(MOMENT);
    Ticks::read(&root)?.since(&before)
}

fn calm(machine: &Machine, load: Option<Load>) -> Finding {
    let Some(load) = load else {
        let what = "whether the machine is busy is not known: /proc/stat is not there";
        return finding("load", Level::Limited, what.to_owned());
    };
    let cpus = machine.topology.cpus.len();
    let what = format!(
        "machine {:.0} % busy right now ({:.1} of {cpus} CPUs), {:.0} % stolen by the hypervisor",
        100.0 * load.busy,
        load.busy * cpus as f64,
        100.0 * load.stolen
    );
    if load.busy <= CALM && load.stolen <= LITTLE_STOLEN {
        return finding("load", Level::Ok, what);
    }
    let cause = "others take part of its time: samples and wall times show it, and block \
                 measurements wait for a core of their own or end unstable";
    let remedy = "stop what else runs, or give blocks more time: --budget 30000";
    let (cause, remedy) = (Some(cause.to_owned()), Some(remedy.to_owned()));
    Finding { cause, remedy, ..finding("load", Level::Limited, what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calm_machine_needs_no_remedy_and_a_busy_one_gets_one() {
        let machine = Machine::detect();
        let judged = |busy, stolen| calm(&machine, Some(Load { busy, stolen }));
        assert_eq!(judged(0.05, 0.0).level, Level::Ok);
        assert!(judged(0.05, 0.0).remedy.is_none());
        for (busy, stolen) in [(0.5, 0.0), (0.0, 0.05)] {
            let found = judged(busy, stolen);
            assert_eq!(found.level, Level::Limited);
            assert!(found.remedy.is_some_and(|r| r.contains("--budget")), "{}", found.what);
        }
        assert_eq!(calm(&machine, None).level, Level::Limited);
    }
}
