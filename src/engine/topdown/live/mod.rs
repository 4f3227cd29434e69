//! A live measurement: the question, updates while it runs, and the outcome; tables → nodes → groups, for each kind
//! of core. `collect` runs the collector and makes the report; `drilldown` goes level by level below what is
//! flagged.

mod collect;
mod drilldown;

use super::{Ask, Chosen};
pub(crate) use collect::{Beside, Observer, request};
pub(crate) use drilldown::measure;
pub use drilldown::{live, live_through};
use pmu::machine::{
    Finding, Machine, TableMatch, UNKNOWN, absent_architectural_events, countable,
    is_architectural, unknown_model,
};
use pmu::{Aggregate, Command, Control, Exit, Target, perf};
use report::documents::Report;
use std::sync::Arc;
use std::time::Duration;
use tma::schedule::{self, Budget, Plan};
use tma::tables::texts::Texts;
use tma::tables::{EventId, Library, Table};
use tma::{Core, Error, Result};

/// A measurement and what to show of it.
#[derive(Debug, Clone)]
pub struct LiveAsk {
    /// Which nodes.
    pub ask: Ask,
    /// Force this table.
    pub uarch: Option<String>,
    /// The core: with a forced table it may be another than this processor's.
    pub core: Arc<Core>,
    /// The target that is counted.
    pub target: Target,
    /// The command to run.
    pub command: Option<Command>,
    /// The command as the user wrote it, for the report.
    pub typed: Vec<String>,
    /// How counts are put together.
    pub aggregate: Aggregate,
    /// Count children.
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
    /// Turns counting and sampling on and off.
    pub control: Option<Control>,
    /// Fail where there is no core PMU.
    pub require_pmu: bool,
}

impl LiveAsk {
    /// One run of a command, counted from its start to its end with its children, in both modes; where no table is
    /// forced, no level chosen and no command given.
    pub fn of(core: Arc<Core>) -> Self {
        Self {
            ask: Ask::default(),
            uarch: None,
            core,
            target: Target::Command,
            command: None,
            typed: Vec::new(),
            aggregate: Aggregate::All,
            inherit: true,
            user_only: false,
            multiplex: true,
            drilldown: false,
            repeats: 1,
            delay: Duration::ZERO,
            duration: None,
            interval: None,
            control: None,
            require_pmu: false,
        }
    }

    /// What the report is of: the command also where its process is the target, as of [`OneRun`](crate::one_run::OneRun).
    pub(crate) fn reported(&self) -> &Target {
        let is_command = self.command.is_none() && !self.typed.is_empty();
        if is_command { &Target::Command } else { &self.target }
    }
}

/// An update while a measurement runs.
#[derive(Debug, Clone)]
pub enum Update {
    /// How often the command will run, if more than once; sent before the first run.
    Runs(u32),
    /// The report of one interval.
    Interval(Box<Report>),
    /// A signal ends the measurement.
    Interrupted(i32),
}

/// A finished measurement.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its report.
    pub report: Report,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
    /// Why there is no tree, and what to do about it.
    pub blocked: Option<Finding>,
    /// Notes of the report on the control pipe.
    pub of_control: Vec<String>,
}

impl Outcome {
    /// Why no node of level 1 was counted (no node at all, where only deeper ones were asked for).
    /// `None`: one was.
    pub fn not_counted(&self) -> Option<Error> {
        let nodes = &self.report.nodes;
        let level_1 = || nodes.iter().filter(|n| n.level == 1);
        let rows: Vec<_> =
            if level_1().count() > 0 { level_1().collect() } else { nodes.iter().collect() };
        if rows.iter().any(|n| n.value.is_some()) {
            return None;
        }
        let why = rows.iter().find_map(|n| n.missing.clone());
        Some(
            Error::not_possible("no node of the top-down tree was counted")
                .because(why.unwrap_or_else(|| "the table has no tree".into()))
                .hint("`tdtool doctor` tells what can be counted here; without --require-pmu this is no error"),
        )
    }
}

/// The table of one kind of core, with the PMU that counts its events.
#[derive(Clone)]
pub(super) struct CoreTable {
    pub table: Arc<Table>,
    pub pmu: Option<String>,
    pub texts: Texts,
    /// The report's note on the table.
    pub note: Option<String>,
}

