//! The clock and counters of a measurer, selected once a worker exists to try them on, and the counts of one block:
//! its top-down tree and its misses.

use super::events::Counting;
use super::pmu_clock::PmuClock;
use super::{
    Counter, Effort, FormRuns, PerfCounting, Runs, SoftwareCounts, SoftwareEvents, Stop,
    check_with_counts, misses, tree,
};
use crate::clock::TscClock;
use crate::counters::{CorePmu, Pmu};
use crate::measurement::{Assumed, Hierarchy, Measurement, Miss, Outcome};
use crate::options::{ClockSource, Options};
use crate::runner::Runner;
use crate::timing::measure::{Clock, Form};
use std::fmt;
use std::sync::Arc;
use tma::{Error, Result};

/// Repetitions of each group: by default, and with more passes than that.
const REPETITIONS: (usize, usize) = (8, 16);

/// Why a PMU counts nothing of a block.
#[derive(Debug, Clone)]
enum NoCounts {
    /// There is none that could be used, for this reason.
    NoPmu(String),
    /// It does not count the worker.
    Refused(Stop),
    /// Counts are not asked for.
    Unrequested,
    /// The block did not run to its end.
    Ended,
}

impl fmt::Display for NoCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPmu(why) => why,
            Self::Refused(why) => {
                return write!(f, "the core PMU does not count the worker: {why}");
            }
            Self::Unrequested => "not requested",
            Self::Ended => "the block did not run to its end while it was counted",
        })
    }
}

/// The clock, the core PMU and the software events of a measurer.
pub struct Source {
    clock: Box<dyn Clock>,
    core: std::result::Result<Arc<CorePmu>, NoCounts>,
    selected: bool,
    software_events: Option<SoftwareEvents>,
    software_counts: SoftwareCounts,
}

impl Source {
    /// The source that `options` ask for, unopened.
    pub fn new(options: &Options) -> Self {
        let core = match &options.pmu {
            Pmu::Present(core) => Ok(core.clone()),
            Pmu::Absent(why) => Err(NoCounts::NoPmu(why.clone())),
        };
        let (software_events, software_counts) = (None, SoftwareCounts::default());
        Self { clock: Box::new(TscClock), core, selected: false, software_events, software_counts }
    }

    /// The processor to measure on; on hybrids, one of the kind that the PMU counts.
    pub fn cpu(options: &Options) -> Option<usize> {
        match &options.pmu {
            Pmu::Present(core) => options.cpu.or(core.cpu),
            Pmu::Absent(_) => options.cpu,
        }
    }

    /// Whether the worker must be inspectable, because this process lacks the capability to count others.
    pub fn inspect(options: &Options) -> bool {
        matches!(&options.pmu, Pmu::Present(core) if core.inspect)
    }

    /// Tries the PMU on the worker, once.
    ///
    /// # Errors
    /// The sandbox cannot be started, or the PMU was requested and does not count the worker.
    pub fn select_clock(&mut self, runner: &mut Runner, options: &Options) -> Result<()> {
        if self.selected {
            return Ok(());
        }
        self.selected = true;
        // The PMU clock needs the difference of two runs.
        let wanted = options.clock != ClockSource::Tsc && options.two_factors;
        if let Ok(core) = &self.core {
            let mut clock = PmuClock::new(Box::new(PerfCounting::default()), core.cycles);
            match clock.try_on(runner.worker()?.process()) {
                Ok(()) if wanted => self.clock = Box::new(clock),
                Ok(()) => {}
                Err(why) => self.core = Err(NoCounts::Refused(why)),
            }
        }
        if let (ClockSource::Pmu, Err(why)) = (options.clock, &self.core) {
            self.selected = false;
            return Err(Error::not_possible("core cycles cannot be counted here")
                .because(why)
                .hint("see `tdtool doctor`, or use --clock tsc, which needs no PMU"));
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

    /// Starts counting software events of the worker.
    pub fn start_software_events(&mut self, runner: &mut Runner, options: &Options) -> Result<()> {
        self.software_events = match options.counts {
            true => Some(SoftwareEvents::start(runner.worker()?.process())),
            false => None,
        };
        Ok(())
    }

    /// Stops counting them.
    pub fn stop_software_events(&mut self, runner: &mut Runner) -> Result<()> {
        self.software_counts = match self.software_events.take() {
            Some(events) => events.stop(runner.worker()?.process()),
            None => SoftwareCounts::default(),
        };
        Ok(())
    }

    /// Adds software-event and PMU counts of `form`, whose code is installed, to the document and its
    /// assumptions.
    pub fn enter(
        &self,
        runner: &mut Runner,
        form: &Form,
        options: &Options,
        measurement: &mut Measurement,
    ) -> Result<()> {
        self.software_counts.enter(&mut measurement.assumptions);
        let contention = measurement.assumptions.iter_mut().find(|i| i.name == Assumed::Contention);
        if let (false, Some(contention)) = (options.sentinel, contention) {
            contention.outcome = Outcome::Unchecked;
            contention.how = "not checked: the sentinel is disabled".to_owned();
        }
        let counted = match (&self.core, options.counts) {
            (Ok(core), true) => Self::count(core, runner, form, options)?,
            (Ok(_), false) => Err(NoCounts::Unrequested),
            (Err(why), _) => Err(why.clone()),
        };
        match counted {
            Ok(counted) => {
                check_with_counts(
                    &mut measurement.assumptions,
                    &counted.misses,
                    measurement.block.instructions.len(),
                );
                measurement.hierarchy = counted.hierarchy;
                measurement.misses = counted.misses;
            }
            Err(why) => {
                measurement.hierarchy =
                    Hierarchy::not_measured(&why.to_string(), &options.core.level_1())
            }
        }
        Ok(())
    }

    fn count(
        core: &CorePmu,
        runner: &mut Runner,
        form: &Form,
        options: &Options,
    ) -> Result<std::result::Result<Counted, NoCounts>> {
        let thorough = options.passes > Options::default().passes;
        let repetitions = if thorough { REPETITIONS.1 } else { REPETITIONS.0 };
        let effort = Effort { repetitions, sentinel: options.sentinel };
        Ok(match FormRuns::new(runner, form, options.sentinel)? {
            Ok(mut runs) => Ok(count(core, &mut runs, &mut PerfCounting::default(), effort)?),
            Err(_) => Err(NoCounts::Ended),
        })
    }
}

/// Counts of one block.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Level 1–2.
    pub hierarchy: Hierarchy,
    /// Single events.
    pub misses: Vec<Miss>,
}

/// Counts every group of `core` and every miss event, each in separate runs.
pub fn count(
    core: &CorePmu,
    runs: &mut dyn Runs,
    counting: &mut dyn Counting,
    effort: Effort,
) -> Result<Counted> {
    let mut counter = Counter { runs, counting, effort };
    let hierarchy = tree::measure(core, &mut counter)?;
    let misses = misses::measure(core, &mut counter)?;
    Ok(Counted { hierarchy, misses })
}
