//! `tdtool report`: reports on recordings, on a live measurement, or on the regions that a command or process
//! marks.

mod arguments;
mod code_options;
mod destination;

pub use arguments::ReportArgs;

use super::files::print;
use super::measure::{
    exit_code, note_blocked, note_interrupted, note_remedy, note_unused, status, usage,
};
use super::options::Global;
use super::progress::{self, Clock, Progress};
use super::recordings::reading;
use crate::message::{self, note};
use crate::settings::Settings;
use crate::{config, terminal};
use arguments::Format;
use destination::Destination;
use engine::estimate::{Callback, EstimateAsk, Step, redacted};
use engine::one_run::OneRun;
use engine::record::SampleAsk;
use engine::regions::{Followed, RegionsAsk, TreesAsk, regions};
use engine::reports::{Measured, of_files, of_live};
use engine::sampled::code::CodeAsk;
use engine::sampled::entries::target as count_target;
use engine::topdown::{Ask, ImportAsk, LiveAsk, Update};
use pmu::machine::{Moment, this_cpu};
use pmu::sampling::CallChains;
use pmu::{Command, Target};
use report::documents::evidence;
use report::documents::evidence::Evidence;
use report::files::{check_place, write_whole};
use report::render::{json, regions as text};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tma::shell::quoted;
use tma::{Error, Result};

/// Refuses contradictory options.
pub fn check(args: &ReportArgs) -> Result<()> {
    if args.is_of_regions() { check_regions(args) } else { args.check() }
}

pub fn run(global: &Global, args: ReportArgs) -> Result<ExitCode> {
    if args.quiet {
        terminal::be_quiet();
    }
    if args.is_of_regions() {
        return run_regions(&args, &global.settings()?);
    }
    let settings = global.settings()?;
    for (path, option) in args.outputs() {
        if let Some(path) = path.as_ref().filter(|path| path.as_os_str() != "-") {
            check_place(path, &args.files(), option)?;
        }
    }
    let destination = Destination::open(&args, settings.ascii)?;
    // The functions of phases need the time of each sample.
    let timeline = args.firefox.is_some() || args.collects() && args.interval.is_some();
    let code = args.code.ask(&settings, args.html.is_some(), timeline)?;
    if args.files().is_empty() {
        of_measurement(&args, &settings, destination, code)
    } else {
        reading(&args.files(), || of_recordings(&args, settings, destination, code))
    }
}

fn of_recordings(
    args: &ReportArgs,
    settings: Settings,
    mut destination: Destination,
    code: Option<CodeAsk>,
) -> Result<ExitCode> {
    let mut ask = ImportAsk {
        files: args.files(),
        ask: Ask { without_details: !args.shows_counts(), ..args.measure.ask() },
        uarch: settings.uarch,
        here: Some(this_cpu),
        intervals: args.interval.is_some(),
    };
    let mut progress = progress(args);
    let show_progress = &mut |done, all| progress.show(done, all);
    // Options of counts have had an effect if any interval has some.
    let (mut last, mut has_counts) = (None, false);
    for report in of_files(settings.library, &ask, code.as_ref(), show_progress)? {
        let stacks_only = args.stacks_only();
        // A page shows them, files for other tools do not.
        let exports_only = args.page_only() && args.html.is_none();
        if stacks_only || exports_only || args.format == Format::Csv {
            // No report tells them, and they may say that the recording is damaged.
            let of_samples = report.sampled.iter().flat_map(|sampled| &sampled.notes);
            report.notes.iter().chain(of_samples).for_each(|text| note(text));
        }
        if !stacks_only {
            destination.document(&report)?;
        }
        has_counts |= report.is_counted();
        last = Some(report);
    }
    if !has_counts {
        last.iter().for_each(|report| note_unused(&args.measure, report));
    }
    if destination.wants_whole() {
        ask.intervals = false;
        let reports = of_files(settings.library, &ask, code.as_ref(), &mut |_, _| {})?;
        reports.iter().for_each(|report| destination.whole(report));
    }
    destination.finish()?;
    note_stacks(args);
    destination.note_file();
    Ok(ExitCode::SUCCESS)
}

