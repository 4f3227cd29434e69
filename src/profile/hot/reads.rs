//! Counts that samples read (`PERF_SAMPLE_READ`), attributed to where the sample is.
//!
//! A reading holds the counts of an event group so far; what came in since the previous reading of the same thread
//! (or CPU, where whole CPUs are counted) is attributed to the place of the later one. That is biased: the thread may have been elsewhere for a part of the
//! time. [`Read::same`] says whether it was in the same function at both ends.

use super::function::FunctionKey;
use crate::address_space::ModuleAddress;
use crate::recording::About;
use crate::sample::Sample;
use std::collections::{HashMap, HashSet};

/// One reading.
#[derive(Debug, Clone, Default, PartialEq)]
struct Taken {
    place: Option<ModuleAddress>,
    tid: Option<u32>,
    /// Id of the group's leader.
    id: Option<u64>,
    enabled: u64,
    running: u64,
    values: Vec<u64>,
}

/// The readings of a recording, in order of time.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Names of the events; empty: samples hold no counts of several events.
    events: Vec<String>,
    all: Vec<Taken>,
    /// Readings of other events than the first.
    unlike: u64,
    names: HashMap<u64, String>,
}

impl Readings {
    pub(super) fn new(about: &About) -> Self {
        let sampled = about.events.iter().map(|event| (&event.name, &event.ids));
        let counted = about.counted.iter().map(|(name, ids)| (name, ids));
        let of = |(name, ids): (&String, &Vec<u64>)| {
            ids.iter().map(|id| (*id, name.clone())).collect::<Vec<_>>()
        };
        Self { names: sampled.chain(counted).flat_map(of).collect(), ..Self::default() }
    }

    /// Takes the counts of a sample, if it has those of several events.
    pub(super) fn take(&mut self, sample: &Sample, place: Option<ModuleAddress>) {
        let Some(readings) = sample.readings.as_ref().filter(|r| r.values.len() > 1) else {
            return;
        };
        let unknown = || "unknown".to_owned();
        let name = |id: Option<u64>| id.and_then(|id| self.names.get(&id).cloned());
        let events: Vec<String> =
            readings.values.iter().map(|v| name(v.id).unwrap_or_else(unknown)).collect();
        if self.events.is_empty() {
            self.events.clone_from(&events);
        }
        if events != self.events {
            self.unlike += 1;
            return;
        }
        self.all.push(Taken {
            place,
            tid: sample.tid,
            id: readings.values.first().and_then(|value| value.id),
            enabled: readings.enabled.unwrap_or(0),
            running: readings.running.unwrap_or(0),
            values: readings.values.iter().map(|value| value.value).collect(),
        });
    }

    /// Ids of groups that count whole CPUs: the readings of several threads go on from one another. Threads that
    /// inherit a group have its id, and counts of their own.
    fn of_cpus(&self) -> HashSet<Option<u64>> {
        let mut last: HashMap<Option<u64>, &Taken> = HashMap::new();
        let (mut several, mut apart) = (HashSet::new(), HashSet::new());
        for one in &self.all {
            if let Some(before) = last.insert(one.id, one)
                && before.tid != one.tid
            {
                several.insert(one.id);
                if before.enabled > one.enabled {
                    apart.insert(one.id);
                }
            }
        }
        several.difference(&apart).copied().collect()
    }

    /// What came in between readings, by function; `key` finds a place's function.
    pub(super) fn by_function(
        self,
        keys: &[FunctionKey],
        mut key: impl FnMut(Option<ModuleAddress>) -> FunctionKey,
    ) -> Reads {
        let index: HashMap<FunctionKey, usize> =
            keys.iter().enumerate().map(|(index, key)| (*key, index)).collect();
        let of_cpus = self.of_cpus();
        let mut last: HashMap<(Option<u32>, Option<u64>), Taken> = HashMap::new();
        let mut reads = Reads { events: self.events, all: Vec::new(), unlike: self.unlike };
        for one in self.all {
            // Of an event on several CPUs each has its own id.
            let thread = one.tid.filter(|_| !of_cpus.contains(&one.id));
            let before = last.insert((thread, one.id), one.clone());
            let own = key(one.place);
            let same = before.as_ref().is_some_and(|before| key(before.place) == own);
            let zero = || Taken { values: vec![0; one.values.len()], ..Taken::default() };
            match one.since(&before.unwrap_or_else(zero)) {
                Some((enabled, running, values)) => {
                    let function = index.get(&own).copied();
                    reads.all.push(Read { function, same, enabled, running, values });
                }
                None => reads.unlike += 1,
            }
        }
        reads
    }
}

impl Taken {
    /// Time enabled, time running and counts since an earlier reading; `None`: they went back.
    fn since(&self, before: &Self) -> Option<(u64, u64, Vec<u64>)> {
        let values = self.values.iter().zip(&before.values);
        let values: Option<Vec<u64>> = values.map(|(now, then)| now.checked_sub(*then)).collect();
        let enabled = self.enabled.checked_sub(before.enabled)?;
        Some((enabled, self.running.checked_sub(before.running)?, values?))
    }
}

/// What came in between two readings of a thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read {
    /// Index of the function of the later reading among those with samples; `None`: it has none.
    pub function: Option<usize>,
    /// Whether the earlier reading was in the same function.
    pub same: bool,
    /// Nanoseconds that the group was enabled.
    pub enabled: u64,
    /// Nanoseconds that it counted.
    pub running: u64,
    /// Counts, in the order of [`Reads::events`].
    pub values: Vec<u64>,
}

/// Counts that samples read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reads {
    /// Names of the events.
    pub events: Vec<String>,
    /// In order of time.
    pub all: Vec<Read>,
    /// Readings left out: they went back, or hold other events.
    pub unlike: u64,
}
