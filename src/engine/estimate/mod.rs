//! Estimates the top-down tree of a command without a PMU: further runs and isolated measurements → evidence of
//! each hot loop and block → parts of its time (the model is the crate `estimate`). This file has the runs, in
//! order, and the document from all of them.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | the question, hot functions, width and clock; steps, signals |
//! | `further` | further runs of the command, and their counts |
//! | `expected` | which further runs there will be, and what they take |
//! | `unlike` | whether the counted run did what the sampled one did |
//! | `repeated` | whether a run without probes does more |
//! | `windows` | how windows are spread over a run |
//! | `pieces` | a function's code with its samples and entries → loops, blocks and the rest |
//! | `schedule` | which pieces are measured in isolation, and with the program's own values |
//! | `isolated` | loops and blocks measured in isolation, or why not |
//! | `pinned` | a run on one CPU |
//! | `compared` | that and the sampled run → what contention for cache lines costs |
//! | `contended` | contention in recorded addresses: its code, lines and notes |
//! | `known` | the inputs of the document, also as evidence |
//! | `recording` | the runs after the first, in order, and the document from them |
//! | `evidence` | everything known of a piece |
//! | `division` | how much of what bounds it are divisions |
//! | `latency` | costs of its loads and stores |
//! | `footprint` | how much code is hot, and what fetching costs |
//! | `callees` | mispredictions, also of indirect calls, whose cost is sampled in the callee, too |
//! | `groups` | evidence of pieces → parts: loops, other blocks as one group, marked regions |
//! | `few` | functions with few samples each |
//! | `tail` | their counts, and blocks that stand for all |
//! | `pooled` | their evidence as one |
//! | `rows` | all measurements → the document and its rows, live or replayed |
//! | `listing` | instructions and source lines of the rows, with their parts |
//! | `words` | the bottleneck in a sentence, its grounds, the next step |
//! | `redacted` | the evidence without names |
//! | `replay` | a document from evidence; whether its parts belong together |

mod ask;
mod callees;
mod compared;
mod contended;
mod division;
mod evidence;
mod expected;
mod few;
mod footprint;
mod further;
mod groups;
mod isolated;
mod known;
mod latency;
mod listing;
mod pieces;
mod pinned;
mod pooled;
mod recording;
mod redacted;
mod repeated;
mod replay;
mod rows;
mod schedule;
mod stubs;
mod tail;
mod unlike;
mod windows;
mod words;

use crate::core_model::CoreModel;
use crate::hot::hottest::AGAIN;
use crate::left::{Left, cost_of_process};
use crate::processes::{has_ended, working_child};
pub use crate::steps::{Callback, Step};
pub use ask::EstimateAsk;
use ask::{Clock, Functions, Progress, Shared, choose, clock, interruptible, width};
use evidence::Context;
use expected::counting;
use further::{Counted, Further};
use isa::deps::Analyser;
use isa::latency::Latencies;
use isa::ports::Ports;
use known::{Isolations, Known, Measured, Recorded, Shown, kept, missing};
use listing::of_profile;
use pieces::Function;
use pmu::machine::Load;
use pmu::perf::{Signals, tsc_hz_here};
use profile::event::EventKind;
use profile::hot::Profile;
use recording::count_again;
pub use redacted::redacted;
use repeated::UNTOLD;
pub use replay::replay;
use report::documents::count::Count;
use report::documents::estimate::{Estimate, Run};
use report::documents::evidence::Evidence;
use report::documents::{Purpose, Report};
use report::format::seconds;
use rows::evaluate;
use schedule::{Alone, isolation};
use std::time::{Duration, Instant};
use tail::Pooled;
use tma::{Error, Result};
use unlike::Unlike;

/// Why there is no tree.
const INTERRUPTED: &str = "interrupted while entries were counted";

/// The last run was one for values.
const CUT_SHORT: &str = "the last run was ended at a hot loop, for values: files that the command writes may be \
                         incomplete until it runs again";

