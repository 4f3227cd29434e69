//! The runs, in order, and the document from all of them.

use super::ask::{EstimateAsk, cost};
use super::counted::Counted;
use super::evidence::Context;
use super::footprint::Footprint;
use super::functions::{Functions, choose};
use super::further::{Further, Wanted};
use super::interrupt::interruptible;
use super::listing;
use super::load_places::{Time, unexplained};
use super::machine::{clock, width};
use super::needs;
use super::pieces::Function;
use super::progress::Progress;
use super::regions;
use super::rows;
use super::schedule::{Isolated, interrupted, isolation};
use crate::core_model::CoreModel;
use crate::count::Places;
use crate::documents::Report;
use crate::documents::count::Count;
use crate::documents::estimate::{Estimate, Run};
use crate::recorded_loads::code::Code;
use crate::steps::Left;
use isa::deps::Analyser;
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

/// Runs with loads are planned for this share of that, as what probes cost is known roughly.
const PLANNED: f64 = 0.93;

/// Why there is no tree.
const INTERRUPTED: &str = "interrupted while entries were counted";

/// The last run was one for values.
const CUT_SHORT: &str = "the last run was ended at a hot loop, for values: files that the command writes may be \
                         incomplete until it runs again";

/// What is said where loads are not recorded everywhere.
const PART: &str =
    "loads were recorded where they were most likely to matter: all would have taken too long";

/// Why it is not known whether two runs do the same.
const NOT_REPEATED: &str = "entries were counted in one run only, as the others took too long: whether each run does the \
                            same is not known";

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
    let plain = report.duration.unwrap_or(1.0);
    let mut progress = Progress::new(ask, plain);
    progress.begin_apart(&format!("estimated top-down: {}", cost(plain)), Left::all());
    let signals = Signals::catch()?;
    let mut document = Estimate::default();
    document.runs.push(Run { run: "samples".to_owned(), seconds: plain });
    let core = &*ask.model.core;
    let (width, ghz) = (width(core)?, clock(&ask.model)?);
    let found = choose(profile, report.exit.map(pmu::Exit::from), plain);
    let task = report.software.get("task_clock_ms").copied().flatten();
    let cycles = task.unwrap_or(plain * 1e3) * ghz * 1e6;
    let shared = Shared { core, width, cycles, samples: found.hot.samples, ghz };
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
    let functions = functions(&found, further.counts(), &ask.model);
    let of = (shared.samples, plain, shared.cycles);
    let (isolated, own) = interruptible(further.signals(), |interrupt| {
        isolation(ask, &functions, of, &mut progress, interrupt)
    })?;
    let before = further.runs().len();
    let known = Known { shared: &shared, functions: &functions, isolated: &isolated };
    let (wanted, recorded, places) =
        known.record(&mut further, ask, (plain, &mut progress), &mut document)?;
    document.runs.extend(further.runs());
    document.runs.extend(own.spent());
    let entries_error = if document.deterministic == Some(false) { DIFFERENT } else { 0.0 };
    let context = Context {
        footprint: known.footprint(),
        branches: recorded.branches,
        entries_error,
        loads_of: places,
        ..known.shared.context(further.counts())?
    };
    let command = report.command.clone().unwrap_or_default();
    rows::enter(&mut document, &found, &functions, &isolated, (&context, &command));
    document.regions = regions::regions(profile, &functions, &isolated, &context);
    listing::enter(&mut document, profile, &ask.model, (&context, recorded.loads));
    document.notes.extend(notes(&context, (wanted, recorded), document.deterministic));
    if further.interrupted.is_some() {
        document.notes.push(missing((wanted, recorded), (interrupted(&isolated), isolated.len())));
    }
    if own.spent().is_some() && further.runs().len() == before {
        document.notes.push(CUT_SHORT.to_owned());
    }
    progress.end();
    Ok((document, further.interrupted))
}

