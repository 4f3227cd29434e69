//! What `--estimate` asks for.

use crate::cli::progress;
use crate::cli::quoted::quoted;
use crate::message::note;
use crate::settings::Settings;
use engine::documents::evidence::Evidence;
use engine::documents::evidence_file;
use engine::estimate::{EstimateAsk, Keep, Step, Watch, redacted};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tma::{Error, Result};

/// The command to estimate.
pub(super) fn estimate_ask(
    settings: &Settings,
    command: Option<&pmu::Command>,
) -> Result<EstimateAsk> {
    let command = command.cloned().ok_or_else(|| {
        tma::Error::usage("--estimate needs a command to run again")
            .because("it counts, and records branches and loads, in further runs")
            .hint("tdtool report --estimate -- COMMAND; of a running process: tdtool -p PID, then the key e")
    })?;
    let (model, progress) = (settings.core_model()?, Watch::new(show_step));
    Ok(EstimateAsk { command, process: None, model, progress, so_far: None, keep: None })
}

/// Why evidence was not written, which is reported after all that was measured.
pub(super) type NotKept = Arc<Mutex<Option<Error>>>;

/// Writes the evidence to a file; with placeholders for names, if asked for.
pub(super) fn keep_in(path: &Path, redact: bool, not_kept: &NotKept) -> Keep {
    let (path, not_kept) = (path.to_owned(), Arc::clone(not_kept));
    Keep::new(move |evidence| {
        let evidence = if redact { redacted(&evidence) } else { Ok(evidence) };
        if let Err(error) = evidence.and_then(|evidence| write(&path, &evidence)) {
            *not_kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    })
}

/// Writes it, or else to the folder of temporary files: it took runs that nobody wants to repeat.
fn write(path: &Path, evidence: &Evidence) -> Result<()> {
    let Err(error) = evidence_file::write(path, evidence) else { return Ok(()) };
    let packed = if path.extension().is_some_and(|end| end == "gz") { ".gz" } else { "" };
    let name = format!("tdtool-evidence-{}.json{packed}", std::process::id());
    let elsewhere = std::env::temp_dir().join(name);
    match evidence_file::write(&elsewhere, evidence) {
        Ok(()) => {
            let command = format!("mv {}", quoted(&[elsewhere.as_path(), path]));
            let remedy =
                error.remedy().map(|remedy| format!("{remedy}; then ")).unwrap_or_default();
            let remedy = format!("{remedy}{command}");
            let cause = error.cause().map(str::to_owned);
            let error = Error::failed(error.what());
            Err(cause.map_or(error.clone(), |cause| error.because(cause)).hint(remedy))
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
