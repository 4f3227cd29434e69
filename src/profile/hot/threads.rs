//! Which threads have samples: the choices of a filter by thread.

use crate::address_space::AddressSpaces;
use crate::files::SearchPaths;
use crate::record::Record;
use crate::recording::Recording;
use std::collections::HashMap;

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

/// The threads of a recording, those with most samples first.
pub fn threads(recording: &Recording) -> Vec<Thread> {
    // Only thread names are needed: no program is searched.
    let mut spaces = AddressSpaces::new(SearchPaths::default(), &[]);
    let mut all: HashMap<u32, Thread> = HashMap::new();
    for record in &recording.records {
        match record {
            Record::Sample { sample, .. } => {
                let Some(tid) = sample.tid else { continue };
                let thread = all.entry(tid).or_default();
                (thread.tid, thread.samples) = (tid, thread.samples + 1);
                let name = sample.pid.and_then(|pid| spaces.thread_name(pid, tid));
                if let Some(name) = name.filter(|name| *name != thread.name) {
                    thread.name = name.to_owned();
                }
            }
            other => spaces.apply(other),
        }
    }
    let mut all: Vec<Thread> = all.into_values().collect();
    all.sort_by_key(|t| (std::cmp::Reverse(t.samples), t.tid));
    all
}
