//! Blocks, measured one after the other in a sandbox that is kept; in a thread of its own.

use super::{Queue, caught, told};
use crate::tui::action::Action;
use bench::{Options, Pmu, Report, Watch};
use engine::block::Measurer;
use engine::known::Known;
use isa::code::Block;
use pmu::machine::Machine;
use std::sync::mpsc::Receiver;
use tma::tables::Library;

/// A block to measure.
pub struct Job {
    pub id: u64,
    pub bytes: Vec<u8>,
    pub watch: Watch,
}

/// Measures what comes; `options` unless given are the usual ones with this machine's PMU.
pub fn serve(
    jobs: Receiver<Job>,
    options: Option<Options>,
    tables: (Library, Option<String>),
    queue: Queue,
) {
    std::thread::spawn(move || {
        // A profiler belongs to its thread, and starts when the first block comes.
        let mut kept: Option<Measurer> = None;
        while let Ok(job) = jobs.recv() {
            if job.watch.is_cancelled() {
                continue;
            }
            let result = caught(|| {
                let measurer = match &mut kept {
                    Some(measurer) => measurer,
                    none => none.insert(measurer(options.clone(), &tables).map_err(|e| told(&e))?),
                };
                measure(measurer, &job)
            });
            let result = match result {
                Ok(result) => result,
                Err(why) => {
                    // Who knows what state it is in.
                    kept = None;
                    Err(why)
                }
            };
            if !job.watch.is_cancelled() {
                queue.send(Action::Measured(job.id, result));
            }
        }
    });
}

/// Measures and explains a block.
fn measure(measurer: &mut Measurer, job: &Job) -> Result<Box<Report>, String> {
    let block = Block::decode(&job.bytes).map_err(|e| told(&e))?;
    measurer.watched(job.watch.clone());
    measurer.measure(&block, false).map(Box::new).map_err(|e| told(&e))
}

/// With this machine's PMU unless `options` say otherwise.
fn measurer(
    options: Option<Options>,
    (library, uarch): &(Library, Option<String>),
) -> tma::Result<Measurer> {
    let machine = Machine::detect();
    let uarch = uarch.as_deref();
    let cache = crate::commands::cache_folder();
    let known = Known::new(&machine, library, uarch, cache.as_deref())?;
    let options = options.unwrap_or_else(|| {
        let pmu = match Pmu::find(&machine, library, uarch, None) {
            Ok(Ok(pmu)) => pmu,
            Ok(Err(finding)) => Pmu::Absent(finding.cause.unwrap_or(finding.what)),
            Err(error) => Pmu::Absent(error.to_string()),
        };
        Options { pmu, ..Options::default() }
    });
    Ok(Measurer::new(options, &known))
}
