//! The gate in memory shared with the program, which decides when records are taken; and the mappings of the
//! process, polled so that temporary ones are seen, too.

use super::heap::{Heap, Log};
use super::request::{Burst, Pace, Record, Region};
use crate::emit::{PART, RECORD, RECORDS, countdown};
use crate::patch::Shared;
use crate::plan::PAGE;
use crate::process::{Mapping, mappings};
use isa::elf::Layout;
use object::ReadCache;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Quota: entries of a block whose registers are recorded between refills, enough to see the stride
/// of a value.
const QUOTA: u16 = 64;
/// Average refill interval.
const REFILL: Duration = Duration::from_millis(5);

/// A program image that is recorded.
pub(super) struct Image {
    /// Its number, in order of start.
    pub number: usize,
    /// Its first process.
    pub process: i32,
    /// Whether it ran before, and runs on after the last burst.
    pub is_live: bool,
}

/// The gate of one program image.
pub(super) struct Gate {
    shared: Arc<Shared>,
    pub image: Image,
    /// By file: what was added to its addresses.
    pub biases: BTreeMap<PathBuf, u64>,
    /// The first N requests may have a record quota.
    quotas: u32,
    refill: Instant,
    /// Whether memory maps are read.
    maps: bool,
    memory: Memory,
    pace: Pace,
    state: State,
    /// Factor on the length of pauses.
    factor: f64,
    random: Random,
    /// Recorded bursts.
    pub bursts: Vec<Burst>,
    /// Log of calls, if calls are logged.
    log: Option<Log>,
    /// Its first process has ended.
    has_ended: bool,
    /// Calls logged before the current burst.
    before: u64,
}

/// What is recorded beside single instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    /// The first so many requests may have a quota.
    pub quotas: u32,
    /// Memory maps.
    pub maps: bool,
    /// Calls.
    pub logs: bool,
}

enum State {
    Open {
        since: Instant,
    },
    Closed {
        until: Instant,
    },
    /// Its memory cannot be reached.
    Broken,
}

impl Gate {
    /// Opens the gate of an image, whose code has not run unless it is live.
    pub fn new(shared: Arc<Shared>, image: Image, pace: Pace, beside: Beside) -> Self {
        let Beside { quotas, maps, logs } = beside;
        let mut gate = Self {
            shared,
            quotas,
            refill: Instant::now(),
            maps,
            memory: Memory::new(image.process),
            pace,
            state: State::Broken,
            factor: 1.0,
            random: Random(image.number as u64 + 1),
            image,
            biases: BTreeMap::new(),
            bursts: Vec::new(),
            log: None,
            has_ended: false,
            before: 0,
        };
        gate.log = logs.then(|| Log::new(&gate.shared));
        gate.refill_quotas(gate.refill);
        gate.open();
        gate
    }

