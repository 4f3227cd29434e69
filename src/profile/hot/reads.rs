//! Counts that samples read (`PERF_SAMPLE_READ`), attributed to where the sample is, and their sums, in little memory
//! however many there are.
//!
//! A reading holds the counts of an event group so far; what came in since the previous reading of the same thread
//! (or CPU, where whole CPUs are counted) is attributed to the function of the later one. That is biased: the thread
//! may have been elsewhere for a part of the time. [`FunctionReads::same`] is of those that were in the same function
//! at both ends.
//!
//! Readings are summed while they are read. Whether groups count whole CPUs is seen in all of them only: recordings
//! that have groups are read once more before.

use super::tally::FunctionKey;
use crate::module::ModuleAddress;
use crate::record::Record;
use crate::recording::{About, Source};
use crate::sample::Sample;
use pmu::records::format::{field, read};
use std::collections::{BTreeMap, HashMap, HashSet};
use tma::Result;

/// Ids of groups that count whole CPUs.
pub(super) type OfCpus = HashSet<Option<u64>>;

/// Groups that count whole CPUs: the readings of several threads go on from one another. Threads that inherit a group
/// have its id, and counts of their own.
pub(super) fn of_cpus(source: &dyn Source, event: usize) -> Result<OfCpus> {
    let reads_groups = source.about().events.get(event).is_some_and(|event| {
        let format = &event.format;
        format.sample_type & field::READ != 0 && format.read_format & read::GROUP != 0
    });
    if !reads_groups {
        return Ok(OfCpus::new());
    }
    let mut last: HashMap<Option<u64>, (Option<u32>, u64)> = HashMap::new();
    let (mut several, mut apart) = (HashSet::new(), HashSet::new());
    source.each(&mut |record| {
        let Record::Sample { event: of, sample } = record else { return };
        let Some(readings) = sample.readings.as_ref().filter(|_| *of == event) else { return };
        let id = readings.values.first().and_then(|value| value.id);
        let enabled = readings.enabled.unwrap_or(0);
        if let Some((tid, before)) = last.insert(id, (sample.tid, enabled))
            && tid != sample.tid
        {
            several.insert(id);
            if before > enabled {
                apart.insert(id);
            }
        }
    })?;
    Ok(several.difference(&apart).copied().collect())
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Taken {
    key: Option<FunctionKey>,
    enabled: u64,
    running: u64,
    values: Vec<u64>,
}

/// The readings of a recording so far.
#[derive(Debug, Default)]
pub(super) struct Readings {
    of_cpus: OfCpus,
    names: HashMap<u64, String>,
    /// Functions of places.
    keys: HashMap<Option<ModuleAddress>, FunctionKey>,
    /// The last reading of each thread, or CPU, and group.
    last: HashMap<(Option<u32>, Option<u64>), Taken>,
    by_function: HashMap<FunctionKey, FunctionReads>,
    intervals: Median,
    /// All but the functions.
    reads: Reads,
}

impl Readings {
    pub(super) fn new(about: &About, of_cpus: OfCpus) -> Self {
        let sampled = about.events.iter().map(|event| (&event.name, &event.ids));
        let counted = about.counted.iter().map(|(name, ids)| (name, ids));
        let of = |(name, ids): (&String, &Vec<u64>)| {
            ids.iter().map(|id| (*id, name.clone())).collect::<Vec<_>>()
        };
        Self { of_cpus, names: sampled.chain(counted).flat_map(of).collect(), ..Self::default() }
    }

    /// Takes the counts of a sample, if it has those of several events; `key` finds a place's function. What was
    /// counted since the last one of its thread.
    pub(super) fn take(
        &mut self,
        sample: &Sample,
        place: Option<ModuleAddress>,
        key: impl FnOnce() -> FunctionKey,
    ) -> Option<Since> {
        let readings = sample.readings.as_ref().filter(|r| r.values.len() > 1)?;
        let name = |id: Option<u64>| id.and_then(|id| self.names.get(&id));
        let events = readings.values.iter().map(|v| name(v.id).map_or("unknown", String::as_str));
        if self.reads.events.is_empty() {
            self.reads.events = events.clone().map(str::to_owned).collect();
        }
        if !events.eq(self.reads.events.iter().map(String::as_str)) {
            self.reads.unlike += 1;
            return None;
        }
        let id = readings.values.first().and_then(|value| value.id);
        // An event on several CPUs has an id on each.
        let thread = sample.tid.filter(|_| !self.of_cpus.contains(&id));
        let own = *self.keys.entry(place).or_insert_with(key);
        let taken = Taken {
            key: Some(own),
            enabled: readings.enabled.unwrap_or(0),
            running: readings.running.unwrap_or(0),
            values: readings.values.iter().map(|value| value.value).collect(),
        };
        let zero = || Taken { values: vec![0; taken.values.len()], ..Taken::default() };
        let before = self.last.insert((thread, id), taken.clone()).unwrap_or_else(zero);
        let Some((enabled, running, values)) = taken.since(&before) else {
            self.reads.unlike += 1;
            return None;
        };
        let since = Since { of: (thread, id), enabled, running, values };
        self.by_function.entry(own).or_default().add(&since, before.key == Some(own));
        self.intervals.add(enabled);
        self.reads.readings += 1;
        self.reads.enabled += enabled as f64;
        Some(since)
    }

    /// The readings of these functions.
    pub(super) fn of(mut self, keys: &[FunctionKey]) -> Reads {
        let mut own = |key: &FunctionKey| self.by_function.remove(key).unwrap_or_default();
        self.reads.functions = keys.iter().map(&mut own).collect();
        self.reads.interval = self.intervals.get();
        self.reads
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

/// Counts between two readings of a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Since {
    /// Thread (`None`: the whole CPU) and group.
    pub of: (Option<u32>, Option<u64>),
    enabled: u64,
    running: u64,
    values: Vec<u64>,
}

impl FunctionReads {
    /// Adds what was counted; `same`: the earlier reading was there, too.
    pub(super) fn add(&mut self, since: &Since, same: bool) {
        let Since { enabled, running, values, .. } = since;
        let read = Read { enabled: *enabled, running: *running, values };
        self.all.add(read);
        if same {
            self.same.add(read);
        }
    }
}

/// Counts between readings, by the function of the later one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionReads {
    /// All.
    pub all: ReadSum,
    /// Intervals whose earlier reading was in the same function.
    pub same: ReadSum,
}

/// Counts that samples read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reads {
    /// Names of the events.
    pub events: Vec<String>,
    /// By function, for those with samples.
    pub functions: Vec<FunctionReads>,
    /// All readings.
    pub readings: u64,
    /// Nanoseconds that the groups were enabled between them.
    pub enabled: f64,
    /// Nanoseconds between two readings of a thread, median.
    pub interval: f64,
    /// Readings left out: they went back, or hold other events.
    pub unlike: u64,
}

