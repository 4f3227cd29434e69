//! Counts of `perf stat record`: what each counter had so far at the end of each interval, or of the run.
//!
//! Layouts: `struct perf_record_stat`, `perf_record_stat_round` and `enum perf_stat_round_type` of perf's
//! libperf/include/perf/event.h. Counts are the kernel's: neither scaled for multiplexing nor differences.

use super::features::{half, number, until_zero, word};
use super::header::Header;
use super::records::{Records, events, take_feature, user};
use crate::event::Event;
use crate::input::Input;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use tma::{Error, Result};

/// Most counters of a file: events on CPUs and threads. They bound the memory.
const MOST_COUNTERS: usize = 4 << 20;
/// Most sums of a file: events in rounds. They bound the memory too.
const MOST_SUMS: usize = 16 << 20;
/// Most counters that all rounds add up: each is a record of its own, so that this takes a file of 12 GiB or a made one.
const MOST_ADDED: usize = 1 << 28;
/// Records among which `perf stat record` writes how it counts, in pipe mode: after the events and their names.
const FIRST_RECORDS: usize = 1 << 16;
/// `PERF_EVENT_UPDATE__UNIT` and `PERF_EVENT_UPDATE__SCALE`.
const UPDATE_UNIT: u64 = 0;
const UPDATE_SCALE: u64 = 1;
/// `PERF_STAT_ROUND_TYPE__FINAL`.
const FINAL: u64 = 1;

/// `PERF_STAT_CONFIG_TERM__AGGR_MODE` and `AGGR_GLOBAL`.
const AGGREGATION: u64 = 0;
const GLOBAL: u64 = 1;

/// An event that was counted.
#[derive(Debug, Clone, PartialEq)]
pub struct StatEvent {
    /// perf's name for it.
    pub name: String,
    /// Unit of its counts times `scale`; empty for plain counts.
    pub unit: String,
    /// Factor of its counts.
    pub scale: f64,
}

/// Counts of an interval, or of the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Nanoseconds from the start of the run to its end.
    pub end: u64,
    /// Whether it is the whole run.
    pub is_whole: bool,
    /// Sum over CPUs and threads by event, scaled for multiplexing; `None` for an event that got no counter.
    pub counts: Vec<Option<StatCount>>,
}

/// A sum over CPUs and threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatCount {
    /// Scaled for multiplexing; nothing if no counter ever ran.
    pub value: Option<f64>,
    /// Running time over enabled time, 0..=1.
    pub running: f64,
    /// Nanoseconds that counters ran.
    pub run_time: u64,
}

/// The counts of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    /// The events, in the order of the command line.
    pub events: Vec<StatEvent>,
    /// Intervals, or one round of the whole run.
    pub rounds: Vec<Round>,
    /// Whether perf was to show parts of the machine apart (`-A`, `--per-core`, `--per-thread`): here they are summed.
    pub is_of_parts: bool,
    /// Counters that were enabled and never ran, of events of which others ran: the sums have 0 of them.
    pub idle_counters: usize,
    /// All counters of the file.
    pub counters: usize,
    /// Why the file is not whole, if it is not.
    pub damage: Option<String>,
}

/// Whether a perf.data file holds counts of `perf stat record`, instead of samples; not of one that cannot be read.
pub fn holds_counts(path: &Path) -> bool {
    let Ok((input, header)) = read_header(path) else { return false };
    if !header.events.is_empty() {
        return header.has(number::STAT);
    }
    let mut records = Records::new(&input, header.records);
    for _ in 0..FIRST_RECORDS {
        match records.next() {
            Some(Ok((_, record))) if record.kind == user::STAT_CONFIG => return true,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => break,
        }
    }
    false
}

