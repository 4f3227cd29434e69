//! Counts of `perf stat record`: what each counter had so far at the end of each interval, or of the run.
//!
//! Layouts: `struct perf_record_stat`, `perf_record_stat_round` and `enum perf_stat_round_type` of perf's
//! libperf/include/perf/event.h. Counts are the kernel's: neither scaled for multiplexing nor differences.

use super::attribute::{half, word};
use super::features::{number, until_zero};
use super::header::Header;
use super::records::{Records, events, take_feature, user};
use crate::event::Event;
use crate::input::Input;
use std::collections::HashMap;
use std::path::Path;
use tma::{Error, Result};

/// Most counters of a file: events on CPUs and threads. They bound the memory.
const MOST_COUNTERS: usize = 4 << 20;
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
    /// What a count is multiplied by.
    pub scale: f64,
}

/// What was counted in an interval, or in the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Nanoseconds from the start of the run to its end.
    pub end: u64,
    /// Whether it is the whole run.
    pub is_whole: bool,
    /// Of each event the sum over CPUs and threads, scaled for multiplexing; nothing of one that got no counter.
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
        let error = Error::failed(format!("cannot read the counts in {}", path.display()));
        return Err(error
            .because("it has no description of the counted events")
            .hint(format!("perf stat report -i {}", path.display())));
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
        damage = Some(format!("it has more than {MOST_COUNTERS} counters"));
    }
    reading.finish();
    Ok(Stat { events: reading.events, rounds: reading.rounds, is_of_parts, damage })
}

/// STAT_CONFIG: a number, then so many tags and values.
fn shows_parts(body: &[u8]) -> bool {
    let pairs = body.get(8..).unwrap_or_default().as_chunks::<16>().0;
    let value = |tag| pairs.iter().find(|pair| word(&pair[..], 0) == Some(tag));
    value(AGGREGATION).is_some_and(|pair| word(&pair[..], 8) != Some(GLOBAL))
}

fn read_header(path: &Path) -> Result<(Input, Header)> {
    let failed = || Error::failed(format!("cannot read {}", path.display()));
    let input = Input::open(path).map_err(|e| failed().because(e))?;
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
