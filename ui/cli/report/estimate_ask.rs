//! What `--estimate` asks for.

use crate::cli::progress;
use crate::message::note;
use crate::settings::Settings;
use engine::estimate::{EstimateAsk, Step, Watch};
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
    let (model, progress) = (settings.own_core_model()?, Watch::new(show_step));
    Ok(EstimateAsk { command, process: None, model, progress, so_far: None })
}

/// Shows a step of the estimate that begins; the first says what all will take.
fn show_step(step: &Step) {
    match step.number {
        // Stays in sight.
        1 => note(&step.what),
        _ => _ = progress::step(step),
    }
}