fn of_measurement(
    args: &ReportArgs,
    settings: &Settings,
    mut destination: Destination,
    mut code: Option<CodeAsk>,
) -> Result<ExitCode> {
    let (mut ask, not_kept) = (args.live(settings)?, NotKept::default());
    ask.ask.without_details = !args.shows_counts();
    if args.code.estimate && args.measure.pid.is_some() {
        ask.duration.get_or_insert(Duration::from_secs_f64(WINDOW));
    }
    let is_taken = ask.command.is_some() || args.interval.is_some();
    let one_run = match args.code.estimate && ask.duration.is_some() {
        true => OneRun::start(&mut ask)?,
        false => None,
    };
    if let (true, Some(code)) = (args.code.counts, &mut code) {
        code.count = Some(count_target(&ask.target, ask.command.as_ref())?);
    }
    if let (true, Some(code)) = (args.code.estimate, &mut code) {
        let evidence = args.code.evidence.as_ref();
        let keep = evidence.map(|path| keep_in(path, args.code.redact, &not_kept));
        let own = estimate_ask(settings, &estimated(&ask)?)?;
        let budget = args.code.budget.map(Duration::from_secs_f64);
        code.estimate = Some(EstimateAsk { keep, budget, ..own });
    }
    if let Some(code) = &mut code {
        code.command.clone_from(&ask.command);
    }
    let (mut failed, mut is_noted) = (None, false);
    let sample = SampleAsk {
        // They show how kernel time was entered, too.
        call_chains: CallChains::FramePointers,
        beside: args.code.order.iter().cloned().collect(),
        locate: args.code.locate,
        per_function: args.code.per_function,
        programs: config::kept_programs(),
        ..SampleAsk::default()
    };
    let code = code.as_ref().map(|code| (code, &sample));
    let mut on_update = |update| {
        if failed.is_none()
            && let Err(error) = show(&mut destination, &update, &mut is_noted)
        {
            // Reported now: the measurement continues, and its summary may still be written.
            failed = Some(message::error(&error));
        }
    };
    let (machine, library) = (settings.machine(), settings.library);
    let mut progress = progress(args);
    let mut clock = Some(Clock::start("measuring", ask.duration, is_taken));
    let show_progress = &mut |done, all| {
        drop(clock.take());
        progress.show(done, all);
    };
    let of = Measured { machine, library, ask: &ask, code };
    let outcome = of_live(of, &mut on_update, show_progress);
    let mut outcome = outcome.map_err(|error| match &one_run {
        Some(run) => run.explained(error),
        None => error,
    })?;
    drop(clock);
    let (exit, signal) = one_run.map_or((None, None), OneRun::end);
    outcome.exit = outcome.exit.or(exit);
    outcome.interrupted = outcome.interrupted.or(signal);
    if !args.stacks_only() {
        if !destination.is_read_here() {
            note_blocked(&outcome);
        }
        destination.last(&outcome.report)?;
        if destination.is_read_here() {
            note_remedy(&outcome);
        }
    }
    note_unused(&args.measure, &outcome.report);
    destination.finish()?;
    note_stacks(args);
    destination.note_file();
    if let Some(error) = not_kept.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    if let (true, Some(error)) = (ask.require_pmu, outcome.not_counted()) {
        return Err(error);
    }
    Ok(failed.unwrap_or_else(|| status(&outcome)))
}

/// Notes where the folded stacks and the flame graph are.
fn note_stacks(args: &ReportArgs) {
    let written = [
        ("folded stacks are", &args.code.folded),
        ("flame graph is", &args.code.flamegraph),
        ("profile is", &args.code.pprof),
        ("costs are", &args.code.callgrind),
        ("evidence is", &args.code.evidence),
    ];
    for (what, path) in written {
        if let Some(path) = path.as_ref().filter(|p| p.as_os_str() != "-" && p.exists()) {
            note(&format!("the {what} in {}", path.display()));
        }
    }
}

/// Progress of what follows the samples.
fn progress(args: &ReportArgs) -> Progress {
    match args.code.counts {
        // docs/results/speed.md: a run with counting probes takes 1.5 times that without.
        true => Progress::of_run("counting entries", 1.5),
        false => Progress::new("measuring blocks"),
    }
}

fn show(destination: &mut Destination, update: &Update, is_noted: &mut bool) -> Result<()> {
    match update {
        Update::Runs(runs) => note(&format!("the command will run up to {runs} times")),
        Update::Interval(report) => destination.document(report)?,
        Update::Interrupted(_) => {
            note_interrupted(is_noted, "interrupted; reporting what was measured");
        }
    }
    Ok(())
}

/// Refuses contradictory options.
pub fn check_regions(args: &ReportArgs) -> Result<()> {
    if args.format == Format::Csv {
        return Err(usage("--regions has no CSV", "--format text or json"));
    }
    args.measure.check()?;
    followed(args, false).map(drop)
}

/// Runs the command, or watches the process, with its markers probed.
pub fn run_regions(args: &ReportArgs, settings: &Settings) -> Result<ExitCode> {
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let of = followed(args, file.is_some())?;
    // As elsewhere: a text leaves standard output to the command, a document takes it.
    let beside =
        matches!(of, Followed::Command(_)) && args.output.is_none() && args.format == Format::Text;
    let ask = RegionsAsk { of, modules: args.module.clone(), named: args.region.clone() };
    let trees = if args.code.no_code { None } else { Some(trees(args, settings, &ask.of)?) };
    let (document, code) = regions(&ask, trees.as_ref(), &mut |_, _| {})?;
    let text = match args.format {
        Format::Json => json::pretty(&document)?,
        _ => text::text(&document),
    };
    match file {
        Some(path) => write_whole(path, text.as_bytes(), &[], "--output")?,
        None if beside => message::plain(&tma::text::lines(&text)),
        None => print(&text)?,
    }
    Ok(exit_code(code))
}

