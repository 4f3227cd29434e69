//! Samples of a whole system by place, process and thread name; those of the idle task, which are no work, apart.
//! Counts that samples read are summed by module.

use super::reads::{Readings, Reads, of_cpus};
use super::tally::{FunctionKey, Tally, UNMAPPED};
use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::files::SearchPaths;
use crate::module::Module;
use crate::record::Record;
use crate::recording::Source;
use crate::sample::Sample;
use std::collections::HashMap;
use tma::Result;

/// Where a sample is, and whose it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadPlace {
    /// The place; `None`: no mapping is known there.
    pub place: Option<ModuleAddress>,
    /// The process; `None` where it was not recorded.
    pub pid: Option<u32>,
    /// The name of the thread then; `None` if unknown.
    pub command: Option<String>,
}

/// The samples of a recording by place and thread.
#[derive(Debug, Default)]
pub struct ByThread {
    /// All but those of the idle task.
    pub sums: HashMap<ThreadPlace, Tally>,
    /// Those of the idle task.
    pub idle: Tally,
    /// The modules of places, by number.
    pub modules: Vec<Module>,
    /// Counts that samples read: `functions` has one entry per module.
    pub reads: Reads,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// Sums the samples of all events of a recording: one event on each kind of core.
///
/// # Errors
/// It cannot be read.
pub fn by_thread(source: &dyn Source, search: SearchPaths) -> Result<ByThread> {
    let about = source.about();
    let main = about.main_event();
    let mut spaces = AddressSpaces::of(about, search);
    let mut reads = Readings::new(about, of_cpus(source, main)?);
    let mut found = ByThread::default();
    let mut notes = source.each(&mut |record| match record {
        Record::Sample { event, sample } => {
            spaces.advance(sample.time);
            let place = add(&mut found, sample, &mut spaces);
            if *event == main {
                reads.take(sample, place, || key_of(place));
            }
        }
        other => spaces.apply(other),
    })?;
    notes.extend(spaces.notes());
    found.modules = std::mem::take(&mut spaces.modules.all);
    let keys: Vec<FunctionKey> = (0..found.modules.len()).map(|module| (module, 0)).collect();
    found.reads = reads.of(&keys);
    found.notes = notes;
    Ok(found)
}

/// The key of a place's module.
fn key_of(place: Option<ModuleAddress>) -> FunctionKey {
    place.map_or(UNMAPPED, |place| (place.module, 0))
}

/// Adds a sample; its place.
fn add(found: &mut ByThread, sample: &Sample, spaces: &mut AddressSpaces) -> Option<ModuleAddress> {
    let tally = Tally::of(sample);
    let pid = sample.pid.unwrap_or(u32::MAX);
    if pid == 0 {
        found.idle.add(tally);
        return None;
    }
    let place = sample.ip.and_then(|ip| spaces.resolve(pid, ip, sample.user));
    let command = sample.tid.and_then(|tid| spaces.thread_name(pid, tid)).map(str::to_owned);
    let key = ThreadPlace { place, pid: sample.pid.filter(|pid| *pid != u32::MAX), command };
    found.sums.entry(key).or_default().add(tally);
    place
}
