//! A run that records addresses and values of loads, addresses of stores, and what memory is allocated meanwhile → their
//! classes, and where that memory comes from.

use super::heap::{Allocators, Found, found};
use super::sites::Sites;
use crate::subject::Subject;
use loads::pattern::{Classified, Event, Load, classify};
use probe::bursts::{Pace, Recorded};
use probe::count::Wanted;
use probe::facts::Function;
use probe::plan::{Request, What};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tma::Result;

/// Bursts of 8,192 records, at most 128 of them: an address and a value for each execution.
const PACE: Pace = Pace { length: 1 << 13, bursts: 128, pause: 1.0 };
/// [`PACE`] for a run that is to take not much longer than without.
const SHORT: Pace = Pace { pause: 4.0, ..PACE };
/// Pages as a power of two in which the stack of one thread is taken to lie: those of different threads
/// are 8 MiB apart (glibc's default).
const STACK: u32 = 9;

/// Records in processes that have code of these files, and finds the loads, their classes and what memory they read.
pub(super) fn run(
    subject: &mut Subject<'_>,
    wanted: &[Wanted],
    files: &BTreeSet<PathBuf>,
    sites: &mut Sites,
    is_short: bool,
) -> Result<(Vec<Option<Classified>>, Found, Recorded)> {
    let allocators = Allocators::new(files, wanted);
    let requests = |number: usize, function: &Function| -> Vec<Request> {
        let own = sites.add(number, function).into_iter();
        let loads = own.flat_map(|(load, is_store)| {
            let value = What::Value { width: load.width };
            let is_read = !is_store && load.has_value();
            let value = is_read.then_some(Request { at: load.at, what: value });
            [Some(Request { at: load.at, what: What::Address }), value].into_iter().flatten()
        });
        allocators.request(number).into_iter().chain(loads).collect()
    };
    let recorded =
        subject.record(&allocators.wanted, &requests, if is_short { SHORT } else { PACE })?;
    let all = sites.all();
    let number: BTreeMap<(usize, u64), usize> =
        all.iter().enumerate().map(|(n, site)| ((site.function, site.load.at), n)).collect();
    let of: Vec<Option<usize>> = recorded
        .observed
        .iter()
        .map(|o| number.get(&(o.function, o.request.at)).copied())
        .collect();
    for (observed, site) in recorded.observed.iter().zip(&of) {
        let is_load = !matches!(observed.request.what, What::Allocated { .. });
        if let (Some(why), Some(site), true) = (&observed.refused, site, is_load) {
            all[*site].refused = Some(why.to_string());
        }
    }
    let loads: Vec<Load> = all
        .iter()
        .map(|site| Load { width: site.load.width, origins: site.origins.clone() })
        .collect();
    let heap = found(&recorded, &of, &allocators);
    Ok((classify(&loads, &events(&recorded, &of)), heap, recorded))
}

/// The executions of each thread and function in each burst: other functions' are not needed to tell
/// where an address comes from.
fn events(recorded: &Recorded, of: &[Option<usize>]) -> Vec<Vec<Event>> {
    let mut found = Vec::new();
    for burst in &recorded.bursts {
        let mut own: BTreeMap<(u32, usize), Vec<Event>> = BTreeMap::new();
        for record in &burst.records {
            let site = record.site as usize;
            let (Some(observed), Some(Some(load))) = (recorded.observed.get(site), of.get(site))
            else {
                continue;
            };
            let events = own.entry((record.stack >> STACK, observed.function)).or_default();
            match observed.request.what {
                What::Address => {
                    events.push(Event { load: *load, address: record.value, value: None });
                }
                // After its address, unless the burst begins between the two.
                What::Value { .. } => match events.last_mut() {
                    Some(last) if last.load == *load => last.value = Some(record.value),
                    _ => {}
                },
                _ => {}
            }
        }
        found.extend(own.into_values());
    }
    found
}