/// What is known before more is recorded.
struct Known<'a> {
    shared: &'a Shared<'a>,
    functions: &'a [Function],
    isolated: &'a Isolated,
}

impl Known<'_> {
    /// Records branches, then loads where something is still unexplained, and counts once more if there is time for
    /// that. What was wanted, what was recorded, and of which code loads.
    fn record(
        &self,
        further: &mut Further,
        ask: &EstimateAsk,
        (plain, progress): (f64, &mut Progress),
        document: &mut Estimate,
    ) -> Result<(Wanted, Wanted, Places)> {
        let mut noted = |done: Result<()>| {
            let error = done.err().map(|error| error.to_string());
            document.notes.extend(error.clone());
            error.is_none()
        };
        let mut recorded = Wanted::default();
        let mut wanted = Wanted { branches: self.branches(further.counts())?, loads: true };
        let mut left =
            Left { counts: 1, branches: wanted.branches, loads: true, ..Left::default() };
        if wanted.branches && !further.is_interrupted() {
            progress.begin("branches", left);
            recorded.branches = noted(further.branches(ask)) && !further.is_interrupted();
        }
        left.branches = false;
        let time = Time {
            plain,
            counted: further.seconds_of("counts"),
            most: (PLANNED * MOST * plain - further.seconds()) / 2.0,
        };
        let context =
            Context { branches: recorded.branches, ..self.shared.context(further.counts())? };
        let found = unexplained(&context, self.functions, self.isolated, time);
        wanted.loads = found.share > WORTH && !found.places.is_empty();
        let places = found.places;
        if wanted.loads && !further.is_interrupted() {
            progress.begin("loads", left);
            recorded.loads = noted(further.loads(places.clone())) && !further.is_interrupted();
            if found.is_part {
                document.notes.push(PART.to_owned());
            }
        }
        left.loads = false;
        let again = further.seconds_of("counts").max(left.seconds(plain));
        if !further.is_interrupted() && further.seconds() + again > MOST * plain {
            document.notes.push(NOT_REPEATED.to_owned());
        } else if !further.is_interrupted() {
            progress.begin("counts again", left);
            match further.repeated() {
                Ok(same) => document.deterministic = same,
                Err(error) => document.notes.push(error.to_string()),
            }
        }
        Ok((wanted, recorded, places))
    }

    /// Whether mispredictions can matter.
    fn branches(&self, count: &Count) -> Result<bool> {
        let context = self.shared.context(count)?;
        let all: u64 = self.functions.iter().flat_map(|function| &function.samples).sum();
        let cycles = self.shared.cycles * all as f64 / self.shared.samples.max(1) as f64;
        let most = needs::mispredictions(self.functions, &context.counted, context.penalty);
        Ok(most > WORTH * cycles)
    }

    fn footprint(&self) -> Footprint {
        Footprint::of(self.functions, self.shared.core.l1_code.map(|cache| cache.bytes()))
    }
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
            loads_of: Places::default(),
        })
    }
}

/// The hot functions with their counts.
fn functions(found: &Functions, count: &Count, model: &CoreModel) -> Vec<Function> {
    let hot = &found.hot.functions;
    let mut paths: Vec<String> = hot.iter().map(|f| f.path.display().to_string()).collect();
    paths.sort();
    paths.dedup();
    let file = |path| Module { path, kind: ModuleKind::File, ..Module::default() };
    let modules = paths.into_iter().map(file).collect();
    let mut code = Code::new(Symbols::new(SearchPaths::default()), modules);
    let counted = Counted::new(count);
    let all = hot.iter().enumerate();
    let mut all: Vec<Function> =
        all.filter_map(|(number, hot)| Function::of(number, hot, &mut code, &counted)).collect();
    let mut analyser = Analyser::new(model.latencies.clone());
    all.iter_mut().for_each(|function| function.find_latency(&mut analyser, &model.core));
    all
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
