//! Runs the collector, and reports intervals as they come in.

use super::ask::{LiveAsk, Update};
use super::conclude::interval_report;
use super::cores::CountedCore;
use pmu::machine::Machine;
use pmu::perf::{NoHooks, RunHooks};
use pmu::{CorePlan, Interval, Measurement, Progress, Request, perf};
use report::documents::Source;
use tma::Result;
use tma::tree::Evaluator;

/// Sees the counts themselves as they come in, beside the reports made of them.
pub(crate) trait Observer {
    /// The counts of one interval.
    fn interval(&mut self, interval: &Interval);
    /// The counts of the whole measurement.
    fn whole(&mut self, measured: &Measurement);
}

/// An observer that ignores everything.
pub(crate) struct NoObserver;

impl Observer for NoObserver {
    fn interval(&mut self, _: &Interval) {}
    fn whole(&mut self, _: &Measurement) {}
}

/// Followers of a measurement: `observer` of its counts, `companion` of its runs.
pub(crate) struct Beside<'a> {
    pub observer: &'a mut dyn Observer,
    pub companion: &'a mut dyn RunHooks,
}

/// Runs the collector once (with all its repeats).
pub(super) fn collect(
    machine: &Machine,
    cores: &[CountedCore],
    ask: &LiveAsk,
    source: Source,
    update: &mut dyn FnMut(Update),
    observer: &mut dyn Observer,
) -> Result<Measurement> {
    collect_beside(
        machine,
        cores,
        ask,
        source,
        update,
        Beside { observer, companion: &mut NoHooks },
    )
}

pub(super) fn collect_beside(
    machine: &Machine,
    cores: &[CountedCore],
    ask: &LiveAsk,
    source: Source,
    update: &mut dyn FnMut(Update),
    beside: Beside,
) -> Result<Measurement> {
    let Beside { observer, companion } = beside;
    let plans = cores
        .iter()
        .map(|c| CorePlan { table: &c.table, groups: &c.groups, pmu: c.pmu.clone() })
        .collect();
    let mut request = request(machine, plans, ask);
    // Without a PMU there are no groups to run one by one.
    request.multiplex |= source == Source::NoPmu;
    perf::check(&request)?;
    if request.runs() > 1 {
        update(Update::Runs(request.runs()));
    }
    let mut evaluators: Vec<Evaluator> = cores.iter().map(|c| Evaluator::new(&c.table)).collect();
    let measured = perf::measure_with_hooks(&request, companion, &mut |progress| match progress {
        Progress::Interval(interval) => {
            observer.interval(&interval);
            let report = interval_report(cores, &mut evaluators, ask, source, &interval);
            update(Update::Interval(Box::new(report)));
        }
        Progress::Interrupted { signal } => update(Update::Interrupted(signal)),
    })?;
    observer.whole(&measured);
    Ok(measured)
}

fn request<'a>(machine: &'a Machine, cores: Vec<CorePlan<'a>>, ask: &LiveAsk) -> Request<'a> {
    Request {
        command: ask.command.clone(),
        aggregate: ask.aggregate,
        inherit: ask.inherit,
        user_only: ask.user_only,
        multiplex: ask.multiplex,
        repeats: ask.repeats,
        delay: ask.delay,
        duration: ask.duration,
        interval: ask.interval,
        control: ask.control.clone(),
        ..Request::new(machine, cores, ask.target.clone())
    }
}
