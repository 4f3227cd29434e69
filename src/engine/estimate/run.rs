//! The runs, in order, and the document from all of them.

use super::ask::{EstimateAsk, Left, Step, cost};
use super::counted::Counted;
use super::evidence::Context;
use super::footprint::Footprint;
use super::functions::{Functions, choose};
use super::isolated::Isolation;
use super::needs;
use super::pieces::Function;
use super::rows::{self, Isolated};
use crate::count::{CountAsk, counted};
use crate::documents::count::Count;
use crate::documents::estimate::{Estimate, Run};
use crate::documents::{Exit, Report};
use crate::recorded_loads::code::Code;
use bench::{Options, Profiler};
use estimate::{Part, Parts, divide};
use isa::ports::Ports;
use pmu::perf::tsc_hz_here;
use profile::files::SearchPaths;
use profile::hot::Profile;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Pieces are measured in isolation until they hold this share of the samples; …
const MEASURED: f64 = 0.9;
/// … each at least this share; …
const LEAST: f64 = 0.005;
/// … within this time, or that of the sampled run if that is longer.
const ISOLATION: Duration = Duration::from_secs(30);
/// Mispredictions are recorded where they may take this share of the time, loads where so much is unexplained.
const WORTH: f64 = 0.02;
/// How often the core clock is looked at until nothing else runs.
const LOOKS: usize = 20;

/// What further runs have given.
struct Measured {
    count: Count,
    branches: bool,
    deterministic: Option<bool>,
}

/// What all pieces share, without counts.
struct Shared<'a> {
    core: &'a tma::Core,
    width: f64,
    cycles: f64,
    samples: u64,
    ghz: f64,
    footprint: Footprint,
}

impl Shared<'_> {
    fn context<'c>(&'c self, count: &'c Count, branches: bool) -> Result<Context<'c>> {
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
            branches,
            footprint: self.footprint,
        })
    }
}

/// Estimates the command of a report with samples. The signal that interrupted it, if one did.
///
/// # Errors
/// The command cannot be run again; the sandbox cannot be started.
pub fn estimate(report: &Report, profile: &mut Profile, ask: &EstimateAsk) -> Result<(Estimate, Option<i32>)> {
    let plain = report.duration.unwrap_or(1.0);
    let found = choose(profile, report.exit.map(ended), plain);
    let mut document = Estimate::default();
    document.runs.push(Run { run: "samples".to_owned(), seconds: plain });
    if !profile.event.contains("clock") {
        return Err(Error::not_possible("no estimated top-down")
            .because(format!("samples of {} are not of time", profile.event))
            .hint("leave --estimate out: a core PMU counts the tree"));
    }
    let mut progress = Progress::new(ask, plain);
    progress.begin(&format!("estimate: {}", cost(plain)), Left::all());
    let core = &ask.model.core;
    let (width, ghz) = (width(core)?, clock(ask)?);
    progress.begin("counts", Left::all());
    let first = match run(ask, &found, false, false) {
        Ok(first) => first,
        Err(error) => return Ok((without(document, &found, &error), None)),
    };
    document.runs.extend(runs(&first.0));
    if let Some(signal) = first.1 {
        return Ok((document, Some(signal)));
    }
    let mut code = Code::new(Symbols::new(SearchPaths::default()), modules(&found));
    let one = Counted::new(&first.0);
    let functions: Vec<Function> = found.hot.functions.iter().enumerate()
        .filter_map(|(number, hot)| Function::of(number, hot, &mut code, &one))
        .collect();
    let isolated = isolation(ask, &found, &functions, &mut progress)?;
    let task = report.software.get("task_clock_ms").copied().flatten();
    let cycles = task.unwrap_or(plain * 1e3) / 1e3 * ghz * 1e9;
    let mut measured = Measured { count: first.0, branches: false, deterministic: None };
    let footprint = Footprint::of(&functions, core.l1_code.map(|cache| cache.bytes()));
    let shared = Shared { core, width, cycles, samples: found.hot.samples, ghz, footprint };
    let before = shared.context(&measured.count, false)?;
    let hot = cycles * found.hot.functions.iter().map(|f| f.share).sum::<f64>();
    let branches = needs::mispredictions(&functions, &before.counted, before.penalty) > WORTH * hot;
    let loads = unexplained(&before, &functions, &isolated) > WORTH;
    if branches || loads {
        let left = Left { counts: 1, branches, loads, isolated: 0 };
        progress.begin(what(branches, loads), left);
        match run(ask, &found, branches, loads) {
            Ok((count, interrupted)) => {
                document.runs.extend(runs(&count));
                if let Some(signal) = interrupted {
                    return Ok((document, Some(signal)));
                }
                let deterministic = Some(same(&measured.count, &count));
                measured = Measured { count, branches, deterministic };
            }
            Err(error) => document.notes.push(error.to_string()),
        }
    } else {
        document.notes.push("branches and loads were not recorded: they can explain nothing more".to_owned());
    }
    document.deterministic = measured.deterministic;
    if measured.deterministic == Some(false) {
        document.notes.push(
            "two runs entered blocks differently often: the program is not deterministic, and its shares are of several \
             runs"
                .to_owned(),
        );
    }
    let last = shared.context(&measured.count, measured.branches)?;
    let command = report.command.clone().unwrap_or_default().join(" ");
    rows::enter(&mut document, &found, &functions, &isolated, (&last, &command));
    document.notes.push(format!("core clock {ghz:.2} GHz, as an add chain showed after the sampled run"));
    if let Some(cycles) = last.penalty {
        document.notes.push(format!("a misprediction costs {cycles:.0} cycles by the self-test"));
    }
    progress.end();
    Ok((document, None))
}