/// Estimates the command of a report with samples. The signal that interrupted it, if one did.
///
/// # Errors
/// The samples are not of time; the sandbox cannot be started and no table describes the core.
pub fn estimate(
    report: &Report,
    profile: &mut Profile,
    ask: &EstimateAsk,
) -> Result<(Estimate, Option<i32>)> {
    if !EventKind::of(&profile.event).is_clock() {
        return Err(Error::not_possible("no estimated top-down")
            .because(format!("samples of {} are not of time", profile.event))
            .hint("leave --estimate out: a core PMU counts the tree"));
    }
    let sampled = report.duration.unwrap_or(1.0);
    let window = ask.process.map(|(_, window)| window);
    let plain = window.map_or(sampled, |window| window.as_secs_f64());
    let mut progress = Progress::new(ask, plain);
    let signals = Signals::catch()?;
    let mut document = Estimate::default();
    document.runs.push(Run { run: Purpose::Samples, seconds: sampled });
    let core = &*ask.model.core;
    let (width, clock) = (width(&ask.model.core)?, clock_of(&ask.model)?);
    let ghz = clock.ghz;
    let task = report.software.get("task_clock_ms").copied().flatten();
    let exit = report.exit.map(pmu::Exit::from);
    let parallel = pinned::parallel(profile.busy_threads(), task.map(|ms| ms / 1e3), sampled, exit);
    let parallel = parallel.filter(|_| ask.process.is_none());
    let found = choose(profile, exit, sampled);
    let found = Functions { parallel, task: task.map(|ms| ms / 1e3), ..found };
    progress.times.at_once = parallel.is_some();
    progress.times.task = task.map_or(plain, |ms| ms / 1e3);
    let counts = Left { counts: 1, ..Left::default() };
    let cost = window.map_or_else(|| counting(progress.times(), &found), cost_of_process);
    progress.plan(&cost, counts);
    let cycles = task.unwrap_or(sampled * 1e3) * (plain / sampled) * ghz * 1e6;
    let penalty = core.answers().and_then(|answers| answers.misprediction);
    let samples = found.hot.samples;
    let (ports, latencies) = (Ports::of(core)?, Latencies::new(core)?);
    let mut shared = Shared { core, ports, latencies, width, cycles, samples, clock, penalty };
    let command = report.command.clone().unwrap_or_default();
    let name = report.subject.join(" ");
    let (command, name) = (command.as_slice(), name.as_str());
    let early = |shared: &Shared, document: &Estimate, profile: &mut Profile, why: &str| {
        let functions = &[];
        let known = Known { shared, found: &found, functions, pooled: None, command, name, ask };
        keep_early(&known, report, document, profile, why);
    };
    progress.begin("counts", counts);
    let begun = Instant::now();
    let mut further = match Further::count(ask, &found, signals) {
        Ok(further) => further,
        Err(error) => {
            let ended = ask.process.filter(|(pid, _)| has_ended(*pid)).map(|_| {
                let sampled = seconds(sampled);
                format!("it ended after {sampled} of sampling, before its entries were counted")
            });
            let note = ended.as_ref().map_or(error.to_string(), |why| format!("{why}; {AGAIN}"));
            document.notes.push(note);
            let why = ended.as_deref().unwrap_or(error.what());
            early(&shared, &document, profile, why);
            return Ok((without(document, &found, why), None));
        }
    };
    if further.interrupted.is_some() {
        document.runs.extend(further.runs());
        document
            .notes
            .push(format!("{INTERRUPTED}: no entries are known, so only samples are shown"));
        early(&shared, &document, profile, INTERRUPTED);
        return Ok((without(document, &found, INTERRUPTED), further.interrupted));
    }
    // Entries of a process are of a window, in which it may have had less of a processor than when it was sampled.
    if let Some(spent) = further.spent().filter(|spent| *spent > 0.0) {
        shared.cycles = spent * ghz * 1e9;
    }
    let counted = Counted::new(further.counts());
    if let Some(unlike) = Unlike::of(&found, &counted, further.seconds_of(Purpose::Counts)) {
        document.runs.extend(further.runs());
        document.is_unlike = ask.process.is_none();
        let child = ask.process.and_then(|(pid, _)| working_child(pid));
        let why = child.map_or(unlike.to_string(), |child| format!("{unlike}; {child}"));
        early(&shared, &document, profile, &why);
        return Ok((without(document, &found, &why), None));
    }
    document.notes.extend(unlike::note(&found, &counted));
    // All that follows is by the entries of a run without probes.
    let is_by_the_clock = ask.process.is_none() && further.is_by_the_clock(&found);
    if is_by_the_clock {
        if progress.is_due(counts, "counts again") {
            progress.begin("counts again", counts);
            count_again(&mut further, &found, &mut document);
        } else {
            document.work = Some(UNTOLD);
        }
        shared.cycles /= document.work.map_or(1.0, |work| work.ratio);
    }
    let counted = Counted::new(further.counts());
    let functions = functions(&found, &counted, &ask.model);
    let context = Context::new(&shared, &counted);
    let pooled = found.few.as_ref().and_then(|few| Pooled::of(few, &context));
    let tail = pooled.as_ref().map(|pooled| pooled.counted(&functions, &context, &ask.model));
    let (pooled, functions) = (pooled.as_ref(), functions.as_slice());
    let known = Known { shared: &shared, found: &found, functions, pooled, command, name, ask };
    progress.times = known.measured(progress.times, &further, begun.elapsed());
    progress.planned = known.planned(&further, &counted, progress.times);
    let mut shown = Shown::new(ask.so_far.clone());
    let mut none = Recorded { tail, ..Recorded::default() };
    shown.show(true, || known.so_far(profile, &further, &counted, &Isolations::new(), &none));
    let alone = interruptible(further.signals(), further.interrupted, |interrupt| {
        isolation(&known, &mut progress, interrupt, &mut |measured| {
            shown.show(false, || known.so_far(profile, &further, &counted, measured, &none));
        })
    })?;
    let Alone { measured: isolated, own, interrupted } = alone;
    if let (Some(pooled), Some(tail)) = (pooled, &mut none.tail) {
        let most = Duration::from_secs_f64(plain).max(schedule::TIME).min(progress.budget() / 2);
        progress.begin_apart(pooled::MEASURING, progress.planned);
        interruptible(further.signals(), further.interrupted, |interrupt| {
            pooled.measure(tail, &ask.model, most, interrupt)
        })?;
    }
    let values = own.spent();
    further.values = values.clone();
    let before = further.runs().len();
    let recorded = known.record(
        &mut further,
        &isolated,
        &mut progress,
        &mut document,
        none.tail.clone(),
        &mut |further, of| {
            let counted = &Counted::new(further.counts());
            shown.show(true, || known.so_far(profile, further, counted, &isolated, of));
        },
    );
    document.runs.extend(further.runs());
    let counted = Counted::new(further.counts());
    let shared = match document.work.filter(|_| !is_by_the_clock) {
        Some(work) => Shared { cycles: shared.cycles / work.ratio, ..shared.clone() },
        None => shared.clone(),
    };
    let known = Known { shared: &shared, ..known };
    let measured = Measured { counted: &counted, isolated: &isolated, recorded: &recorded };
    let evidence = ask
        .keep
        .is_some()
        .then(|| kept(&known, report, &document, measured, &mut of_profile(profile)));
    let groups = evaluate(&known, &mut document, measured, &mut of_profile(profile));
    document.regions = groups::regions(profile, functions, &groups);
    let mut last = Vec::new();
    if further.interrupted.is_some() {
        last.push(missing(&recorded, interrupted, isolated.len()));
    }
    if values.is_some() && further.runs().len() == before {
        last.push(CUT_SHORT.to_owned());
    }
    let disturbed = || ask.since.and_then(|since| busy(since.others()?));
    document.disturbed = disturbed().filter(|_| ask.process.is_none());
    last.extend(document.disturbed.clone());
    document.notes.extend(last.clone());
    if let (Some(mut evidence), Some(keep)) = (evidence, &ask.keep) {
        evidence.notes.1 = last;
        keep.call(evidence);
    }
    progress.end();
    Ok((document, further.interrupted))
}

