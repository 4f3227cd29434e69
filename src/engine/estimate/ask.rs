//! A question for an estimate, and what is known before its further runs: the hot functions, the width and clock of
//! the core. Also the progress of all runs, and their end after a signal.

use super::few::{self, Few};
use crate::core_model::CoreModel;
use crate::hot::hottest::{Hot, Hottest, is_kernel, kernel_share};
use crate::left::{Left, Times};
use crate::steps::{Callback, Step};
use crate::tested;
use bench::{BlockMeasurer, Options};
use estimate::Interval;
use isa::flow::Flow;
use isa::latency::Latencies;
use isa::ports::Ports;
use pmu::Command;
use pmu::machine::Moment;
use pmu::perf::{Signals, tsc_hz_here};
use probe::capture::Stop;
use profile::hot::Profile;
use report::documents::estimate::Estimate;
use report::documents::evidence::Evidence;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::self_test::Seen;
use tma::{Core, Error, Result};

/// A program to estimate, and how.
#[derive(Debug, Clone)]
pub struct EstimateAsk {
    /// The command, run again.
    pub command: Command,
    /// A live process instead, in windows that long in place of further runs.
    pub process: Option<(i32, Duration)>,
    /// The core.
    pub model: CoreModel,
    /// Called before each step.
    pub progress: Callback<Step>,
    /// Called with the document as it grows, before it is complete.
    pub so_far: Option<Callback<Estimate>>,
    /// Called with the evidence that it was computed from.
    pub keep: Option<Callback<Evidence>>,
    /// How long further runs and measurements may take; the one that is under way then is not ended.
    pub budget: Option<Duration>,
    /// From when on other processes would disturb it; `None` for saved evidence.
    pub since: Option<Moment>,
}

/// Facts that all pieces share, without counts.
#[derive(Clone)]
pub(super) struct Shared<'a> {
    pub core: &'a Core,
    /// Its ports, if it has a table.
    pub ports: Option<Ports>,
    /// How long its instructions take, as shipped: the same wherever the evidence is read.
    pub latencies: Latencies,
    /// Slots a cycle.
    pub width: Interval,
    /// Core cycles of the run, or of as much work as was counted.
    pub cycles: f64,
    pub samples: u64,
    pub clock: Clock,
    /// Cycles of a misprediction by the self-test.
    pub penalty: Option<f64>,
}

/// Standard deviations of an interval.
pub(super) const DEVIATIONS: f64 = 2.0;

/// The core clock.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Clock {
    pub ghz: f64,
    /// Its relative error.
    pub error: f64,
    /// Why it was not measured.
    pub reason: Option<String>,
}

/// Functions are analysed until they hold this share of the samples in user code.
const SHARE: f64 = 0.97;
/// The most functions that are analysed.
pub(super) const MOST: usize = 60;

/// The sampled run of a command whose threads ran at the same time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parallel {
    /// Its processor time in seconds.
    pub task: f64,
    /// Its threads with 2 % of the samples or more.
    pub threads: usize,
    /// How it ended.
    pub exit: Option<pmu::Exit>,
}

/// The functions of a profile.
pub(super) struct Functions {
    /// The functions to analyse.
    pub hot: Hottest,
    /// Their control flow, where it is known and a path leads to their file.
    pub flows: Vec<Option<Arc<Flow>>>,
    /// The sampled run, where threads ran at the same time.
    pub parallel: Option<Parallel>,
    /// Processor seconds of the sampled run.
    pub task: Option<f64>,
    /// Share of the kernel.
    pub kernel: f64,
    /// Other functions, if these are too many to analyse each.
    pub few: Option<Few>,
}

impl Functions {
    /// All functions to count.
    pub fn counted(&self) -> Hottest {
        let mut all = self.hot.clone();
        all.functions.extend(self.few.iter().flat_map(|few| few.functions.iter().cloned()));
        all
    }
}

