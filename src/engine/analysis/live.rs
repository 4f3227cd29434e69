//! A live measurement: tables → nodes → groups → collector → report.

use super::choose::{Ask, Chosen};
use super::fill::{conclude, interval_report};
use crate::documents::{Report, Source};
use pmu::machine::{Finding, Machine, TableMatch, choose};
use pmu::sampling::{Alone, Companion};
use pmu::{
    Aggregate, Command, CorePlan, Exit, Interval, Measurement, Progress, Request, Target, perf,
};
use std::time::Duration;
use tma::error::{Error, Result};
use tma::schedule::{self, Budget, Plan};
use tma::tables::{EventId, Library, Table};
use tma::tree::Evaluator;

/// What to measure and what to show of it.
#[derive(Debug, Clone)]
pub struct LiveAsk {
    /// Which nodes.
    pub ask: Ask,
    /// Force this table.
    pub uarch: Option<String>,
    /// Whom to count.
    pub target: Target,
    /// What to run.
    pub command: Option<Command>,
    /// The command as the user wrote it, for the report.
    pub typed: Vec<String>,
    /// How counts are put together.
    pub aggregate: Aggregate,
    /// Count children, too.
    pub inherit: bool,
    /// User mode only.
    pub user_only: bool,
    /// Rotate groups; otherwise one run of the command per group.
    pub multiplex: bool,
    /// Level 1 first, then below what is flagged, until a leaf.
    pub drilldown: bool,
    /// Repeats of the command.
    pub repeats: u32,
    /// Time before counting starts.
    pub delay: Duration,
    /// Time after which counting ends.
    pub duration: Option<Duration>,
    /// Length of an interval.
    pub interval: Option<Duration>,
    /// Fail where there is no core PMU.
    pub require_pmu: bool,
}

/// What a measurement tells while it runs.
#[derive(Debug, Clone)]
pub enum Update {
    /// How often the command will run, where that is not once; said beforehand.
    Runs(u32),
    /// The report of one interval.
    Interval(Box<Report>),
    /// A signal ends the measurement.
    Interrupted(i32),
}

/// A finished measurement.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What it found.
    pub report: Report,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
    /// Why there is no tree, and what to do about it.
    pub blocked: Option<Finding>,
}

/// One kind of core: its table, nodes and groups.
pub(super) struct Core {
    pub table: Table,
    pub pmu: Option<String>,
    pub chosen: Chosen,
    pub plan: Plan,
    pub groups: Vec<Vec<EventId>>,
}

/// Sees the counts themselves as they come in, beside the reports made of them.
pub(super) trait Observer {
    /// The counts of one interval.
    fn interval(&mut self, interval: &Interval);
    /// The counts of the whole measurement.
    fn whole(&mut self, measured: &Measurement);
}

/// An observer that looks away.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn interval(&mut self, _: &Interval) {}
    fn whole(&mut self, _: &Measurement) {}
}

/// Measures.
///
/// # Errors
/// An unknown table or node; a command that cannot be started; a target that does not exist;
/// with `require_pmu`, a machine without a usable core PMU.
pub fn live(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    update: &mut dyn FnMut(Update),
) -> Result<Outcome> {
    if ask.drilldown {
        let (tables, blocked) = choose_tables(machine, library, ask)?;
        if blocked.is_none() {
            return super::drilldown::run(machine, tables, ask, update);
        }
    }
    let (cores, blocked) = prepare(machine, library, ask)?;
    measure(machine, &cores, ask, blocked, update, &mut Nobody)
}

/// Tables with the PMU that counts each, and what blocks all of them, if something does.
type Tables = (Vec<(Table, Option<String>)>, Option<Finding>);

fn choose_tables(machine: &Machine, library: &Library, ask: &LiveAsk) -> Result<Tables> {
    let matches = choose(machine, library, ask.uarch.as_deref())?;
    let blocked = perf::blocked(machine, &matches);
    if let (true, Some(finding)) = (ask.require_pmu, &blocked) {
        return Err(required(finding));
    }
    Ok((tables(library, &matches)?, blocked))
}