/// The least share that is not shown as 0 %.
const MENTIONED: f64 = 0.005;

/// A note that others used the machine, if they disturbed the estimate.
fn busy(others: Load) -> Option<String> {
    let Load { busy, stolen } = others;
    others.disturbs().then(|| {
        let used = |share: f64, who| {
            (share >= MENTIONED).then(|| format!("{who} {:.0} % of its CPU time", 100.0 * share))
        };
        let all = [used(busy, "other processes used"), used(stolen, "the hypervisor took")];
        let all: Vec<String> = all.into_iter().flatten().collect();
        format!("the machine was busy: {}; intervals assume a quiet one", all.join(", "))
    })
}

/// Relative error of the clock in the sampled run, as measured right after it.
const CLOCK_ERROR: f64 = 0.04;

/// The core clock: as an add chain shows, else that of the time-stamp counter, which cores exceed up to twice in turbo.
///
/// # Errors
/// Neither is known.
fn clock_of(model: &CoreModel) -> Result<Clock> {
    match (clock(model), tsc_hz_here()) {
        (Ok(ghz), _) => Ok(Clock { ghz, error: CLOCK_ERROR, reason: None }),
        (Err(why), Some(hz)) => {
            let why = why.cause().unwrap_or(why.what()).to_owned();
            Ok(Clock { ghz: hz / 1e9, error: 1.0, reason: Some(why) })
        }
        (Err(why), None) => Err(why),
    }
}

/// The hot functions with their counts.
fn functions(found: &Functions, counted: &Counted, model: &CoreModel) -> Vec<Function> {
    let all = found.hot.functions.iter().zip(&found.flows).enumerate();
    let mut all: Vec<Function> = all
        .filter_map(|(number, (hot, flow))| Some(Function::of(number, hot, flow.clone()?, counted)))
        .collect();
    for function in &mut all {
        function.is_stub = stubs::is_stub(&found.hot.functions[function.number].name, function);
    }
    stubs::enter(&mut all, counted);
    let mut analyser = Analyser::new(model.latencies.clone());
    all.iter_mut().for_each(|function| function.find_latency(&mut analyser, &model.core));
    all
}

/// Keeps the evidence where nothing is counted.
fn keep_early(
    known: &Known,
    report: &Report,
    document: &Estimate,
    profile: &mut Profile,
    why: &str,
) {
    let (count, isolated, recorded) = (Count::default(), Isolations::new(), Recorded::default());
    let counted = &Counted::new(&count);
    let none = Measured { counted, isolated: &isolated, recorded: &recorded };
    if let Some(keep) = &known.ask.keep {
        let failed = Some(why.to_owned());
        keep.call(Evidence {
            failed,
            ..kept(known, report, document, none, &mut of_profile(profile))
        });
    }
}

/// The document where nothing is counted: all is unexplained.
fn without(mut document: Estimate, found: &Functions, why: &str) -> Estimate {
    rows::unknown(&mut document, found, why);
    document
}
