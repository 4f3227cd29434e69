//! Tables → nodes → groups, for each kind of core.

use super::ask::LiveAsk;
use crate::topdown::choose::{Ask, Chosen};
use pmu::machine::{
    Finding, Machine, TableMatch, UNKNOWN, absent_architectural_events, countable,
    is_architectural, unknown_model,
};
use pmu::perf;
use std::sync::Arc;
use tma::schedule::{self, Budget, Plan};
use tma::tables::texts::Texts;
use tma::tables::{EventId, Library, Table};
use tma::{Error, Result};

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
pub(super) fn tables(
    machine: &Machine,
    library: &Library,
    matches: &[TableMatch],
) -> Result<Vec<CoreTable>> {
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