/// Chooses tables, nodes and groups.
pub(super) fn prepare(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
) -> Result<(Vec<Core>, Option<Finding>)> {
    let (tables, blocked) = choose_tables(machine, library, ask)?;
    Ok((cores(machine, tables, &ask.ask, blocked.is_none())?, blocked))
}

/// The error for a machine without what a measurement was required to have.
pub fn required(finding: &Finding) -> Error {
    let error = Error::not_possible(finding.what.clone());
    let error = match &finding.cause {
        Some(cause) => error.because(cause),
        None => error,
    };
    match &finding.remedy {
        Some(remedy) => error.hint(remedy.clone()),
        None => error,
    }
}

/// The tables of all kinds of core, with the PMU that counts each.
pub(super) fn tables(
    library: &Library,
    matches: &[TableMatch],
) -> Result<Vec<(Table, Option<String>)>> {
    matches.iter().map(|m| Ok((library.load(&m.table)?, m.pmu.clone()))).collect()
}

/// Chooses nodes and plans groups. Where nothing can be counted, the whole tree is listed.
pub(super) fn cores(
    machine: &Machine,
    tables: Vec<(Table, Option<String>)>,
    ask: &Ask,
    countable: bool,
) -> Result<Vec<Core>> {
    let core = |(table, pmu): (Table, Option<String>)| {
        let smt = machine.topology.smt;
        let budget = Budget::of(&table, smt, machine.kernel.nmi_watchdog == Some(true));
        let chosen = match (countable, ask.level, &ask.nodes) {
            (false, None, None) => ask.at_level(&table, table.depth())?,
            _ => ask.live(&table, smt, &budget)?,
        };
        let plan = schedule::plan(&table, &chosen.counted, smt, &budget);
        let groups = plan.groups.iter().map(|g| g.events.clone()).collect();
        Ok(Core { table, pmu, chosen, plan, groups })
    };
    tables.into_iter().map(core).collect()
}

/// Runs the collector once (with all its repeats) and fills the report.
pub(super) fn measure(
    machine: &Machine,
    cores: &[Core],
    ask: &LiveAsk,
    blocked: Option<Finding>,
    update: &mut dyn FnMut(Update),
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    measure_beside(machine, cores, ask, blocked, update, (observer, &mut Alone))
}

/// As [`measure`], with a companion beside it.
pub(super) fn measure_beside(
    machine: &Machine,
    cores: &[Core],
    ask: &LiveAsk,
    blocked: Option<Finding>,
    update: &mut dyn FnMut(Update),
    (observer, companion): (&mut dyn Observer, &mut dyn Companion),
) -> Result<Outcome> {
    let source = if blocked.is_some() { Source::NoPmu } else { Source::Pmu };
    let measured = collect_beside(machine, cores, ask, source, update, (observer, companion))?;
    Ok(conclude(cores, ask, source, blocked, &measured))
}

/// Runs the collector once (with all its repeats).
pub(super) fn collect(
    machine: &Machine,
    cores: &[Core],
    ask: &LiveAsk,
    source: Source,
    update: &mut dyn FnMut(Update),
    observer: &mut dyn Observer,
) -> Result<Measurement> {
    collect_beside(machine, cores, ask, source, update, (observer, &mut Alone))
}

fn collect_beside(
    machine: &Machine,
    cores: &[Core],
    ask: &LiveAsk,
    source: Source,
    update: &mut dyn FnMut(Update),
    (observer, companion): (&mut dyn Observer, &mut dyn Companion),
) -> Result<Measurement> {
    let plans = cores
        .iter()
        .map(|c| CorePlan { table: &c.table, groups: &c.groups, pmu: c.pmu.clone() })
        .collect();
    let mut request = request(machine, plans, ask);
    // Without a PMU there are no groups to run one by one.
    request.multiplex |= source == Source::NoPmu;
    if request.runs() > 1 {
        update(Update::Runs(request.runs()));
    }
    let mut evaluators: Vec<Evaluator> = cores.iter().map(|c| Evaluator::new(&c.table)).collect();
    let measured = perf::measure_beside(&request, companion, &mut |progress| match progress {
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
        ..Request::new(machine, cores, ask.target.clone())
    }
}