/// One kind of core: its table, nodes and groups.
pub(crate) struct CountedCore {
    pub table: Arc<Table>,
    pub pmu: Option<String>,
    pub texts: Texts,
    pub note: Option<String>,
    pub chosen: Chosen,
    pub plan: Plan,
    pub groups: Vec<Vec<EventId>>,
}

/// Tables with the PMU that counts each, and what blocks all of them, if something does.
pub(super) type Tables = (Vec<CoreTable>, Option<Finding>);

pub(super) fn choose_tables(machine: &Machine, library: &Library, ask: &LiveAsk) -> Result<Tables> {
    let matches = countable(machine, library, ask.uarch.as_deref())?;
    let blocked = perf::blocked(machine, &matches);
    if let (true, Some(finding)) = (ask.require_pmu, &blocked) {
        return Err(required(finding));
    }
    Ok((tables(machine, library, &matches)?, blocked))
}

/// Chooses tables, nodes and groups.
pub(crate) fn prepare(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
) -> Result<(Vec<CountedCore>, Option<Finding>)> {
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
fn tables(machine: &Machine, library: &Library, matches: &[TableMatch]) -> Result<Vec<CoreTable>> {
    let texts = library.texts();
    let note = |table: &str| -> Result<Option<String>> {
        if !is_architectural(table) || machine.cpu.vendor.is_empty() {
            return Ok(None);
        }
        let (who, remedy) = (machine.cpu.signature(), unknown_model(&machine.cpu, library)?);
        Ok(Some(format!("{UNKNOWN} ({who}); {remedy}")))
    };
    matches
        .iter()
        .map(|m| {
            let (table, note) = (library.load(&m.table)?, note(&m.table)?);
            Ok(CoreTable { table, pmu: m.pmu.clone(), texts, note })
        })
        .collect()
}

/// Chooses nodes and plans groups. Where nothing can be counted, the whole tree is listed.
pub(super) fn cores(
    machine: &Machine,
    tables: Vec<CoreTable>,
    ask: &Ask,
    countable: bool,
) -> Result<Vec<CountedCore>> {
    let core = |CoreTable { table, pmu, texts, note }: CoreTable| {
        let smt = machine.topology.smt;
        let budget = Budget::of(&table, smt, machine.kernel.nmi_watchdog == Some(true));
        let chosen = match (countable, ask.level, &ask.nodes) {
            (false, None, None) => ask.at_level(&table, table.depth())?,
            // Few events, and no tree: all of them.
            (true, _, None) if is_architectural(&table.name) => {
                let mut chosen = ask.at_level(&table, 0)?;
                let absent = absent_architectural_events();
                let has = |e: &EventId| {
                    let spec = &table.events[usize::from(*e)].spec;
                    !absent.contains(&(spec.code, spec.umask))
                };
                chosen.counted.retain(|n| table.events_of(*n, smt).iter().all(has));
                chosen.selection.beside.clone_from(&chosen.counted);
                chosen
            }
            _ => ask.live(&table, smt, &budget)?,
        };
        let plan = schedule::plan(&table, &chosen.counted, smt, &budget);
        let groups = plan.groups.iter().map(|g| g.events.clone()).collect();
        Ok(CountedCore { table, pmu, texts, note, chosen, plan, groups })
    };
    tables.into_iter().map(core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::Source;
    use report::documents::report::NodeRow;

    #[test]
    fn a_tree_without_a_counted_node_of_level_1_is_not_what_was_required() {
        let of = |rows: &[(u32, Option<f64>)]| {
            let mut report = Report::new(Source::Pmu);
            let row = |&(level, value): &(u32, Option<f64>)| {
                let missing = value.is_none().then(|| "not counted: it never got a counter".into());
                NodeRow { level, value, missing, ..NodeRow::default() }
            };
            report.nodes = rows.iter().map(row).collect();
            Outcome { report, exit: None, interrupted: None, blocked: None, of_control: Vec::new() }
                .not_counted()
        };
        let error = of(&[(1, None), (2, Some(0.5))]).expect("refused");
        assert_eq!(error.kind(), tma::ErrorKind::NotPossible);
        assert!(error.cause().is_some_and(|c| c.contains("never got a counter")), "{error:?}");
        assert!(of(&[]).is_some(), "no tree");
        assert!(of(&[(1, None), (1, Some(0.2))]).is_none());
        assert!(of(&[(3, Some(0.2))]).is_none(), "asked for by --nodes");
    }
}
