//! What `--estimate` asks for.

use crate::cli::progress;
use crate::message::note;
use crate::settings::Settings;
use engine::documents::evidence_file;
use engine::estimate::{EstimateAsk, Keep, Step, Watch, redacted};
use std::path::Path;
use tma::Result;

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

/// Writes the evidence to a file; with placeholders for names, if asked for.
pub(super) fn keep_in(path: &Path, redact: bool) -> Keep {
    let path = path.to_owned();
    Keep::new(move |evidence| {
        let evidence = if redact { redacted(&evidence)? } else { evidence };
        evidence_file::write(&path, &evidence)
    })
}

/// Shows a step of the estimate that begins; the first says what all will take.
fn show_step(step: &Step) {
    match step.number {
        // Stays in sight.
        1 => note(&step.what),
        _ => _ = progress::step(step),
    }
}