fn what(branches: bool, loads: bool) -> &'static str {
    match (branches, loads) {
        (true, true) => "branches and loads",
        (true, false) => "branches",
        _ => "loads",
    }
}

/// Steps, and the time that is left.
struct Progress<'a> {
    ask: &'a EstimateAsk,
    plain: f64,
    number: usize,
}

impl<'a> Progress<'a> {
    fn new(ask: &'a EstimateAsk, plain: f64) -> Self {
        Self { ask, plain, number: 0 }
    }

    fn begin(&mut self, what: &str, left: Left) {
        self.number += 1;
        let of = self.number + left.runs() + left.isolated;
        let seconds_left = left.seconds(self.plain);
        (self.ask.progress)(&Step { what: what.to_owned(), number: self.number, of, seconds_left });
    }

    fn end(&mut self) {
        (self.ask.progress)(&Step { what: String::new(), number: self.number, of: self.number, seconds_left: 0.0 });
    }
}

fn ended(exit: Exit) -> pmu::Exit {
    match exit {
        Exit::Status(status) => pmu::Exit::Status(status),
        Exit::Signal(signal) => pmu::Exit::Signal(signal),
    }
}

fn width(core: &tma::Core) -> Result<f64> {
    core.width().map(f64::from).ok_or_else(|| {
        Error::not_possible("no estimated top-down")
            .because("the width of this processor is not known: no table describes it")
            .hint("name a table with --uarch")
    })
}

/// The core clock in GHz.
fn clock(ask: &EstimateAsk) -> Result<f64> {
    let mut profiler = Profiler::new(Options { core: ask.model.core.clone(), ..Options::quick() });
    for _ in 0..LOOKS {
        if let Some(found) = profiler.cycles_per_tick()?.zip(tsc_hz_here()) {
            return Ok(found.0 * found.1 / 1e9);
        }
    }
    Err(Error::failed("the core clock is not known")
        .because("other programs use the processor all the time")
        .hint("try again on a quieter machine"))
}