    /// Whether its records are in this memory.
    pub fn is_of(&self, shared: &Shared) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.shared), shared)
    }

    /// Refills all quotas when the refill interval is over.
    fn refill_quotas(&mut self, now: Instant) {
        if self.quotas == 0 || now < self.refill {
            return;
        }
        let all: Vec<u8> = (0..self.quotas).flat_map(|_| QUOTA.to_le_bytes()).collect();
        // If this fails, there are no more records.
        let _ = self.shared.write(&all, countdown(0));
        self.refill = now + REFILL.mul_f64(self.factor * 2.0 * self.random.share());
    }

    /// Updates the mappings of the process, for recorded addresses and logged calls.
    pub fn refresh(&mut self) {
        if self.maps {
            self.memory.poll();
        }
        if let (Some(log), false) = (&mut self.log, self.has_ended) {
            log.refresh(self.image.process);
        }
    }

    /// Number of calls logged so far.
    fn logged(&self) -> u64 {
        self.log.as_ref().map_or(0, |_| Log::logged(&self.shared))
    }

    /// Drains the log when it is long.
    fn read_log(&mut self) {
        if self.log.as_ref().is_some_and(|log| log.is_long(&self.shared)) {
            self.refresh();
            if let Some(log) = &mut self.log {
                log.read(&self.shared);
            }
        }
    }

    /// Memory allocated by the image, if it was logged and the image has bursts.
    pub fn heap(&mut self) -> Option<Heap> {
        let log = self.log.take().filter(|_| !self.bursts.is_empty())?;
        Some(log.finish(self.image.number, &self.shared))
    }

    /// Its process has forked.
    pub fn fork(&mut self) {
        if let Some(log) = &mut self.log {
            log.is_forked = true;
        }
    }

    /// Its first process is about to end.
    pub fn end(&mut self) {
        self.refresh();
        self.has_ended = true;
        // Forked processes may still use it.
        let is_idle = self.bursts.is_empty() && self.wanted().is_ok_and(|n| n == self.pace.length);
        self.log.take_if(|log| is_idle && !log.is_forked);
    }

    /// Whether it has ended without a record.
    pub fn is_unused(&self) -> bool {
        self.has_ended
            && self.bursts.is_empty()
            && self.wanted().is_ok_and(|n| n == self.pace.length)
    }

    /// Bytes of shared memory.
    pub fn needs(pace: &Pace) -> u64 {
        RECORDS + pace.length as u64 * RECORD
    }

    /// Opens or closes the gate when it is due.
    pub fn tick(&mut self, now: Instant) {
        self.refill_quotas(now);
        self.read_log();
        if self.maps {
            self.memory.tick(now);
        }
        match self.state {
            State::Closed { until } if now >= until => self.open(),
            State::Open { since } if self.wanted().is_ok_and(|wanted| wanted == 0) => {
                let took = now - since;
                self.refresh();
                self.take(0);
                self.pause(now, took);
            }
            _ => {}
        }
    }

    /// Takes a burst cut off by the end of the program or window.
    pub fn finish(&mut self) {
        if let (State::Open { .. }, Ok(wanted)) = (&self.state, self.wanted()) {
            self.take(wanted);
        }
        self.state = State::Broken;
    }

    /// Records missing from the current burst.
    fn wanted(&self) -> io::Result<usize> {
        let mut word = [0; 8];
        self.shared.read(&mut word, 0)?;
        let wanted = usize::try_from(i64::from_le_bytes(word)).unwrap_or(0);
        Ok(wanted.min(self.pace.length))
    }

    fn open(&mut self) {
        let empty = vec![0; self.pace.length * RECORD as usize];
        let clean = self.bursts.is_empty() || self.shared.write(&empty, RECORDS).is_ok();
        let length = (self.pace.length as u64).to_le_bytes();
        self.before = self.logged();
        let is_open = clean && self.shared.write(&length, 0).is_ok();
        self.state = if is_open { State::Open { since: Instant::now() } } else { State::Broken };
    }

    /// Adds a burst without its last `wanted` records: not 0 only at the end of the program or
    /// window.
    fn take(&mut self, wanted: usize) {
        let mut bytes = vec![0; (self.pace.length - wanted) * RECORD as usize];
        let from = RECORDS + wanted as u64 * RECORD;
        if self.shared.read(&mut bytes, from).is_err() {
            return;
        }
        let records: Vec<Record> = bytes.as_chunks().0.iter().rev().filter_map(record).collect();
        if !records.is_empty() {
            let is_first = self.bursts.is_empty() && !self.image.is_live;
            let is_last = wanted > 0 && !self.image.is_live;
            let (image, memory) = (self.image.number, self.memory.take());
            let logged = (self.before, self.logged());
            self.bursts.push(Burst { image, is_first, is_last, records, memory, logged });
        }
    }

    fn pause(&mut self, now: Instant, took: Duration) {
        if self.bursts.len() > self.pace.bursts {
            let mut number = 0;
            self.bursts.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.factor *= 2.0;
        }
        let times = self.pace.pause * self.factor * 2.0 * self.random.share();
        self.state = State::Closed { until: now + took.mul_f64(times) };
    }
}

/// Decodes a record written by a trampoline; `None` if incomplete.
fn record(bytes: &[u8; RECORD as usize]) -> Option<Record> {
    let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let value = bytes[8..].try_into().map_or(0, u64::from_le_bytes);
    let (head, stack) = (word(0), word(4));
    let site = (head & ((1 << PART) - 1)).checked_sub(1)?;
    Some(Record { site, part: (head >> PART) as u8, stack, value })
}

