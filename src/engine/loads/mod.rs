//! The hot loads of chosen functions of a command: their access patterns, and which caches serve them.
//!
//! | file | concern |
//! |---|---|
//! | `sites` | the loads of the blocks that are entered most often |
//! | `addresses` | a run that records addresses and values → classes |
//! | `latencies` | a run that times single executions; loads of known levels on this host |
//! | `rows` | all that as rows of the document |
//!
//! Each kind of record has a run of its own: probes of one would be part of what the other sees.

mod addresses;
mod latencies;
mod rows;
mod sites;

use crate::documents::count::{Cost, LoadRow, TimerRow};
use pmu::Command;
use pmu::perf::Signals;
use probe::bursts::Recorded;
use probe::count::{Counts, Wanted};
use sites::Sites;
use tma::Result;

/// What the runs have given.
pub(crate) struct Loads {
    /// The loads, those executed most often first.
    pub rows: Vec<LoadRow>,
    /// What their latencies were compared with.
    pub timer: Option<TimerRow>,
    /// What the runs took.
    pub cost: Vec<Cost>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// The signal that interrupted a run.
    pub interrupted: Option<i32>,
}

/// Runs the command twice more, for the loads of these functions (with their names), whose blocks were
/// counted.
///
/// # Errors
/// The command cannot be started or traced.
pub(crate) fn loads(
    command: &Command,
    functions: &[(&str, &Wanted)],
    counts: &Counts,
    signals: &Signals,
) -> Result<Loads> {
    let wanted: Vec<Wanted> = functions.iter().map(|(_, wanted)| (*wanted).clone()).collect();
    let mut sites = Sites::new(counts);
    let (classes, recorded) = addresses::run(command, &wanted, &mut sites, signals)?;
    let mut cost = vec![spent("addresses of loads", &recorded)];
    let mut notes = sites.notes();
    let mut interrupted = recorded.interrupted;
    let mut timed = None;
    if interrupted.is_none() {
        match latencies::run(command, &wanted, &sites, signals)? {
            Ok((found, recorded)) => {
                cost.push(spent("latencies of loads", &recorded));
                interrupted = recorded.interrupted;
                timed = Some(found);
            }
            Err(why) => notes.push(format!("latencies: {why}")),
        }
    }
    let rows = rows::rows(functions, &sites, &classes, timed.as_ref());
    let timer = timed.as_ref().and_then(rows::timer);
    Ok(Loads { rows, timer, cost, notes, interrupted })
}

fn spent(run: &str, recorded: &Recorded) -> Cost {
    let seconds = recorded.wall.as_secs_f64();
    Cost { run: run.to_owned(), seconds, plain: None, probes: recorded.probes }
}
