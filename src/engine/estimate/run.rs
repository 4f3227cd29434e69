//! The runs, in order, and the document from all of them.

use super::ask::{EstimateAsk, cost, cost_of_process};
use super::counted::Counted;
use super::evidence::Context;
use super::footprint::Footprint;
use super::functions::{Functions, choose};
use super::further::{Further, Wanted};
use super::interrupt::interruptible;
use super::listing;
use super::machine::{clock, width};
use super::needs;
use super::pieces::Function;
use super::progress::Progress;
use super::rows;
use super::schedule::{Isolated, interrupted, isolation, unexplained};
use super::so_far::{Shown, not_yet, waiting};
use crate::documents::Report;
use crate::documents::count::Count;
use crate::documents::estimate::{Estimate, Run};
use crate::recorded_loads::code::Code;
use crate::steps::Left;
use isa::ports::Ports;
use pmu::perf::Signals;
use profile::files::SearchPaths;
use profile::hot::Profile;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use tma::{Core, Error, Result};

/// Branches are recorded where mispredictions may take this share of the time, loads where so much is unexplained.
const WORTH: f64 = 0.02;

/// Further runs take at most about so many times the first.
const MOST: f64 = 8.0;

/// Why there is no tree.
const INTERRUPTED: &str = "interrupted while entries were counted";

/// What the counts of a process are.
const WINDOWS: &str = "counts are of windows in which probes slow the process: without them entries may be up to \
                       40 % more; code is measured in isolation with made-up values";

/// The last run was one for values.
const CUT_SHORT: &str = "the last run was ended at a hot loop, for values: files that the command writes may be \
                         incomplete until it runs again";

/// How well entries are those of the sampled run where two runs differ: a program that runs for a given time does
/// less with probes.
const DIFFERENT: f64 = 0.4;

/// What all pieces share, without counts.
struct Shared<'a> {
    core: &'a Core,
    width: f64,
    /// Core cycles of the run.
    cycles: f64,
    samples: u64,
    ghz: f64,
}

/// Estimates the command of a report with samples. The signal that interrupted it, if one did.
///
/// # Errors
/// The samples are not of time; the sandbox cannot be started; the core's width or clock is not known.
pub fn estimate(
    report: &Report,
    profile: &mut Profile,
    ask: &EstimateAsk,
) -> Result<(Estimate, Option<i32>)> {
    if !profile.event.contains("clock") {
        return Err(Error::not_possible("no estimated top-down")
            .because(format!("samples of {} are not of time", profile.event))
            .hint("leave --estimate out: a core PMU counts the tree"));
    }
    let sampled = report.duration.unwrap_or(1.0);
    let window = ask.process.map(|(_, window)| window);
    let plain = window.map_or(sampled, |window| window.as_secs_f64());
    let mut progress = Progress::new(ask, plain);
    let cost = window.map_or_else(|| cost(plain), cost_of_process);
    progress.begin(&format!("estimated top-down: {cost}"), Left::all());
    let signals = Signals::catch()?;
    let mut document = Estimate::default();
    document.runs.push(Run { run: "samples".to_owned(), seconds: sampled });
    let core = &*ask.model.core;
    let (width, ghz) = (width(core)?, clock(&ask.model)?);
    let found = choose(profile, report.exit.map(pmu::Exit::from), sampled);
    let task = report.software.get("task_clock_ms").copied().flatten();
    let cycles = task.unwrap_or(sampled * 1e3) * (plain / sampled) * ghz * 1e6;
    let mut shared = Shared { core, width, cycles, samples: found.hot.samples, ghz };
    progress.begin("counts", Left::all());
    let mut further = match Further::count(ask, &found, signals) {
        Ok(further) => further,
        Err(error) => {
            document.notes.push(error.to_string());
            return Ok((without(document, &found, error.what()), None));
        }
    };
    if further.interrupted.is_some() {
        document.runs.extend(further.runs());
        document
            .notes
            .push(format!("{INTERRUPTED}: no entries are known, so only samples are shown"));
        return Ok((without(document, &found, INTERRUPTED), further.interrupted));
    }
    // Entries of a process are of a window, in which it may have had less of a processor than when it was sampled.
    if let Some(spent) = further.spent().filter(|spent| *spent > 0.0) {
        shared.cycles = spent * ghz * 1e9;
    }
    let functions = functions(&found, further.counts());
    let of = (shared.samples, plain, shared.cycles);
    let command = report.command.clone().unwrap_or_default();
    let name = report.subject.join(" ");
    let known = Known {
        shared: &shared,
        found: &found,
        functions: &functions,
        command: &command,
        name: &name,
        ask,
    };
    let mut shown = Shown::new(ask.so_far.clone());
    let none = (Footprint::default(), Wanted::default());
    shown.show(true, || known.so_far(profile, &further, &Isolated::new(), none));
    let (isolated, own) = interruptible(further.signals(), |interrupt| {
        isolation(ask, &functions, of, &mut progress, interrupt, &mut |measured| {
            shown.show(false, || known.so_far(profile, &further, measured, none));
        })
    })?;
    let (wanted, footprint) = shared.wanted(further.counts(), &functions, &isolated)?;
    let before = further.runs().len();
    let recorded = record(
        &mut further,
        ask,
        wanted,
        (plain, &mut progress),
        &mut document,
        &mut |further, of| {
            shown.show(true, || known.so_far(profile, further, &isolated, (footprint, of)));
        },
    );
    document.runs.extend(further.runs());
    document.runs.extend(own.spent());
    let context =
        known.enter(&mut document, profile, further.counts(), &isolated, (footprint, recorded))?;
    document.notes.extend(notes(&context, (wanted, recorded), document.deterministic));
    if ask.process.is_some() {
        document.notes.push(WINDOWS.to_owned());
    }
    if further.interrupted.is_some() {
        document.notes.push(missing((wanted, recorded), (interrupted(&isolated), isolated.len())));
    }
    if own.spent().is_some() && further.runs().len() == before {
        document.notes.push(CUT_SHORT.to_owned());
    }
    progress.end();
    Ok((document, further.interrupted))
}