/// Chooses them.
pub(super) fn choose(profile: &mut Profile, exit: Option<pmu::Exit>, seconds: f64) -> Functions {
    let kernel = kernel_share(profile);
    let user = 1.0 - kernel;
    let mut hot = Hottest {
        asked: SHARE,
        event: profile.event.clone(),
        samples: profile.samples,
        seconds,
        exit,
        ..Hottest::default()
    };
    let (mut held, mut flows) = (0.0, Vec::new());
    for number in 0..profile.functions.len() {
        if held >= SHARE * user || hot.functions.len() >= MOST {
            break;
        }
        if !is_kernel(&profile.functions[number]) {
            held += profile.functions[number].share;
            let of = Hot::of(profile, number);
            flows.push(profile.flow(number).ok().filter(|_| of.path.is_file()));
            hot.functions.push(of);
        }
    }
    let most = held < SHARE * user;
    let few = most.then(|| few::choose(profile, &mut hot, &mut flows)).flatten();
    Functions { hot, flows, parallel: None, task: None, kernel, few }
}

/// Most measurements of the core clock until nothing else runs.
const LOOKS: usize = 20;

/// Slots a cycle of the narrowest x86-64 core in use (Silvermont) and of the widest (Lion Cove, Zen 5), by their makers' optimization
/// guides; most have about four.
const WIDTHS: Interval = Interval { value: 4.0, low: 2.0, high: 8.0 };

/// From this share of what the table states on it may be the same core: a Zen 5 fills seven of its eight slots.
const FULL: f64 = 0.86;

/// Slots a cycle, after the self-test: as the table states, or more where that measures more; without a table as measured. Where
/// the self-test saw the same smaller number again and again, that, up to the table's. Where neither is known, from the most that
/// it saw, as contention only slows, to that of the widest core.
///
/// # Errors
/// The sandbox cannot be started, and no table describes the processor.
pub(super) fn width(core: &Arc<Core>) -> Result<Interval> {
    // Measurements outweigh the table, and the costs of mispredictions are needed later.
    let tested = tested::answers(core).map(|answers| answers.and_then(|all| all.seen));
    if let Some(width) = core.width() {
        let width = f64::from(width);
        let seen = tested.ok().flatten().and_then(|seen| narrower(core, seen)).unwrap_or(width);
        return Ok(Interval::new(seen, seen.min(width), seen.max(width)));
    }
    Ok(tested?.map_or(WIDTHS, |seen| {
        let least = seen.fastest.round().max(1.0);
        // One as wide as any that is known may be wider.
        let most = if least < WIDTHS.high { WIDTHS.high } else { 2.0 * least };
        Interval::new(least.max(WIDTHS.value), least, most)
    }))
}

/// The number of slots that the self-test saw each time, if that contradicts the table: this may be another core.
fn narrower(core: &Core, seen: Seen) -> Option<f64> {
    let sustained = core.facts().sustained_width.as_ref().map(|width| width.with_two_loads);
    let stated = f64::from(sustained.or(core.stated_width())?);
    let is_short = seen.is_own_limit(stated) && seen.fastest < FULL * stated;
    is_short.then(|| seen.fastest.round().max(1.0))
}

/// The core clock in GHz.
///
/// # Errors
/// Something else runs all the time; the sandbox cannot be started.
pub(super) fn clock(model: &CoreModel) -> Result<f64> {
    let mut measurer = BlockMeasurer::new(Options { core: model.core.clone(), ..Options::quick() });
    for _ in 0..LOOKS {
        if let Some(found) = measurer.cycles_per_tick()?.zip(tsc_hz_here()) {
            return Ok(found.0 * found.1 / 1e9);
        }
    }
    Err(Error::failed("the core clock is not known")
        .because("other programs use the processor all the time")
        .hint("try again on a quieter machine"))
}

/// The steps of one estimate.
pub(super) struct Progress<'a> {
    ask: &'a EstimateAsk,
    /// Seconds of runs, or windows.
    pub times: Times,
    /// What follows the counts, but for isolated measurements.
    pub planned: Left,
    number: usize,
    begin: Instant,
    unmade: Vec<&'static str>,
}

