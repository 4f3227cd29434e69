//! The checks of `tdtool doctor` besides counting: sampling, block measurement and the layers of its sandbox, the
//! load of the machine, and what is known of the core.

mod self_test;

use crate::core_model;
use crate::measured::{is_of_measurements, rows, stated_caches};
use crate::record::{SampleAsk, sample, words};
use bench::{BlockMeasurer, Layer, Layers, Options, Pmu, Status};
use isa::code::Block;
use pmu::machine::{
    Finding, Level, Load, Machine, Root, TableMatch, Ticks, countable, findings, unknown_model,
};
use pmu::perf;
use report::documents::doctor;
use report::documents::doctor::{Document, TableInfo};
use std::sync::Arc;
use std::time::Duration;
use tma::tables::Library;
use tma::{Core, Result};

/// How long the load is measured.
const LOAD_WINDOW: Duration = Duration::from_millis(300);

/// Examines `machine`, whose core is `core`, with the tables of `library` or the one that `uarch`
/// forces.
///
/// # Errors
/// No table has that name; a table cannot be read.
pub fn examine(
    machine: &Machine,
    library: &Library,
    uarch: Option<&str>,
    core: &Arc<Core>,
) -> Result<Document> {
    let chosen = countable(machine, library, uarch)?;
    let info = |t: &TableMatch| Ok(TableInfo::new(library.load(&t.table)?.as_ref(), t, machine));
    let tables: Result<Vec<TableInfo>> = chosen.iter().map(info).collect();
    let mut found = findings(machine, &chosen, &perf::probe(machine));
    found.extend(tried(machine, &chosen, core));
    for finding in found.iter_mut().filter(|f| f.id == "table" && f.level != Level::Ok) {
        finding.remedy = Some(unknown_model(&machine.cpu, library)?);
    }
    if let Some(hides) = hides_built_in(machine, core)? {
        found.retain(|finding| finding.id != "table");
        found.insert(0, hides);
    }
    let answers = core.answers().cloned();
    let mut identity = doctor::identity(machine, library)?;
    // The self-test ran on the first kind of core.
    if let (Some(answers), None) = (&answers, uarch) {
        identity.settle(answers.into(), library)?;
    }
    let facts = core.measured.facts();
    let measured = facts.map_or_else(Vec::new, |facts| rows(core, facts, &stated_caches()));
    let mut document = Document::new(machine, tables?, identity, found);
    (document.self_test, document.measured) = (answers, measured);
    Ok(document)
}

/// That a table of measurements, which has no nodes, stands in the place of a built-in one.
fn hides_built_in(machine: &Machine, core: &Core) -> Result<Option<Finding>> {
    let built_in = countable(machine, &crate::library(), None)?;
    let hidden = match built_in.first() {
        Some(found) if is_of_measurements(core) => &found.table,
        _ => return Ok(None),
    };
    let what = format!(
        "event table {}, written from measurements: it hides the built-in {hidden} and has no nodes",
        core.name()
    );
    let remedy = Some(format!("the built-in one: `tdtool doctor --uarch {hidden}`"));
    Ok(Some(Finding { remedy, ..Finding::new("table", Level::Limited, what) }))
}

/// Tries sampling and block measurement, and measures the load.
fn tried(machine: &Machine, tables: &[TableMatch], core: &Arc<Core>) -> Vec<Finding> {
    // First, because what follows is load itself.
    let load = load();
    // The block makes the self-test.
    let blocks = blocks(machine, core);
    let mut all = vec![identity(core), facts(core), sampling(machine, tables)];
    all.extend(counting(machine, core));
    all.extend(blocks);
    all.push(self_test::finding(core));
    all.push(uncontended(machine, load));
    all
}

/// The processor's identity; with the contradictions, where family and model are wrong or nothing decides.
fn identity(core: &Core) -> Finding {
    let others = core.identity.as_ref().filter(|_| !core.foreign).and_then(|i| i.others_note());
    match core.identity_note() {
        None => {
            let what = "identity: features and caches confirm family and model";
            Finding { cause: others, ..Finding::new("identity", Level::Ok, what) }
        }
        Some(note) => Finding {
            remedy: Some("`tdtool tables identify`".to_owned()),
            ..Finding::new("identity", Level::Limited, note)
        },
    }
}

