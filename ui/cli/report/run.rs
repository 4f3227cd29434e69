//! Reports on recordings, or on a live measurement.

use super::arguments::{Format, ReportArgs};
use super::destination::Destination;
use super::estimate_ask::{NotKept, WINDOW, estimate_ask, estimated, keep_in};
use super::regions;
use crate::cli::global::Global;
use crate::cli::outcome::{note_blocked, note_interrupted, note_remedy, note_unused, status};
use crate::cli::progress::{Clock, Progress};
use crate::cli::reading::reading;
use crate::message::{self, note};
use crate::settings::Settings;
use crate::{config, terminal};
use engine::estimate::EstimateAsk;
use engine::record::SampleAsk;
use engine::sampled::code::CodeAsk;
use engine::sampled::entries::target as count_target;
use engine::sampled::reports::{Measured, of_files, of_live};
use engine::topdown::{Ask, ImportAsk, Update};
use pmu::machine::this_cpu;
use pmu::sampling::CallChains;
use report::files::check_place;
use std::process::ExitCode;
use std::sync::PoisonError;
use std::time::Duration;
use tma::Result;

/// Refuses contradictory options.
pub fn check(args: &ReportArgs) -> Result<()> {
    if args.is_of_regions() { regions::check(args) } else { args.check() }
}

pub fn run(global: &Global, args: ReportArgs) -> Result<ExitCode> {
    if args.quiet {
        terminal::be_quiet();
    }
    if args.is_of_regions() {
        return regions::run(&args, &global.settings()?);
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
    if let (true, Some(code)) = (args.code.counts, &mut code) {
        code.count = Some(count_target(&ask.target, ask.command.as_ref())?);
    }
    if let (true, Some(code)) = (args.code.estimate, &mut code) {
        let evidence = args.code.evidence.as_ref();
        let keep = evidence.map(|path| keep_in(path, args.code.redact, &not_kept));
        let own = estimate_ask(settings, &estimated(&ask)?)?;
        code.estimate = Some(EstimateAsk { keep, ..own });
    }
    if let Some(code) = &mut code {
        code.command.clone_from(&ask.command);
    }
    let (mut failed, mut is_noted) = (None, false);
    let sample = SampleAsk {
        call_chains: match args.collects() || args.code.wants_chains() {
            true => CallChains::FramePointers,
            false => CallChains::None,
        },
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
    let is_taken = ask.command.is_some() || args.interval.is_some();
    let mut clock = Some(Clock::start("measuring", ask.duration, is_taken));
    let show_progress = &mut |done, all| {
        drop(clock.take());
        progress.show(done, all);
    };
    let of = Measured { machine, library, ask: &ask, code };
    let outcome = of_live(of, &mut on_update, show_progress)?;
    drop(clock);
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
    Ok(failed.unwrap_or_else(|| ExitCode::from(status(&outcome))))
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