/// Reads the counts of a file of `perf stat record`.
///
/// # Errors
/// It cannot be read, or has no description of its events.
pub fn stat(path: &Path) -> Result<Stat> {
    let (input, header) = read_header(path)?;
    let mut features = header.features;
    let mut all = header.events;
    if all.is_empty() {
        all = events(Records::new(&input, header.records.clone()), &mut features);
    }
    if all.is_empty() {
        let error = Error::failed(format!("cannot read the counts in {}", tma::files::name(path)));
        let error = error.because("it has no description of the counted events");
        return Err(match tma::shell::file(path) {
            Some(file) => error.hint(format!("see whether `perf stat report -i {file}` reads it")),
            None => error,
        });
    }
    let mut reading = Reading::new(&all);
    let mut records = Records::new(&input, header.records);
    let (mut damage, mut is_of_parts) = (None, false);
    while let Some(next) = records.next() {
        match next {
            Ok((_, record)) => match record.kind {
                user::STAT_CONFIG => is_of_parts |= shows_parts(record.body),
                user::STAT => reading.count(record.body),
                user::STAT_ROUND => reading.round(record.body),
                user::EVENT_UPDATE => reading.update(record.body),
                _ => take_feature(&record, &mut features),
            },
            Err(found) => damage = Some(found.to_string()),
        }
    }
    if reading.is_too_large {
        damage = Some(format!(
            "it has more than {MOST_COUNTERS} counters, or more than {MOST_SUMS} sums of intervals"
        ));
    }
    reading.finish();
    Ok(Stat {
        idle_counters: reading.idle_counters(),
        counters: reading.counters.len(),
        events: reading.events,
        rounds: reading.rounds,
        is_of_parts,
        damage,
    })
}

/// STAT_CONFIG: a number, then that many tags and values.
fn shows_parts(body: &[u8]) -> bool {
    let pairs = body.get(8..).unwrap_or_default().as_chunks::<16>().0;
    let value = |tag| pairs.iter().find(|pair| word(&pair[..], 0) == Some(tag));
    value(AGGREGATION).is_some_and(|pair| word(&pair[..], 8) != Some(GLOBAL))
}

fn read_header(path: &Path) -> Result<(Input, Header)> {
    let failed = || Error::failed(format!("cannot read {}", tma::files::name(path)));
    let input = Input::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
    let header = Header::read(&input).map_err(|why| {
        failed()
            .because(why)
            .hint("see whether `perf report --header-only` reads it, or record again")
    })?;
    Ok((input, header))
}

/// Count, time enabled and time running so far.
type Counter = [u64; 3];

/// The rounds read so far.
struct Reading {
    events: Vec<StatEvent>,
    /// Events by the ids of their counters.
    of_id: HashMap<u64, usize>,
    /// Counters by event, CPU and thread: now, and at the end of the last round.
    counters: HashMap<(usize, u32, u32), [Counter; 2]>,
    rounds: Vec<Round>,
    /// Sums that the rounds may still have, and counters that they may still add up.
    sums_left: usize,
    added_left: usize,
    is_too_large: bool,
}

impl Reading {
    fn new(events: &[Event]) -> Self {
        let ids = events.iter().enumerate();
        let ids = ids.flat_map(|(index, event)| event.ids.iter().map(move |id| (*id, index)));
        let plain =
            |event: &Event| StatEvent { name: event.name.clone(), unit: String::new(), scale: 1.0 };
        Self {
            of_id: ids.collect(),
            events: events.iter().map(plain).collect(),
            counters: HashMap::new(),
            rounds: Vec::new(),
            sums_left: MOST_SUMS,
            added_left: MOST_ADDED,
            is_too_large: false,
        }
    }

    /// STAT: id, CPU, thread, count, time enabled, time running.
    fn count(&mut self, body: &[u8]) {
        let words = |at| word(body, at);
        let (Some(id), Some(cpu), Some(thread)) = (words(0), half(body, 8), half(body, 12)) else {
            return;
        };
        let (Some(value), Some(enabled), Some(running)) = (words(16), words(24), words(32)) else {
            return;
        };
        let Some(event) = self.of_id.get(&id).copied() else { return };
        let key = (event, cpu, thread);
        if self.counters.len() >= MOST_COUNTERS && !self.counters.contains_key(&key) {
            self.is_too_large = true;
            return;
        }
        self.counters.entry(key).or_default()[0] = [value, enabled, running];
    }

    /// STAT_ROUND: type, time.
    fn round(&mut self, body: &[u8]) {
        if let (Some(kind), Some(time)) = (word(body, 0), word(body, 8)) {
            self.end_round(time, kind == FINAL);
        }
    }