/// Most parts that readings are summed to: at least half of them, with so many readings, are enough for a jackknife,
/// and readings near one another, which are not independent, share a part.
const MOST: usize = 128;

/// Counts and times between two readings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read<'a> {
    /// Nanoseconds that the group was enabled.
    pub enabled: u64,
    /// Nanoseconds that it counted.
    pub running: u64,
    /// Counts of its events.
    pub values: &'a [u64],
}

/// Readings, summed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadSum {
    /// How many there are.
    pub readings: u64,
    /// Nanoseconds that the group was enabled.
    pub enabled: f64,
    /// Numbers of a part: time enabled, time running, and a count of each event.
    wide: usize,
    parts: Vec<u64>,
    /// Readings of a part, and of the last one so far.
    each: u64,
    in_last: u64,
}

/// Successive readings, summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Nanoseconds that the group was enabled.
    pub enabled: u64,
    /// Nanoseconds that it counted.
    pub running: u64,
    /// Counts, in the order of [`Reads::events`](super::Reads::events).
    pub values: &'a [u64],
}

impl ReadSum {
    pub(super) fn add(&mut self, read: Read<'_>) {
        self.wide = 2 + read.values.len();
        if self.parts.is_empty() || self.in_last == self.each {
            if self.parts.len() == MOST * self.wide {
                self.halve();
            }
            self.parts.resize(self.parts.len() + self.wide, 0);
            self.in_last = 0;
        }
        self.each = self.each.max(1);
        let numbers = [read.enabled, read.running].into_iter().chain(read.values.iter().copied());
        let last = self.parts.len() - self.wide;
        for (sum, number) in self.parts[last..].iter_mut().zip(numbers) {
            *sum = sum.saturating_add(number);
        }
        self.in_last += 1;
        self.readings += 1;
        self.enabled += read.enabled as f64;
    }