/// Counts the hot functions in a run; with branches and loads in further ones.
fn run(ask: &EstimateAsk, found: &Functions, branches: bool, loads: bool) -> Result<(Count, Option<i32>)> {
    let ask = CountAsk {
        command: pmu::Command { stdout_to_stderr: true, ..ask.command.clone() },
        process: None,
        modules: Vec::new(),
        functions: Vec::new(),
        hot: Some(found.hot.clone()),
        plain: false,
        loads,
        values: None,
        branches: branches.then(|| ask.model.core.clone()),
    };
    let (count, code) = counted(&ask, &mut |_, _| {})?;
    let interrupted = count.notes.iter().any(|note| note.starts_with("interrupted"));
    Ok((count, interrupted.then_some(code - 128)))
}

fn runs(count: &Count) -> impl Iterator<Item = Run> + '_ {
    let probed = count.cost.iter().filter(|cost| cost.probes > 0);
    probed.map(|cost| Run { run: cost.run.clone(), seconds: cost.seconds })
}

fn modules(found: &Functions) -> Vec<Module> {
    let mut paths: Vec<String> = found.hot.functions.iter().map(|f| f.path.display().to_string()).collect();
    paths.sort();
    paths.dedup();
    paths.into_iter().map(|path| Module { path, kind: ModuleKind::File, ..Module::default() }).collect()
}

/// The hottest pieces in isolation.
fn isolation(
    ask: &EstimateAsk,
    found: &Functions,
    functions: &[Function],
    progress: &mut Progress,
) -> Result<Isolated> {
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        order.extend(function.pieces.iter().enumerate().map(|(number, piece)| (piece.samples, at, number)));
    }
    order.sort_by(|a, b| b.cmp(a));
    let all: u64 = order.iter().map(|(samples, ..)| samples).sum();
    let mut held = 0;
    order.retain(|(samples, ..)| {
        let wanted = (held as f64) < MEASURED * all as f64 && *samples as f64 >= LEAST * found.hot.samples as f64;
        held += samples;
        wanted
    });
    let isolation = Isolation::new(&ask.model);
    let begin = Instant::now();
    let most = ISOLATION.max(Duration::from_secs_f64(found.hot.seconds));
    let mut measured = Isolated::new();
    for (number, (_, at, piece)) in order.iter().enumerate() {
        if begin.elapsed() > most {
            break;
        }
        let left = Left { isolated: order.len() - number, ..Left::all() };
        let left = Left { counts: 1, ..left };
        progress.begin(&format!("measuring {} of {} in isolation", number + 1, order.len()), left);
        let function = &functions[*at];
        measured.insert((*at, *piece), isolation.piece(function, &function.pieces[*piece])?);
    }
    Ok(measured)
}

/// The share that is unexplained without loads and branches.
fn unexplained(context: &Context, functions: &[Function], isolated: &Isolated) -> f64 {
    let mut all: Vec<(f64, Parts)> = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        for (number, piece) in function.pieces.iter().enumerate() {
            let unknown = rows::not_measured();
            let found = isolated.get(&(at, number)).unwrap_or(&unknown);
            all.push((piece.samples as f64, divide(&context.evidence(function, piece, found))));
        }
    }
    Parts::sum(all.iter().map(|(own, parts)| (*own, parts))).of(Part::Unexplained).share.value
}

/// Whether two runs entered all blocks equally often.
fn same(one: &Count, other: &Count) -> bool {
    let key = |count: &Count| {
        let mut rows: Vec<(String, String, u64)> =
            count.blocks.iter().map(|row| (row.module.clone(), row.start.clone(), row.count)).collect();
        rows.sort();
        rows
    };
    key(one) == key(other)
}

/// The document where nothing can be counted: all is unexplained.
fn without(mut document: Estimate, found: &Functions, error: &Error) -> Estimate {
    document.notes.push(error.to_string());
    let share = found.hot.functions.iter().map(|f| f.share).sum();
    document.program.share = share;
    document.program.bottleneck = "undecided".to_owned();
    document
}