impl<'a> Progress<'a> {
    /// None has begun.
    pub fn new(ask: &'a EstimateAsk, plain: f64) -> Self {
        Self {
            ask,
            times: Times::of(plain),
            planned: Left::default(),
            number: 0,
            begin: Instant::now(),
            unmade: Vec::new(),
        }
    }

    /// Time that is left of the budget.
    pub fn budget(&self) -> Duration {
        self.ask.budget.map_or(Duration::MAX, |all| all.saturating_sub(self.begin.elapsed()))
    }

    /// Whether runs are needed, and the budget is enough for them.
    pub fn is_due(&mut self, of: Left, name: &'static str) -> bool {
        let is_due = of.seconds(self.times) <= self.budget().as_secs_f64();
        self.unmade.extend((of.runs() > 0 && !is_due).then_some(name));
        of.runs() > 0 && is_due
    }

    /// The runs that the budget left no time for.
    pub fn unmade(&self) -> Option<String> {
        let unmade = self.unmade.join(", ");
        (!unmade.is_empty()).then(|| format!("not made within --budget: {unmade}"))
    }

    /// A step begins; `left` is what is left with it.
    pub fn begin(&mut self, what: &str, left: Left) {
        self.report(what, left, true, false);
    }

    /// As [`Self::begin`], without a run of the command.
    pub fn begin_apart(&mut self, what: &str, left: Left) {
        self.report(what, left, false, false);
    }

    /// The times of runs, with what is left of the budget.
    pub fn times(&self) -> Times {
        let budget = self.ask.budget.map_or(f64::INFINITY, |_| self.budget().as_secs_f64());
        Times { budget, ..self.times }
    }

    /// Shows what follows.
    pub fn plan(&mut self, what: &str, left: Left) {
        self.report(&format!("estimated top-down: {what}"), left, false, true);
    }

    fn report(&mut self, what: &str, left: Left, runs: bool, is_plan: bool) {
        self.number += 1;
        let of = self.number - usize::from(!is_plan) + left.runs() + left.isolated;
        self.call(Step {
            what: what.to_owned(),
            of,
            seconds_left: Some(left.seconds(self.times)),
            runs,
            is_plan,
            ..Step::default()
        });
    }

    /// All is done.
    pub fn end(&self) {
        self.call(Step { of: self.number, seconds_left: Some(0.0), ..Step::default() });
    }

    fn call(&self, step: Step) {
        self.ask.progress.call(Step { number: self.number, ..step });
    }
}

/// Ends measurements and captures that are under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt {
    pub measurement: bench::Progress,
    pub capture: Stop,
}

impl Interrupt {
    /// Whether a signal has come.
    pub fn is_set(&self) -> bool {
        self.capture.is_set()
    }

    fn set(&self) {
        self.measurement.cancel();
        self.capture.set();
    }
}

/// Does `work`, which is interrupted once a signal comes, or from the start if one has come `before`.
pub(super) fn interruptible<T>(
    signals: &Signals,
    before: Option<i32>,
    work: impl FnOnce(&Interrupt) -> T,
) -> T {
    let interrupt = Interrupt::default();
    if before.is_some() {
        interrupt.set();
    }
    signals.during(|| interrupt.set(), || work(&interrupt))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Zen 4 (6 a cycle) behind the CPUID of a Zen 5 (8 slots, of which it fills 7); real cores that reach what
    /// their tables state, and one that others use.
    #[test]
    fn a_smaller_width_that_repeats_may_be_the_cores() {
        let of = |table: &str, seen: Seen| {
            narrower(&Core::modelled(&events::library(), table).unwrap(), seen)
        };
        let seen = |fastest, best, attempts| Seen { fastest, best, attempts, ..Seen::default() };
        assert_eq!(of("zen5", seen(5.98, 20, 24)), Some(6.0));
        assert_eq!(of("zen5", seen(7.0, 20, 24)), None);
        assert_eq!(of("zen4", seen(5.9, 20, 24)), None);
        assert_eq!(of("zen4", seen(3.9, 6, 24)), None);
        assert_eq!(of("zen5", seen(5.98, 15, 15)), None);
        // A sibling thread that is always busy.
        assert_eq!(of("zen4", seen(3.0, 24, 24)), None);
    }
}