    /// Sums each two parts to one.
    fn halve(&mut self) {
        let pairs = self.parts.chunks(2 * self.wide).flat_map(|two| {
            let (first, second) = two.split_at(self.wide);
            first.iter().zip(second).map(|(a, b)| a.saturating_add(*b))
        });
        self.parts = pairs.collect();
        self.each *= 2;
    }

    /// Parts of as many successive readings each, but for the last.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.chunks(self.wide.max(2)).filter_map(|part| {
            let [enabled, running, values @ ..] = part else { return None };
            Some(Part { enabled: *enabled, running: *running, values })
        })
    }
}

/// The median of numbers, to the nearest 128th.
#[derive(Debug, Clone, Default)]
pub(super) struct Median {
    /// How many numbers begin with the same bits, and their sum.
    alike: BTreeMap<u32, (u64, f64)>,
}

impl Median {
    pub fn add(&mut self, number: u64) {
        let bits = u64::BITS - number.leading_zeros();
        let first = number >> bits.saturating_sub(8);
        let alike = self.alike.entry(bits << 8 | first as u32).or_default();
        *alike = (alike.0 + 1, alike.1 + number as f64);
    }

    pub fn get(&self) -> f64 {
        let half = self.alike.values().map(|(count, _)| count).sum::<u64>() / 2;
        let mut before = 0;
        let middle = self.alike.values().find(|(count, _)| {
            before += count;
            before > half
        });
        middle.map_or(0.0, |(count, sum)| sum / *count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_readings_are_a_hundred_parts() {
        let mut sum = ReadSum::default();
        for number in 0..1_000_000 {
            sum.add(Read { enabled: 10, running: 5, values: &[number, 1] });
        }
        let parts: Vec<_> = sum.parts().collect();
        assert!((64..=128).contains(&parts.len()), "{}", parts.len());
        assert_eq!((sum.readings, sum.enabled), (1_000_000, 1e7));
        let of = |at: usize| parts.iter().map(|part| part.values[at]).sum::<u64>();
        assert_eq!((of(0), of(1)), (999_999 * 500_000, 1_000_000));
        assert!(
            parts
                .windows(2)
                .all(|two| two[0].values[0] < two[1].values[0]
                    || two[1].values[1] < two[0].values[1]),
            "in order of time"
        );
        let whole = &parts[..parts.len() - 1];
        assert!(
            whole
                .iter()
                .all(|part| part.running == 5 * part.values[1]
                    && part.values[1] == whole[0].values[1])
        );
    }

    #[test]
    fn few_readings_are_kept_apart() {
        let mut sum = ReadSum::default();
        (0..128).for_each(|_| sum.add(Read { enabled: 1, running: 1, values: &[] }));
        assert_eq!(sum.parts().count(), 128);
        assert_eq!(ReadSum::default().parts().count(), 0);
    }

    #[test]
    fn the_median_is_known_to_a_128th() {
        let mut median = Median::default();
        assert_eq!(median.get(), 0.0);
        for number in [1_000_000, 1_000_000, 3, 5_000_000_000, 1_000_000] {
            median.add(number);
        }
        assert_eq!(median.get(), 1e6, "alike ones are exact");
        let mut median = Median::default();
        (0..100_001).for_each(|number| median.add(number));
        assert!((median.get() / 50_000.0 - 1.0).abs() < 1.0 / 128.0, "{}", median.get());
    }
}