    fn end_round(&mut self, end: u64, is_whole: bool) {
        let sums_left = self.sums_left.checked_sub(self.events.len());
        let added_left = self.added_left.checked_sub(self.counters.len());
        let (Some(sums_left), Some(added_left)) = (sums_left, added_left) else {
            self.is_too_large = true;
            return;
        };
        (self.sums_left, self.added_left) = (sums_left, added_left);
        let mut sums = vec![None; self.events.len()];
        for ((event, ..), [now, before]) in &mut self.counters {
            let since = [0, 1, 2].map(|at| now[at].saturating_sub(before[at]));
            *before = *now;
            let sum = sums[*event].get_or_insert(Sum::default());
            sum.add(since);
        }
        let counts =
            sums.iter().zip(&self.events).map(|(sum, event)| Some(sum.as_ref()?.count(event)));
        let counts = counts.collect();
        self.rounds.push(Round { end, is_whole, counts });
    }

    /// EVENT_UPDATE: what is updated, the event's id, the unit or the scale.
    fn update(&mut self, body: &[u8]) {
        let (Some(what), Some(id)) = (word(body, 0), word(body, 8)) else { return };
        let Some(event) = self.of_id.get(&id).and_then(|at| self.events.get_mut(*at)) else {
            return;
        };
        match what {
            UPDATE_UNIT => event.unit = until_zero(&body[16..]),
            UPDATE_SCALE => {
                let scale = word(body, 16).map(f64::from_bits).filter(|scale| scale.is_finite());
                event.scale = scale.filter(|scale| *scale > 0.0).unwrap_or(1.0);
            }
            _ => {}
        }
    }

    /// Counters that were enabled and never ran, of events of which others ran.
    fn idle_counters(&self) -> usize {
        let all = || self.counters.iter().map(|((event, ..), [now, _])| (event, now));
        let ran: HashSet<_> =
            all().filter(|(_, [.., running])| *running > 0).map(|(event, _)| event).collect();
        all()
            .filter(|(event, [_, enabled, running])| {
                *enabled > 0 && *running == 0 && ran.contains(event)
            })
            .count()
    }

    /// A file whose end was lost has counts after its last round.
    fn finish(&mut self) {
        if self.rounds.is_empty() && !self.counters.is_empty() {
            self.end_round(0, true);
        }
    }
}

/// Counters of one event added up.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    value: f64,
    enabled: u64,
    running: u64,
}

impl Sum {
    /// Each counter is scaled by its own times, as perf does (`perf_counts_values__scale`).
    fn add(&mut self, [value, enabled, running]: Counter) {
        let scale = if running > 0 { enabled as f64 / running as f64 } else { 0.0 };
        self.value += value as f64 * scale;
        self.enabled = self.enabled.saturating_add(enabled);
        self.running = self.running.saturating_add(running);
    }

    fn count(&self, event: &StatEvent) -> StatCount {
        let running =
            if self.enabled > 0 { self.running as f64 / self.enabled as f64 } else { 0.0 };
        StatCount {
            value: (self.running > 0).then_some(self.value * event.scale),
            running: running.min(1.0),
            run_time: self.running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(counters: &[(u64, u32, Counter)]) -> Reading {
        let event = |id| Event { ids: vec![id], ..Event::default() };
        let mut reading = Reading::new(&[event(1), event(2)]);
        for (id, cpu, [value, enabled, running]) in counters {
            let place = u64::from(*cpu);
            let body = [id, &place, value, enabled, running].map(|word| word.to_le_bytes());
            reading.count(&body.concat());
        }
        reading
    }

    #[test]
    fn rounds_end_where_their_sums_take_too_much() {
        let limits: [fn(&mut Reading) -> &mut usize; 2] =
            [|reading| &mut reading.sums_left, |reading| &mut reading.added_left];
        for limit in limits {
            let mut reading = reading(&[(1, 0, [5, 10, 10]), (2, 0, [6, 10, 10])]);
            *limit(&mut reading) = 5;
            for end in 1..4 {
                assert!(!reading.is_too_large);
                reading.end_round(end, false);
            }
            assert_eq!((reading.rounds.len(), reading.is_too_large), (2, true));
        }
    }

    #[test]
    fn counters_that_never_ran_are_told_from_events_that_never_did() {
        let ran = [7, 10, 10];
        let (idle, off) = ([0, 10, 0], [0, 0, 0]);
        let all = [(1, 0, ran), (1, 1, idle), (1, 2, off), (2, 0, idle), (2, 1, idle)];
        assert_eq!(reading(&all).idle_counters(), 1);
    }
}
