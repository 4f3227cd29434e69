//! Blocks, measured one after the other in a thread of its own.

use super::queue::Queue;
use crate::settings::Settings;
use crate::tui::action::BackgroundResult;
use crate::tui::failure::{Failure, catch_panic};
use bench::{Measurement, Options, Pmu, Progress};
use engine::block::Measurer;
use isa::code::Block;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A block to measure.
pub struct Job {
    pub id: u64,
    pub bytes: Vec<u8>,
    pub watch: Progress,
}

/// Measures blocks as they come, with `options` or else the default ones and this machine's PMU.
pub fn serve(jobs: Receiver<Job>, options: Option<Options>, settings: Arc<Settings>, queue: Queue) {
    std::thread::spawn(move || {
        // A measurer belongs to its thread. It starts with the first block and is used for all.
        let mut shared: Option<Measurer> = None;
        while let Ok(job) = jobs.recv() {
            if job.watch.is_cancelled() {
                continue;
            }
            let result = catch_panic(|| {
                let measurer = match &mut shared {
                    Some(measurer) => measurer,
                    none => none.insert(measurer(options.clone(), &settings)?),
                };
                measure(measurer, &job)
            });
            let result = result.unwrap_or_else(|panic| {
                // The state of the measurer is unknown.
                shared = None;
                Err(panic)
            });
            if !job.watch.is_cancelled() {
                queue.send(BackgroundResult::Measured(job.id, result));
            }
        }
    });
}

/// Measures and explains a block.
fn measure(measurer: &mut Measurer, job: &Job) -> Result<Box<Measurement>, Failure> {
    let block = Block::decode(&job.bytes)?;
    measurer.set_progress(job.watch.clone());
    Ok(Box::new(measurer.measure(&block, false)?))
}

fn measurer(options: Option<Options>, settings: &Settings) -> tma::Result<Measurer> {
    let model = settings.core_model()?;
    let options = options.unwrap_or_else(|| {
        let uarch = settings.uarch.as_deref();
        let pmu = match Pmu::find(settings.machine(), settings.library, uarch, None) {
            Ok(Ok(pmu)) => pmu,
            Ok(Err(finding)) => Pmu::Absent(finding.cause.unwrap_or(finding.what)),
            Err(error) => Pmu::Absent(error.to_string()),
        };
        Options { pmu, ..Options::default() }
    });
    Ok(Measurer::new(options, &model))
}