/// Counting behind a false model: events are encoded for the silicon, the kernel decides by the model.
fn counting(machine: &Machine, core: &Core) -> Option<Finding> {
    let masked = core.identity.as_ref().is_some_and(|identity| identity.is_masked());
    (masked && machine.core_pmus().next().is_some()).then(|| Finding {
        cause: Some(
            "the kernel takes the processor for the one that family and model claim".to_owned(),
        ),
        remedy: Some("give the guest the host's model (QEMU/KVM: -cpu host)".to_owned()),
        ..Finding::new(
            "counting",
            Level::Limited,
            format!(
                "events are encoded for {}; what the kernel does not accept is not counted",
                core.uarch().unwrap_or("the silicon")
            ),
        )
    })
}

/// Facts of the core's table, for block measurements and dependencies.
fn facts(core: &Core) -> Finding {
    let notes = core_model::notes(core);
    if notes.is_empty() {
        let what = "core facts: all known";
        return Finding::new("core_facts", Level::Ok, what);
    }
    let what =
        "core facts: some are not known; results that need one use a default and report that";
    let remedy = "measure what can be: `tdtool doctor --measure`";
    Finding {
        remedy: Some(remedy.to_owned()),
        evidence: notes,
        ..Finding::new("core_facts", Level::Limited, what)
    }
}

fn sampling(machine: &Machine, tables: &[TableMatch]) -> Finding {
    let ask = SampleAsk::default();
    let blocked = perf::blocked(machine, tables);
    let nothing = |why: String| {
        let (_, remedy) = machine.kernel.why_denied();
        let what = "no sampling: reports show no hot functions and blocks";
        let found = Finding::new("sampling", Level::Blocked, what);
        Finding { cause: Some(why), remedy: Some(remedy), ..found }
    };
    let chosen = match sample::choose(machine, &[], blocked.as_ref(), &ask, false) {
        Ok(chosen) => chosen,
        Err(error) => return nothing(error.to_string()),
    };
    let notes = words(&chosen.notes);
    let Some(plan) = chosen.plan else { return nothing(notes.join("; ")) };
    let names: Vec<String> = plan.events.iter().map(|e| e.full_name(plan.user_only)).collect();
    let mode = if plan.user_only { "user mode only" } else { "user and kernel mode" };
    let what = format!("sampling on {}, {} per second, {mode}", names.join(" and "), ask.frequency);
    if notes.is_empty() {
        return Finding::new("sampling", Level::Ok, what);
    }
    let remedy = match machine.core_pmus().next() {
        // The clock finds where time goes, not what it is lost to.
        None => {
            "mispredictions and cache misses of each loop: `tdtool count --hot --branches --loads -- COMMAND`"
        }
        Some(_) => "the events that it can sample: `tdtool record --event EVENT -- COMMAND`",
    };
    Finding {
        cause: Some(notes.join("; ")),
        remedy: Some(remedy.to_owned()),
        ..Finding::new("sampling", Level::Limited, what)
    }
}

fn load() -> Option<Load> {
    let root = Root::system();
    let before = Ticks::read(&root)?;
    std::thread::sleep(LOAD_WINDOW);
    Ticks::read(&root)?.since(&before)
}

fn uncontended(machine: &Machine, load: Option<Load>) -> Finding {
    let Some(load) = load else {
        let remedy = Some("mount -t proc proc /proc".to_owned());
        let what = "load unknown: /proc/stat is absent";
        return Finding { remedy, ..Finding::new("load", Level::Limited, what) };
    };
    let cpus = machine.topology.cpus.len();
    let what = format!(
        "load within 0.3 s: {:.0} % busy ({:.1} of {cpus} CPUs), {:.0} % stolen by the hypervisor",
        100.0 * load.busy,
        load.busy * cpus as f64,
        100.0 * load.stolen
    );
    if !load.disturbs() {
        return Finding::new("load", Level::Ok, what);
    }
    let cause = "other processes affect samples and wall times; block measurements wait for an \
                 idle core or end unstable";
    let remedy =
        "stop other processes, or let blocks wait longer: `tdtool block --budget 30000 4801d8`";
    let (cause, remedy) = (Some(cause.to_owned()), Some(remedy.to_owned()));
    Finding { cause, remedy, ..Finding::new("load", Level::Limited, what) }
}

