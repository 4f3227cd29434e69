//! Counts that samples read (`PERF_SAMPLE_READ`), attributed to where the sample is.
//!
//! A reading holds the counts of an event group so far; what came in since the previous reading of the same thread
//! is attributed to the place of the later one. That is biased: the thread may have been elsewhere for a part of the
//! time. [`Read::same`] says whether it was in the same function at both ends.

use super::functions::FunctionKey;
use crate::address_space::ModuleAddress;
use crate::recording::About;
use crate::sample::Sample;
use std::collections::HashMap;

/// What came in between two readings, by place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Difference {
    pub place: Option<ModuleAddress>,
    /// Place of the previous reading; `None`: there is none.
    pub before: Option<Option<ModuleAddress>>,
    pub enabled: u64,
    pub running: u64,
    pub values: Vec<u64>,
}

/// The previous reading.
#[derive(Debug, Clone, Default)]
struct Last {
    place: Option<ModuleAddress>,
    enabled: u64,
    running: u64,
    values: Vec<u64>,
}

/// The events of the readings, and their differences.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Names of the events; empty: samples hold no counts of several events.
    pub events: Vec<String>,
    pub all: Vec<Difference>,
    /// Readings that could not be used: other events than the first.
    pub unlike: u64,
    /// By thread and id of the group's leader.
    last: HashMap<(Option<u32>, Option<u64>), Last>,
    names: HashMap<u64, String>,
}

impl Differences {
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
        let values: Vec<u64> = readings.values.iter().map(|v| v.value).collect();
        // Of an event on several CPUs each has its own ids and counts; children share ids, not counts.
        let key = (sample.tid, readings.values.first().and_then(|v| v.id));
        let (enabled, running) = (readings.enabled.unwrap_or(0), readings.running.unwrap_or(0));
        let now = Last { place, enabled, running, values: values.clone() };
        let before = self.last.insert(key, now);
        let from = before.as_ref().map(|last| last.place);
        let zero = || Last { values: vec![0; values.len()], ..Last::default() };
        let was = before.unwrap_or_else(zero);
        let less = |now: u64, then: u64| now.checked_sub(then);
        let differences: Option<Vec<u64>> =
            values.iter().zip(&was.values).map(|(now, then)| less(*now, *then)).collect();
        let times = less(enabled, was.enabled).zip(less(running, was.running));
        match differences.zip(times) {
            Some((values, (enabled, running))) => {
                self.all.push(Difference { place, before: from, enabled, running, values })
            }
            None => self.unlike += 1,
        }
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

impl Differences {
    /// By function; `key` finds a place's function.
    pub(super) fn by_function(
        self,
        keys: &[FunctionKey],
        mut key: impl FnMut(Option<ModuleAddress>) -> FunctionKey,
    ) -> Reads {
        let index: HashMap<FunctionKey, usize> =
            keys.iter().enumerate().map(|(index, key)| (*key, index)).collect();
        let mut all = Vec::with_capacity(self.all.len());
        for one in self.all {
            let own = key(one.place);
            all.push(Read {
                function: index.get(&own).copied(),
                same: one.before.is_some_and(|before| key(before) == own),
                enabled: one.enabled,
                running: one.running,
                values: one.values,
            });
        }
        Reads { events: self.events, all, unlike: self.unlike }
    }
}
