//! Request of `--estimate`.

use crate::cli::progress;
use crate::cli::quoted::quoted;
use crate::message::note;
use crate::settings::Settings;
use engine::estimate::{Callback, EstimateAsk, Step, redacted};
use engine::regions::Followed;
use engine::topdown::LiveAsk;
use pmu::machine::Moment;
use pmu::{Command, Target};
use report::documents::evidence;
use report::documents::evidence::Evidence;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tma::{Error, Result};

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
    Ok(EstimateAsk { command, process, model, progress, so_far: None, keep: None, since })
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
        if let Err(error) = evidence.and_then(|evidence| write(&path, &evidence)) {
            *not_kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    })
}

/// Writes it, or else to a private folder among the temporary files: it took runs that nobody wants to repeat.
fn write(path: &Path, evidence: &Evidence) -> Result<()> {
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

/// Shows a step of the estimate that begins; the first says what all will take.
fn show_step(step: &Step) {
    match step.number {
        // Stays in sight.
        1 => note(&step.what),
        _ => _ = progress::step(step),
    }
}
