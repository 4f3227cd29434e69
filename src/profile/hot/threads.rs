//! Which threads have samples: what a filter by thread can choose from.

use crate::record::Record;
use crate::recording::Recording;
use crate::address_space::AddressSpaces;
use crate::symbols::SearchPaths;
use std::collections::HashMap;

/// A thread with samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name at its last sample; empty where none is known.
    pub name: String,
    /// Samples of all events.
    pub samples: u64,
}

/// The threads of a recording, those with most samples first.
pub fn threads(recording: &Recording) -> Vec<Thread> {
    // Names alone are followed: no file is looked for.
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
