//! The hot loads of chosen functions of a command: their access patterns, and which caches serve them.
//!
//! | file | concern |
//! |---|---|
//! | `sites` | the loads and stores of the blocks that are entered most often |
//! | `addresses` | a run that records addresses, values and allocations → classes, allocation sites |
//! | `heap` | where the memory was allocated |
//! | `latencies` | a run that times single executions; loads of known levels on this host |
//! | `rows` | all that as rows of the document |
//!
//! Each kind of record has a run of its own: probes of one would be part of what the other sees.

mod addresses;
mod heap;
mod latencies;
mod rows;
mod sites;

use crate::places::Places;
use crate::subject::{self, Subject};
use probe::count::{Counts, Wanted};
use report::documents::Purpose;
use report::documents::count::{AllocationSite, Cost, LoadRow, TimerRow};
use sites::Sites;
use std::collections::BTreeSet;
use tma::Result;

/// Results of the runs.
pub(crate) struct Loads {
    /// The loads, those executed most often first.
    pub rows: Vec<LoadRow>,
    /// The stores, which are not timed.
    pub stores: Vec<LoadRow>,
    /// Where the memory that they read was allocated.
    pub allocation_sites: Vec<AllocationSite>,
    /// The latencies that theirs were compared with.
    pub timer: Option<TimerRow>,
    /// Times of the runs.
    pub cost: Vec<Cost>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// The signal that interrupted a run.
    pub interrupted: Option<i32>,
}

/// Records twice more, for the loads of these functions (with their names), whose blocks were counted; only for those
/// of some code, without allocations, and for not much longer than the run itself, where `only` says so.
///
/// # Errors
/// As [`Subject::record`].
pub(crate) fn loads(
    subject: &mut Subject<'_>,
    functions: &[(&str, &Wanted)],
    counts: &Counts,
    only: Option<&Places>,
) -> Result<Loads> {
    let wanted: Vec<Wanted> = functions.iter().map(|(_, wanted)| (*wanted).clone()).collect();
    let mut sites = Sites::new(counts, &wanted, only);
    // Allocations are looked for in no file where they are not wanted.
    let files = if only.is_some() { &BTreeSet::new() } else { &counts.files };
    let (classes, heap, recorded) =
        addresses::run(subject, &wanted, files, &mut sites, only.is_some())?;
    let mut cost = vec![subject.cost(Purpose::Addresses, &recorded)];
    let mut notes = sites.notes();
    notes.extend(subject::notes(Purpose::Addresses, &recorded));
    notes.extend(heap.notes);
    let mut interrupted = recorded.interrupted;
    let mut timed = None;
    if interrupted.is_none() {
        match latencies::run(subject, &wanted, &sites, only.is_some())? {
            Ok((found, recorded)) => {
                cost.push(subject.cost(Purpose::Latencies, &recorded));
                notes.extend(subject::notes(Purpose::Latencies, &recorded));
                interrupted = recorded.interrupted;
                timed = Some(found);
            }
            Err(why) => notes.push(format!("latencies: {why}")),
        }
    }
    let (mut of, timed) = (heap.of, timed.as_ref());
    let mut seen = rows::Seen { classes: &classes, memory: &mut of, timed };
    let mut row = |are_stores| rows::rows(functions, &sites, &mut seen, are_stores);
    let (rows, stores) = (row(false), row(true));
    let timer = timed.and_then(rows::timer);
    let allocation_sites = heap.sites;
    Ok(Loads { rows, stores, allocation_sites, timer, cost, notes, interrupted })
}
