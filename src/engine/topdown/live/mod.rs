//! A live measurement: tables → nodes → groups → collector → report.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | what is asked ([`LiveAsk`]), what comes of it ([`Outcome`]) |
//! | `cores` | tables, nodes and groups for each kind of core |
//! | `collect` | runs the collector |
//! | `conclude` | counts → rows, findings and notes of the report |
//! | `drilldown` | level after level, below what is flagged |

mod ask;
mod collect;
mod conclude;
mod cores;
mod drilldown;

pub use ask::{LiveAsk, Outcome, Update};
pub(crate) use collect::Observer;
pub use cores::required;
pub(crate) use cores::{Core, prepare};

use crate::documents::Source;
use collect::{Nobody, collect_beside};
use conclude::conclude;
use cores::choose_tables;
use pmu::machine::{Finding, Machine};
use pmu::sampling::{NoHooks, RunHooks};
use tma::error::Result;
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
        if blocked.is_none() {
            return crate::topdown::live::drilldown::run(machine, tables, ask, update);
        }
    }
    let (cores, blocked) = prepare(machine, library, ask)?;
    measure(machine, &cores, ask, blocked, update, &mut Nobody)
}

/// Runs the collector once (with all its repeats) and fills the report.
fn measure(
    machine: &Machine,
    cores: &[Core],
    ask: &LiveAsk,
    blocked: Option<Finding>,
    update: &mut dyn FnMut(Update),
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    measure_beside(machine, cores, ask, blocked, update, (observer, &mut NoHooks))
}

/// As [`measure`], with a companion beside it.
pub(crate) fn measure_beside(
    machine: &Machine,
    cores: &[Core],
    ask: &LiveAsk,
    blocked: Option<Finding>,
    update: &mut dyn FnMut(Update),
    (observer, companion): (&mut dyn Observer, &mut dyn RunHooks),
) -> Result<Outcome> {
    let source = if blocked.is_some() { Source::NoPmu } else { Source::Pmu };
    let measured = collect_beside(machine, cores, ask, source, update, (observer, companion))?;
    Ok(conclude(cores, ask, source, blocked, &measured))
}