/// Random numbers: xorshift (Marsaglia, "Xorshift RNGs", 2003).
struct Random(u64);

impl Random {
    /// Uniform between 0 and 1.
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// First poll interval; it doubles with each poll.
const FIRST: Duration = Duration::from_millis(2);

/// Mappings seen in a process.
pub(super) struct Memory {
    process: i32,
    /// States since the last burst, oldest first.
    seen: Vec<Arc<Vec<Region>>>,
    /// Data segments of files, by path.
    files: BTreeMap<String, Data>,
    next: Instant,
    pause: Duration,
}

impl Memory {
    pub fn new(process: i32) -> Self {
        let (seen, files) = (Vec::new(), BTreeMap::new());
        Self { process, seen, files, next: Instant::now(), pause: FIRST }
    }

    /// Polls when the poll interval is over.
    pub fn tick(&mut self, now: Instant) {
        if now >= self.next {
            self.poll();
            (self.next, self.pause) = (now + self.pause, self.pause * 2);
        }
    }

    /// Polls the mappings, if the process still runs.
    pub fn poll(&mut self) {
        let mut all: Vec<Region> = Vec::new();
        let mut data: Option<(Mapping, Data)> = None;
        for mapping in mappings(self.process) {
            let (mut start, end) = (mapping.start, mapping.end);
            let file = data.take().filter(|(d, _)| mapping.path.is_empty() && d.end == start);
            if let Some((file, of)) = file {
                let split = start.saturating_add(of.zeros).min(end);
                let in_file = Some(of.in_file(&file, start));
                all.push(Region { range: start..split, of: file.path, in_file });
                start = split;
            }
            let is_data = mapping.rights.contains('w') && mapping.path.starts_with('/');
            let of = is_data.then(|| {
                let path = mapping.path.clone();
                *self.files.entry(path).or_insert_with(|| Data::of(&mapping.path))
            });
            let in_file = of.map(|of| of.in_file(&mapping, start));
            all.push(Region { range: start..end, of: mapping.path.clone(), in_file });
            data = of.map(|of| (mapping, of));
        }
        all.retain(|region| !region.range.is_empty());
        if !all.is_empty() && self.seen.last().is_none_or(|last| **last != all) {
            self.seen.push(Arc::new(all));
        }
    }

    /// States until the end of a burst, latest first.
    pub fn take(&mut self) -> Vec<Arc<Vec<Region>>> {
        let latest = self.seen.last().cloned();
        let mut all = std::mem::take(&mut self.seen);
        all.reverse();
        self.seen.extend(latest);
        (self.next, self.pause) = (Instant::now(), FIRST);
        all
    }
}

/// The data segment of a file: its last writable one.
#[derive(Debug, Clone, Copy, Default)]
struct Data {
    /// Bytes of whole pages by which it is longer in memory than in the file (.bss).
    zeros: u64,
    /// What its addresses (p_vaddr) are more than its offsets in the file.
    more: u64,
}

impl Data {
    fn of(path: &str) -> Self {
        let Ok(file) = File::open(path) else { return Self::default() };
        let Ok(layout) = Layout::read(&ReadCache::new(file)) else { return Self::default() };
        let last = layout.segments.iter().rfind(|segment| segment.writable);
        last.map_or_else(Self::default, |segment| {
            let pages = |range: Range<u64>| range.end.div_ceil(PAGE);
            let more = pages(segment.memory()).saturating_sub(pages(segment.in_file()));
            let zeros = more.saturating_mul(PAGE);
            Self { zeros, more: segment.address.wrapping_sub(segment.offset) }
        })
    }

    /// The address (p_vaddr) of what is at `address` in a process, by a mapping of this data before it.
    fn in_file(self, mapping: &Mapping, address: u64) -> u64 {
        let offset = mapping.offset.wrapping_add(address.wrapping_sub(mapping.start));
        offset.wrapping_add(self.more)
    }
}