/// What the document is made from, beside counts and measurements.
struct Known<'a> {
    shared: &'a Shared<'a>,
    found: &'a Functions,
    functions: &'a [Function],
    command: &'a [String],
    /// What the program is called.
    name: &'a str,
    ask: &'a EstimateAsk,
}

impl<'a> Known<'a> {
    /// Enters the program, its functions, loops and blocks.
    fn enter<'c>(
        &self,
        document: &mut Estimate,
        profile: &mut Profile,
        count: &'c Count,
        isolated: &Isolated,
        (footprint, recorded): (Footprint, Wanted),
    ) -> Result<Context<'c>>
    where
        'a: 'c,
    {
        let is_other = document.deterministic == Some(false) || self.ask.process.is_some();
        let entries_error = if is_other { DIFFERENT } else { 0.0 };
        let branches = recorded.branches;
        let context = Context { branches, entries_error, footprint, ..self.shared.context(count)? };
        rows::enter(document, self.found, self.functions, isolated, (&context, self.command));
        listing::enter(document, profile, &self.ask.model, (&context, recorded.loads));
        if self.command.is_empty() {
            self.name.clone_into(&mut document.program.name);
        }
        Ok(context)
    }

    /// The document as far as it is known.
    fn so_far(
        &self,
        profile: &mut Profile,
        further: &Further,
        measured: &Isolated,
        (footprint, recorded): (Footprint, Wanted),
    ) -> Option<Estimate> {
        let seconds = self.found.hot.seconds;
        let mut document = Estimate::default();
        document.runs.push(Run { run: "samples".to_owned(), seconds });
        document.runs.extend(further.runs());
        let isolated = waiting(self.functions, measured);
        let of = (footprint, recorded);
        self.enter(&mut document, profile, further.counts(), &isolated, of).ok()?;
        not_yet(&mut document, recorded);
        Some(document)
    }
}

/// Records what is wanted, and counts once more if there is time for that. What was recorded; `after` each run it is
/// called with what was until then.
fn record(
    further: &mut Further,
    ask: &EstimateAsk,
    wanted: Wanted,
    (plain, progress): (f64, &mut Progress),
    document: &mut Estimate,
    after: &mut dyn FnMut(&Further, Wanted),
) -> Wanted {
    after(further, Wanted::default());
    let mut recorded = Wanted::default();
    let (branches, loads) = (wanted.branches, wanted.loads);
    let mut left = Left { counts: 1, branches, loads, ..Left::default() };
    let mut noted = |done: Result<()>| {
        let error = done.err().map(|error| error.to_string());
        document.notes.extend(error.clone());
        error.is_none()
    };
    if wanted.branches && !further.is_interrupted() {
        progress.begin("branches", left);
        recorded.branches = noted(further.branches(ask)) && !further.is_interrupted();
        after(further, recorded);
    }
    left.branches = false;
    if wanted.loads && !further.is_interrupted() {
        progress.begin("loads", left);
        recorded.loads = noted(further.loads()) && !further.is_interrupted();
        after(further, recorded);
    }
    left.loads = false;
    let has_runs = ask.process.is_none();
    if has_runs
        && !further.is_interrupted()
        && further.seconds() + left.seconds(plain) <= MOST * plain
    {
        progress.begin("counts again", left);
        match further.repeated() {
            Ok(same) => document.deterministic = same,
            Err(error) => document.notes.push(error.to_string()),
        }
    }
    recorded
}

