//! Blocks, measured one after the other in a sandbox that is kept; in a thread of its own.

use super::{Queue, caught, told};
use crate::commands::known::Known;
use crate::tui::action::Action;
use bench::explain::Explainer;
use bench::{Options, Pmu, Profiler, Report, Watch};
use isa::code::Block;
use isa::latency::Latencies;
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
        let mut tools: Option<Tools> = None;
        while let Ok(job) = jobs.recv() {
            if job.watch.is_cancelled() {
                continue;
            }
            let result = caught(|| {
                let tools = tools.get_or_insert_with(|| Tools::new(options.clone(), &tables));
                tools.measure(&job)
            });
            let result = match result {
                Ok(result) => result,
                Err(why) => {
                    // Who knows what state it is in.
                    tools = None;
                    Err(why)
                }
            };
            if !job.watch.is_cancelled() {
                queue.send(Action::Measured(job.id, result));
            }
        }
    });
}

/// What blocks are measured and explained with.
struct Tools {
    profiler: Profiler,
    /// None where no explanation is asked for.
    explainer: Option<Explainer>,
}

impl Tools {
    fn new(options: Option<Options>, (library, uarch): &(Library, Option<String>)) -> Self {
        let options = options.unwrap_or_else(|| usual(library, uarch.as_deref()));
        let known = || {
            let known = Known::of(library, uarch.as_deref(), &mut Vec::new()).ok();
            known.map_or((Latencies::default(), None), |k| (k.latencies, k.uarch))
        };
        let explainer = options
            .explain
            .then(known)
            .map(|(latencies, uarch)| Explainer::new(&options, latencies, uarch));
        Self { profiler: Profiler::new(options), explainer }
    }

    /// Measures a block, and why it takes so long.
    fn measure(&mut self, job: &Job) -> Result<Box<Report>, String> {
        let block = Block::decode(&job.bytes).map_err(|e| told(&e))?;
        self.profiler.watched(job.watch.clone());
        let mut report = self.profiler.measure(&block).map_err(|e| told(&e))?;
        if let Some(explainer) = &mut self.explainer {
            explainer.watched(job.watch.clone());
            let explained = explainer.explain(&mut self.profiler, &block, &mut report, false);
            explained.map_err(|e| told(&e))?;
        }
        Ok(Box::new(report))
    }
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
