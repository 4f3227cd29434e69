//! Which clock and which counters a profiler uses, settled when it has a worker to try them on.

use super::count::{Counted, count};
use super::counter::Effort;
use super::{FormRuns, PerfCounting, SoftwareCounts, SoftwareEvents, witness};
use crate::counters::{CorePmu, Pmu};
use crate::measurement::{Hierarchy, Measurement, Outcome};
use crate::options::{ClockSource, Options};
use crate::runner::Runner;
use crate::timing::clock::{Clock, PmuClock, TscClock};
use crate::timing::measure::Form;
use std::sync::Arc;
use tma::{Error, Result};

/// Differences of each group; more where many passes are made.
const REPETITIONS: (usize, usize) = (8, 16);

/// See the file's head.
pub struct Source {
    clock: Box<dyn Clock>,
    core: Option<Arc<CorePmu>>,
    why_not: String,
    settled: bool,
    watch: Option<SoftwareEvents>,
    set_progress: SoftwareCounts,
}

impl Source {
    /// What `options` ask for, not tried yet.
    pub fn new(options: &Options) -> Self {
        let (core, why_not) = match &options.pmu {
            Pmu::Present(core) => (Some(core.clone()), String::new()),
            Pmu::Absent(why) => (None, why.clone()),
        };
        let (watch, set_progress) = (None, SoftwareCounts::default());
        Self { clock: Box::new(TscClock), core, why_not, settled: false, watch, set_progress }
    }

    /// The processor to keep to, where there are several kinds of core.
    pub fn cpu(options: &Options) -> Option<usize> {
        match &options.pmu {
            Pmu::Present(core) => options.cpu.or(core.cpu),
            Pmu::Absent(_) => options.cpu,
        }
    }

    /// Whether the worker has to let itself be counted by a process without the capability.
    pub fn inspect(options: &Options) -> bool {
        matches!(&options.pmu, Pmu::Present(core) if core.inspect)
    }

    /// Tries the PMU on the worker, once.
    ///
    /// # Errors
    /// The sandbox cannot be started; the PMU was asked for and does not count the worker.
    pub fn settle(&mut self, runner: &mut Runner, options: &Options) -> Result<()> {
        if self.settled {
            return Ok(());
        }
        self.settled = true;
        // Counts are differences of runs.
        let wanted = options.clock != ClockSource::Tsc && options.two_factors;
        if let Some(core) = &self.core {
            let mut clock = PmuClock::new(Box::new(PerfCounting::default()), core.cycles);
            match clock.try_on(runner.worker()?.process()) {
                Ok(()) if wanted => self.clock = Box::new(clock),
                Ok(()) => {}
                Err(why) => {
                    self.core = None;
                    self.why_not = format!("the core PMU does not count the worker: {why}");
                }
            }
        }
        if options.clock == ClockSource::Pmu && self.core.is_none() {
            self.settled = false;
            return Err(Error::not_possible("core cycles cannot be counted by a PMU here")
                .because(&self.why_not)
                .hint("tdtool doctor says more; --clock tsc measures without a PMU"));
        }
        Ok(())
    }

    /// The clock.
    pub fn clock(&mut self) -> &mut dyn Clock {
        self.clock.as_mut()
    }

    /// The clock's name.
    pub fn clock_name(&self) -> &'static str {
        self.clock.name()
    }

    /// Starts to watch the worker for what the kernel counts of any process.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn watch(&mut self, runner: &mut Runner, options: &Options) -> Result<()> {
        self.watch = match options.counts {
            true => Some(SoftwareEvents::start(runner.worker()?.process())),
            false => None,
        };
        Ok(())
    }

    /// Ends that.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn unwatch(&mut self, runner: &mut Runner) -> Result<()> {
        self.set_progress = match self.watch.take() {
            Some(watch) => watch.stop(runner.worker()?.process()),
            None => SoftwareCounts::default(),
        };
        Ok(())
    }

    /// Enters what the kernel and the PMU count of `form`, whose code is installed and whose
    /// assumptions are in the report.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn enter(
        &self,
        runner: &mut Runner,
        form: &Form,
        options: &Options,
        measurement: &mut Measurement,
    ) -> Result<()> {
        self.set_progress.enter(&mut measurement.assumptions);
        let neighbour = measurement.assumptions.iter_mut().find(|i| i.name == "neighbour");
        if let (false, Some(neighbour)) = (options.sentinel, neighbour) {
            neighbour.outcome = Outcome::Unchecked;
            neighbour.how = "not looked for".to_owned();
        }
        let counted = match (&self.core, options.counts) {
            (Some(core), true) => Self::count(core, runner, form, options)?,
            (Some(_), false) => Err("not asked for".to_owned()),
            (None, _) => Err(self.why_not.clone()),
        };
        match counted {
            Ok(counted) => {
                witness(
                    &mut measurement.assumptions,
                    &counted.misses,
                    measurement.block.instructions.len(),
                );
                measurement.hierarchy = counted.hierarchy;
                measurement.misses = counted.misses;
            }
            Err(why) => {
                measurement.hierarchy = Hierarchy::not_measured(&why, &options.core.level_1())
            }
        }
        Ok(())
    }

    fn count(
        core: &CorePmu,
        runner: &mut Runner,
        form: &Form,
        options: &Options,
    ) -> Result<std::result::Result<Counted, String>> {
        let thorough = options.passes > Options::default().passes;
        let repetitions = if thorough { REPETITIONS.1 } else { REPETITIONS.0 };
        let effort = Effort { repetitions, sentinel: options.sentinel };
        Ok(match FormRuns::new(runner, form, options.sentinel)? {
            Ok(mut runs) => Ok(count(core, &mut runs, &mut PerfCounting::default(), effort)?),
            Err(_) => Err("the block did not come to its end while it was counted".to_owned()),
        })
    }
}
