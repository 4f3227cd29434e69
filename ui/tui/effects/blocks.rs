//! Blocks, measured one after the other in a sandbox that is kept; in a thread of its own.

use super::{Queue, caught, told};
use crate::tui::action::Action;
use std::sync::mpsc::Receiver;
use tdtool::block::{Options, Pmu, Profiler, Report, Watch};
use tdtool::code::Block;
use tdtool::machine::Machine;
use tdtool::tables::Library;

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
        let mut profiler: Option<Profiler> = None;
        while let Ok(job) = jobs.recv() {
            if job.watch.is_cancelled() {
                continue;
            }
            let result = caught(|| {
                let profiler = profiler.get_or_insert_with(|| {
                    let options = options.clone();
                    Profiler::new(options.unwrap_or_else(|| usual(&tables.0, tables.1.as_deref())))
                });
                profiler.watched(job.watch.clone());
                measure(profiler, &job.bytes)
            });
            let result = match result {
                Ok(result) => result,
                Err(why) => {
                    // Who knows what state it is in.
                    profiler = None;
                    Err(why)
                }
            };
            if !job.watch.is_cancelled() {
                queue.send(Action::Measured(job.id, result));
            }
        }
    });
}

fn usual(library: &Library, uarch: Option<&str>) -> Options {
    let options = Options::default();
    let pmu = match Pmu::find(&Machine::detect(), library, uarch, options.cpu) {
        Ok(Ok(pmu)) => pmu,
        Ok(Err(finding)) => Pmu::Absent(finding.cause.unwrap_or(finding.what)),
        Err(error) => Pmu::Absent(error.to_string()),
    };
    Options { pmu, ..options }
}

fn measure(profiler: &mut Profiler, bytes: &[u8]) -> Result<Box<Report>, String> {
    let block = Block::decode(bytes).map_err(|e| told(&e))?;
    profiler.measure(&block).map(Box::new).map_err(|e| told(&e))
}
