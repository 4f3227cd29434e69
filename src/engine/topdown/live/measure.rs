//! Measures: the collector runs, and its counts become the report.

use super::ask::{LiveAsk, Outcome, Update};
use super::collect::{Beside, NoObserver, Observer, collect_beside};
use super::conclude::conclude;
use super::cores::{CountedCore, choose_tables, prepare};
use super::drilldown;
use pmu::machine::{Finding, Machine};
use pmu::perf::NoHooks;
use report::documents::Source;
use tma::Result;
use tma::tables::Library;

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
        if blocked.is_none() && tables.iter().any(|t| t.table.depth() > 0) {
            return drilldown::run(machine, tables, ask, update);
        }
    }
    let (cores, blocked) = prepare(machine, library, ask)?;
    measure(machine, &cores, ask, blocked, update, &mut NoObserver)
}

/// Runs the collector once (with all its repeats) and fills the report.
fn measure(
    machine: &Machine,
    cores: &[CountedCore],
    ask: &LiveAsk,
    blocked: Option<Finding>,
    update: &mut dyn FnMut(Update),
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    measure_beside(
        machine,
        cores,
        ask,
        blocked,
        update,
        Beside { observer, companion: &mut NoHooks },
    )
}

/// As [`measure`], with a companion beside it.
pub(crate) fn measure_beside(
    machine: &Machine,
    cores: &[CountedCore],
    ask: &LiveAsk,
    blocked: Option<Finding>,
    update: &mut dyn FnMut(Update),
    beside: Beside,
) -> Result<Outcome> {
    let source = if blocked.is_some() { Source::NoPmu } else { Source::Pmu };
    let measured = collect_beside(machine, cores, ask, source, update, beside)?;
    Ok(conclude(cores, ask, source, blocked, &measured))
}