/// `add rax, rbx`: one cycle, and cannot fault.
const SIMPLEST: [u8; 3] = [0x48, 0x01, 0xd8];

/// Measures the simplest block there is, and asks for the layers of the sandbox.
pub fn blocks(machine: &Machine, core: &Arc<Core>) -> Vec<Finding> {
    let not = |why: String| {
        let what = "blocks cannot be measured in isolation";
        let remedy = Some("the whole error: `tdtool block 4801d8`".to_owned());
        vec![Finding { cause: Some(why), remedy, ..Finding::new("block", Level::Blocked, what) }]
    };
    let pmu = match machine.core_pmus().next() {
        // Whether it counts is found by measuring; this is only the clock's name.
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
    let mut measurer = BlockMeasurer::new(options);
    let measured = measurer.measure(&block).and_then(|m| Ok((m, measurer.layers()?)));
    let (measurement, layers) = match measured {
        Ok(measured) => measured,
        Err(error) => {
            let own = error.remedy().map(str::to_owned);
            let with_own =
                |found: Finding| Finding { remedy: own.clone().or(found.remedy), ..found };
            return not(error.to_string()).into_iter().map(with_own).collect();
        }
    };
    match measurement.status {
        Status::Ok | Status::Unstable => {}
        _ => return not(measurement.reason.unwrap_or_else(|| "the trial failed".to_owned())),
    }
    let what = format!("block measurement: clock {pmu}");
    vec![Finding::new("block", Level::Ok, what), sandbox(&layers)]
}

/// The layers that protect the host from blocks, each as it reads back.
fn sandbox(layers: &Layers) -> Finding {
    let (mut held, mut limits) = (Vec::new(), Vec::new());
    for layer in &layers.held {
        match layer {
            Layer::Limit(resource) => limits.push(*resource),
            Layer::Other(name) => held.push((*name).to_owned()),
        }
    }
    if !limits.is_empty() {
        held.push(format!("limits on {}", limits.join(", ")));
    }
    let (number, missing) = (layers.held.len(), layers.missing.len());
    if missing == 0 {
        let what = format!("block sandbox: all {number} layers are in force");
        return Finding { evidence: held, ..Finding::new("sandbox", Level::Ok, what) };
    }
    let what = format!("block sandbox: {number} of {} layers are in force", number + missing);
    let cause = format!("not in force: {}", layers.missing.join("; "));
    let remedy = "the layers that hold are enough for blocks of your own; run blocks of unknown origin \
                  where all of them hold (user namespaces: sysctl user.max_user_namespaces)";
    let (cause, remedy) = (Some(cause), Some(remedy.to_owned()));
    Finding { cause, remedy, evidence: held, ..Finding::new("sandbox", Level::Limited, what) }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn layers_of_the_sandbox_that_do_not_hold_are_named_with_the_reason() {
        let held = ["files", "memory"].map(Layer::Limit).to_vec();
        let held = [vec![Layer::Other("system-call filter")], held].concat();
        let found = sandbox(&Layers { held: held.clone(), missing: Vec::new() });
        assert_eq!(found.level, Level::Ok);
        assert_eq!(found.what, "block sandbox: all 3 layers are in force");
        assert_eq!(found.evidence, ["system-call filter", "limits on files, memory"]);
        let missing = vec!["namespaces of its own: Operation not permitted".to_owned()];
        let found = sandbox(&Layers { held, missing });
        assert_eq!(found.level, Level::Limited);
        assert!(found.cause.unwrap().contains("of its own: Operation not permitted"));
        assert!(found.remedy.is_some());
    }
}
