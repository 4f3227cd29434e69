//! Estimated top-down of a command that was sampled, in further runs of it.

use super::queue::Queue;
use crate::settings::Settings;
use crate::tui::action::BackgroundResult;
use crate::tui::alternate_screen::silence;
use crate::tui::state::Searchable;
use engine::commands::Carried;
use engine::estimate::{Callback, EstimateAsk, estimate};
use engine::steps::cost;
use pmu::Command;
use pmu::machine::Moment;
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile};
use profile::recording::Stream;
use report::documents::estimate::Estimate;
use report::documents::{Report, Source};
use report::render::json;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tma::{Error, Result};

/// A command and its first run.
pub struct Sampled {
    pub report: Report,
    pub recording: Arc<Stream>,
    pub search: SearchPaths,
    /// Empty of a process.
    pub command: Vec<OsString>,
    /// A live process instead.
    pub process: Option<i32>,
}

/// Each window of a live process.
const WINDOW: Duration = Duration::from_secs(1);

/// Cost of an estimate of a live process.
pub fn cost_of_process() -> String {
    engine::steps::cost_of_process(WINDOW)
}

impl Sampled {
    /// Cost of its estimate; `None` where the tree was counted.
    pub fn cost(&self) -> Option<String> {
        let cost = || match self.process {
            Some(_) => cost_of_process(),
            None => cost(self.report.duration.unwrap_or(1.0)),
        };
        (self.report.source == Source::NoPmu).then(cost)
    }

    /// Estimates it; steps are sent as they begin.
    ///
    /// # Errors
    /// It cannot be run again or estimated here; it was interrupted.
    pub fn estimate(&self, settings: &Settings, queue: &Queue) -> Result<Estimate> {
        silence();
        let mut profile = Profile::new(&*self.recording, &Filter::default(), self.search.clone())?;
        let (steps, documents, evidence_queue) = (queue.clone(), queue.clone(), queue.clone());
        let carried = Carried::new(settings.uarch.as_deref(), settings.library, false);
        let of_parts = carried.clone();
        let ask = EstimateAsk {
            process: self.process.map(|pid| (pid, WINDOW)),
            command: Command { argv: workload::resolve(&self.command), stdout_to_stderr: false },
            model: settings.core_model()?,
            progress: Callback::new(move |step| {
                steps.send(BackgroundResult::Estimating(step));
            }),
            so_far: Some(Callback::new(move |mut document| {
                of_parts.enter_estimate(&mut document);
                documents.send(BackgroundResult::EstimatedSoFar(Searchable::boxed(document)));
            })),
            keep: Some(Callback::new(move |evidence| {
                if let Ok(line) = json::line(&evidence) {
                    evidence_queue.send(BackgroundResult::Evidence(line));
                }
            })),
            since: Some(Moment::now()),
        };
        match estimate(&self.report, &mut profile, &ask)? {
            (mut document, None) => {
                carried.enter_estimate(&mut document);
                Ok(document)
            }
            (_, Some(_)) => {
                Err(Error::failed("no estimated top-down").because("it was interrupted"))
            }
        }
    }
}