/// What an interrupted estimate lacks; so many of all hot loops and blocks were not measured in isolation.
fn missing((wanted, recorded): (Wanted, Wanted), (left, all): (usize, usize)) -> String {
    let lacks = [
        (left > 0, format!("{left} of {all} hot loops and blocks in isolation")),
        (wanted.branches && !recorded.branches, "mispredictions".to_owned()),
        (wanted.loads && !recorded.loads, "latencies of loads".to_owned()),
    ];
    let lacks: Vec<String> =
        lacks.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
    match lacks.is_empty() {
        true => "interrupted: whether two runs do the same is not known".to_owned(),
        false => format!(
            "interrupted: not known are {}; what they would explain is unexplained",
            lacks.join(", ")
        ),
    }
}

impl Shared<'_> {
    fn context<'c>(&'c self, count: &'c Count) -> Result<Context<'c>> {
        let known = self.core.answers().and_then(|answers| answers.misprediction);
        Ok(Context {
            core: self.core,
            ports: Ports::of(self.core)?,
            width: self.width,
            cycles: self.cycles,
            samples: self.samples,
            ghz: self.ghz,
            penalty: count.misprediction_cycles.or(known),
            count,
            counted: Counted::new(count),
            branches: false,
            entries_error: 0.0,
            footprint: Footprint::default(),
        })
    }

    /// What must be recorded, and how much code is hot.
    fn wanted(
        &self,
        count: &Count,
        functions: &[Function],
        isolated: &Isolated,
    ) -> Result<(Wanted, Footprint)> {
        let context = self.context(count)?;
        let all: u64 = functions.iter().flat_map(|function| &function.samples).sum();
        let cycles = self.cycles * all as f64 / self.samples.max(1) as f64;
        let most = needs::mispredictions(functions, &context.counted, context.penalty);
        let wanted = Wanted {
            branches: most > WORTH * cycles,
            loads: unexplained(&context, functions, isolated) > WORTH,
        };
        let first = self.core.l1_code.map(|cache| cache.bytes());
        Ok((wanted, Footprint::of(functions, first)))
    }
}

/// The hot functions with their counts.
fn functions(found: &Functions, count: &Count) -> Vec<Function> {
    let hot = &found.hot.functions;
    let mut paths: Vec<String> = hot.iter().map(|f| f.path.display().to_string()).collect();
    paths.sort();
    paths.dedup();
    let file = |path| Module { path, kind: ModuleKind::File, ..Module::default() };
    let modules = paths.into_iter().map(file).collect();
    let mut code = Code::new(Symbols::new(SearchPaths::default()), modules);
    let counted = Counted::new(count);
    let all = hot.iter().enumerate();
    all.filter_map(|(number, hot)| Function::of(number, hot, &mut code, &counted)).collect()
}

/// What must be known of the numbers.
fn notes(
    context: &Context,
    (wanted, recorded): (Wanted, Wanted),
    deterministic: Option<bool>,
) -> Vec<String> {
    let mut notes = vec![format!(
        "core clock {:.2} GHz, as an add chain showed after the sampled run",
        context.ghz
    )];
    if let (true, Some(cycles)) = (recorded.branches, context.penalty) {
        notes.push(format!(
            "a misprediction costs {cycles:.0} cycles by the self-test where its branch waits for a load, and as \
             `tdtool count --branches` shows for others"
        ));
    }
    if deterministic == Some(false) {
        notes.push(
            "two runs entered blocks differently often: the program is not deterministic, and its \
             shares are of several runs"
                .to_owned(),
        );
    }
    if !wanted.loads {
        notes.push("loads were not recorded: nothing is left that they could explain".to_owned());
    }
    notes
}

/// The document where nothing is counted: all is unexplained.
fn without(mut document: Estimate, found: &Functions, why: &str) -> Estimate {
    rows::unknown(&mut document, found, why);
    document
}