/// With what a tree per region is measured, or estimated.
fn trees<'a>(args: &ReportArgs, settings: &'a Settings, of: &Followed) -> Result<TreesAsk<'a>> {
    let estimate = args.code.estimate.then(|| match of {
        Followed::Process(..) => Err(usage(
            "--estimate of regions needs a command to run again",
            "`tdtool report --regions --estimate -- COMMAND`",
        )),
        Followed::Command(_) => estimate_ask(settings, of),
    });
    let estimate = estimate.transpose()?;
    Ok(TreesAsk {
        machine: settings.machine(),
        library: settings.library,
        live: args.live(settings)?,
        estimate,
        search: args.code.search.paths()?,
    })
}

/// The command or process; `to_file`: the document goes to a file.
fn followed(args: &ReportArgs, to_file: bool) -> Result<Followed> {
    let none = args.files().is_empty();
    match (args.measure.pid, args.measure.targets(), args.command.is_empty()) {
        (Some(pid), 1, true) if none => {
            let window = args.measure.duration.map_or(Duration::MAX, Duration::from_secs_f64);
            Ok(Followed::Process(pid, window))
        }
        (None, 0, false) if none && args.measure.duration.is_none() => {
            let beside = args.output.is_none() && args.format == Format::Text;
            let stdout = pmu::Stdout::beside(!to_file && !beside);
            Ok(Followed::Command(
                Command { argv: args.command.clone(), stdout, ..Command::default() }.run_again(),
            ))
        }
        _ => Err(usage(
            "--regions follows the markers of a command from start to end, or of a process",
            "`tdtool report --regions -- COMMAND` or `tdtool report --regions -p PID --duration S`",
        )),
    }
}

/// Seconds that a process is sampled, and counted in each window, without `--duration`.
pub(super) const WINDOW: f64 = 1.0;

/// Subject of the estimate: a command, or a process in windows as long as it is sampled.
pub(super) fn estimate_ask(settings: &Settings, of: &Followed) -> Result<EstimateAsk> {
    let (command, process) = match of {
        Followed::Command(command) => (command.clone(), None),
        Followed::Process(pid, window) => (Command::default(), Some((*pid, *window))),
    };
    let (model, progress) = (settings.core_model()?, Callback::new(|step| show_step(&step)));
    let since = Some(Moment::now());
    Ok(EstimateAsk {
        command,
        process,
        model,
        progress,
        so_far: None,
        keep: None,
        budget: None,
        since,
    })
}

/// Subject of a live measurement, if it can be estimated.
pub(super) fn estimated(ask: &LiveAsk) -> Result<Followed> {
    match (&ask.target, &ask.command, ask.duration) {
        (Target::Command, Some(command), _) => Ok(Followed::Command(command.clone())),
        (Target::Process(pid), None, Some(window)) => Ok(Followed::Process(*pid, window)),
        _ => Err(tma::Error::usage("--estimate is of a command or a process")
            .because("it counts, and records branches and loads, in further runs or windows")
            .hint("`tdtool report --estimate -- COMMAND` or `tdtool report --estimate -p PID`")),
    }
}

/// Why evidence was not written, which is reported after all that was measured.
pub(super) type NotKept = Arc<Mutex<Option<Error>>>;

/// Writes the evidence to a file; with placeholders for names, if asked for.
pub(super) fn keep_in(path: &Path, redact: bool, not_kept: &NotKept) -> Callback<Evidence> {
    let (path, not_kept) = (path.to_owned(), Arc::clone(not_kept));
    Callback::new(move |evidence| {
        let evidence = if redact { redacted(&evidence) } else { Ok(evidence) };
        if let Err(error) = evidence.and_then(|evidence| write_evidence(&path, &evidence)) {
            *not_kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    })
}

/// Writes it, or else to a private folder among the temporary files: it took runs that nobody wants to repeat.
fn write_evidence(path: &Path, evidence: &Evidence) -> Result<()> {
    let Err(error) = evidence::write(path, evidence) else { return Ok(()) };
    let packed = if path.extension().is_some_and(|end| end == "gz") { ".gz" } else { "" };
    let private = std::env::temp_dir().join(format!("tdtool-evidence-{}", std::process::id()));
    if DirBuilder::new().mode(0o700).create(&private).is_err() {
        return Err(error);
    }
    let elsewhere = private.join(format!("evidence.json{packed}"));
    match evidence::write(&elsewhere, evidence) {
        Ok(()) => {
            let folder = path.parent().filter(|of| !of.as_os_str().is_empty() && !of.exists());
            let first = folder.map(|of| format!("mkdir -p {} && ", quoted(&[of])));
            let first = first.unwrap_or_default();
            let remedy = format!("{first}mv {}", quoted(&[elsewhere.as_path(), path]));
            Err(error.hint(remedy))
        }
        Err(_) => Err(error),
    }
}

/// Shows a step of the estimate that begins.
fn show_step(step: &Step) {
    match step.is_plan {
        true => note(&step.what),
        false => _ = progress::step(step),
    }
}
