//! Which threads have samples, the choices of a filter by thread; what else samples have.

use crate::address_space::AddressSpaces;
use crate::files::SearchPaths;
use crate::record::Record;
use crate::recording::Source;
use std::collections::{HashMap, HashSet};
use tma::Result;

/// A thread with samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Name at its last sample; empty if unknown.
    pub name: String,
    /// Number of samples of all events.
    pub samples: u64,
}

/// Threads, names and fields in the samples of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// Threads, those with most samples first.
    pub threads: Vec<Thread>,
    /// Processes.
    pub processes: HashSet<u32>,
    /// Names that threads had at any time.
    pub names: HashSet<String>,
    /// Whether some have branches.
    pub branches: bool,
    /// Whether some have memory accesses.
    pub accesses: bool,
}

/// Looks through the records of a recording.
///
/// # Errors
/// The recording cannot be read.
pub fn overview(source: &dyn Source) -> Result<Overview> {
    // Only thread names are needed: no program is searched.
    let mut spaces = AddressSpaces::new(SearchPaths::default(), &[]);
    let mut all: HashMap<u32, Thread> = HashMap::new();
    let mut found = Overview::default();
    source.each(&mut |record| match record {
        Record::Sample { sample, .. } => {
            found.processes.extend(sample.pid);
            found.branches |= !sample.branches.is_empty();
            found.accesses |= sample.data_source.is_some() || !sample.raw.is_empty();
            let Some(tid) = sample.tid else { return };
            let thread = all.entry(tid).or_default();
            (thread.tid, thread.samples) = (tid, thread.samples + 1);
            let name = sample.pid.and_then(|pid| spaces.thread_name(pid, tid));
            if let Some(name) = name.filter(|name| *name != thread.name) {
                thread.name = name.to_owned();
            }
        }
        other => {
            if let Record::Name { name, .. } = other
                && !found.names.contains(name)
            {
                found.names.insert(name.clone());
            }
            spaces.apply(other);
        }
    })?;
    found.threads = all.into_values().collect();
    found.threads.sort_by_key(|t| (std::cmp::Reverse(t.samples), t.tid));
    Ok(found)
}
