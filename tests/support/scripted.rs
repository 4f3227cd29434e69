//! A scripted program and kernel: phases with known rates, and the perf.data that perf would have recorded of them.
//! So the share of every event in every function is known beforehand.
//!
//! Layout of samples: `perf_output_sample()` of the kernel.

use super::perf_data::{self, ARCHITECTURE, PerfData, SAMPLE_ID_ALL, record, string, words};
use super::random::Random;
use super::scripted_code::{Code, PID, id};
use pmu::records::format::SampleFormat;
use profile::session::{
    Chunk, RecordBatch, SampledEvent, SampledEvents, StoredCounts, StoredTable,
};
use std::path::Path;
use tma::counts::{Counts, GroupCounts, Reading};

/// `PERF_SAMPLE_*`: IP, TID, TIME, PERIOD, IDENTIFIER.
const PLAIN: u64 = 1 | 2 | 4 | 1 << 8 | 1 << 16;
/// `PERF_SAMPLE_READ`.
const READ: u64 = 1 << 4;
/// `PERF_FORMAT_*`: enabled and running time, id, group.
const GROUP: u64 = 1 | 2 | 4 | 8;
/// The same: id.
const ALONE: u64 = 4;
/// The feature section of vendor, family, model and stepping.
const CPUID: u32 = 9;

/// An event of the script.
pub struct Event {
    pub name: &'static str,
    /// `perf_event_attr.config` of a raw event.
    pub config: u64,
    /// Events between samples; 0: counted only.
    pub period: f64,
}

/// A phase: where the program is, for how long, and how often each event happens there.
pub struct Phase {
    pub function: &'static str,
    /// The thread that runs, from 0.
    pub thread: u64,
    pub ns: f64,
    /// Events per nanosecond, in the order of the events.
    pub rates: Vec<f64>,
}

/// A script.
pub struct Script {
    pub events: Vec<Event>,
    pub phases: Vec<Phase>,
    /// How often the phases are gone through.
    pub rounds: usize,
    /// Samples of the first event hold the counts of all (`perf record -e '{…}:S'`).
    pub group: bool,
    /// The counts are of the CPU, whatever thread runs; else of the thread.
    pub whole_cpus: bool,
    /// Vendor, family, model and stepping.
    pub cpuid: &'static str,
}

impl Script {
    /// The share of an event in a function, by the script.
    pub fn share(&self, event: usize, function: &str) -> f64 {
        let of = |phase: &&Phase| phase.ns * phase.rates[event];
        let all: f64 = self.phases.iter().map(|p| of(&p)).sum();
        self.phases.iter().filter(|p| p.function == function).map(|p| of(&p)).sum::<f64>() / all
    }

    /// The recording of it, as perf writes it. `program` has the functions; they are not run.
    pub fn perf_data(&self, program: &Path) -> Vec<u8> {
        self.file(&self.records(program).0)
    }

    /// The same as a session of `table`, with the counts of the run by event.
    pub fn session(&self, program: &Path, table: &str, counted: &[(&str, f64)]) -> Vec<Chunk> {
        let library = engine::library();
        let (text, _) = library.text(table).expect("a table");
        let events = library.load(table).expect("a table");
        let id = |(name, _): &(&str, f64)| events.event(name).expect("an event of the table");
        let reading = Reading {
            enabled: 1_000_000_000,
            running: 1_000_000_000,
            values: counted.iter().map(|(_, count)| *count as u64).collect(),
        };
        let group = GroupCounts::Live {
            events: counted.iter().map(id).collect(),
            enabled: reading.enabled,
            readings: vec![reading],
        };
        let counts = Counts { groups: vec![group], ..Counts::default() };
        let (bytes, samples) = self.records(program);
        let sampled = self.events.iter().enumerate().map(|(at, event)| self.sampled(at, event));
        vec![
            Chunk::Header(serde_json::json!({ "command": ["work"] })),
            Chunk::Machine(serde_json::json!({ "architecture": "x86_64" })),
            Chunk::Table(StoredTable { name: table.to_owned(), text }),
            Chunk::SampledEvents(SampledEvents {
                events: sampled.collect(),
                clock: "monotonic".into(),
                ..SampledEvents::default()
            }),
            Chunk::Records(RecordBatch { cpu: Some(0), records: samples + 2, samples, bytes }),
            Chunk::Counts(Box::new(StoredCounts { table: table.to_owned(), counts })),
            Chunk::End(serde_json::json!({ "status": 0 })),
        ]
    }

    fn sampled(&self, at: usize, event: &Event) -> SampledEvent {
        let (sample_type, read_format) =
            if self.group { (PLAIN | READ, GROUP) } else { (PLAIN, 0) };
        SampledEvent {
            name: event.name.to_owned(),
            kind: 4,
            config: event.config,
            precise: 2,
            period: event.period as u64,
            format: SampleFormat {
                sample_type,
                read_format,
                sample_id_all: true,
                ..SampleFormat::default()
            },
            ids: vec![id(at)],
            ..SampledEvent::default()
        }
    }

    /// When each phase was gone through, from and to, by the clock of the samples: with its number.
    pub fn times(&self, program: &Path) -> Vec<(u64, u64, usize)> {
        self.played(program).2
    }

    /// All records, and the number of samples.
    fn records(&self, program: &Path) -> (Vec<u8>, u32) {
        let (records, samples, _) = self.played(program);
        (records, samples)
    }

    /// All records, the number of samples, and the times of the phases.
    fn played(&self, program: &Path) -> (Vec<u8>, u32, Vec<(u64, u64, usize)>) {
        let (mut samples, mut times) = (0, Vec::new());
        let code = Code::of(program);
        let mut random = Random(7);
        let mut records = code.mapping(program);
        // The first sample is anywhere in its period.
        let mut begin = |_| Counters {
            counts: vec![0.0; self.events.len()],
            next: self.events.iter().map(|e| e.period * unit(&mut random)).collect(),
            enabled: 0.0,
        };
        let threads = self.phases.iter().map(|p| p.thread).max().unwrap_or(0) + 1;
        let mut all: Vec<Counters> = (0..threads).map(&mut begin).collect();
        let mut time = 1000.0;
        for _ in 0..self.rounds {
            for (number, phase) in self.phases.iter().enumerate() {
                // Phases of exactly equal length would keep in step with the periods.
                let ns = phase.ns * (0.9 + 0.2 * unit(&mut random));
                let range = code.function(phase.function);
                let counters = &mut all[if self.whole_cpus { 0 } else { phase.thread as usize }];
                for (after, at) in counters.due(&self.events, phase, ns) {
                    let ip = range.start + random.below(range.end - range.start);
                    samples += 1;
                    records.extend(self.sample(
                        at,
                        (ip, phase.thread),
                        (time, after),
                        counters,
                        phase,
                    ));
                }
                counters.pass(phase, ns);
                times.push((time as u64, (time + ns) as u64, number));
                time += ns;
            }
        }
        (records, samples, times)
    }

    fn sample(
        &self,
        event: usize,
        (ip, thread): (u64, u64),
        (time, after): (f64, f64),
        counters: &Counters,
        phase: &Phase,
    ) -> Vec<u8> {
        let period = self.events[event].period as u64;
        let task = (PID + thread) << 32 | PID;
        let mut body = vec![id(event), ip, task, (time + after) as u64, period];
        if self.group {
            let enabled = (counters.enabled + after) as u64;
            body.extend([self.events.len() as u64, enabled, enabled]);
            for (at, (count, rate)) in counters.counts.iter().zip(&phase.rates).enumerate() {
                body.extend([(count + rate * after) as u64, id(at)]);
            }
        }
        record(9, 2, &words(&body))
    }

    fn file(&self, records: &[u8]) -> Vec<u8> {
        let (sample_type, read_format) =
            if self.group { (PLAIN | READ, GROUP) } else { (PLAIN, ALONE) };
        let event = |(at, event): (usize, &Event)| perf_data::Event {
            name: event.name,
            id: id(at),
            config: event.config,
            period: event.period as u64,
            sample_type,
            read_format,
            // precise_ip 2.
            flags: SAMPLE_ID_ALL | 2 << 15,
            ..perf_data::Event::default()
        };
        let sections = [(ARCHITECTURE, string("x86_64")), (CPUID, string(self.cpuid))];
        let events = self.events.iter().enumerate().map(event).collect();
        PerfData { events, sections: sections.into() }.file(records)
    }
}

/// The counters of a thread, or of the CPU.
struct Counters {
    counts: Vec<f64>,
    /// Count at the next sample of each event.
    next: Vec<f64>,
    enabled: f64,
}

impl Counters {
    /// Samples in a phase: when, and of which event.
    fn due(&mut self, events: &[Event], phase: &Phase, ns: f64) -> Vec<(f64, usize)> {
        let mut due: Vec<(f64, usize)> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            let (count, rate) = (self.counts[at], phase.rates[at]);
            while event.period > 0.0 && self.next[at] < count + rate * ns {
                due.push(((self.next[at] - count) / rate, at));
                self.next[at] += event.period;
            }
        }
        due.sort_by(|a, b| a.0.total_cmp(&b.0));
        due
    }

    fn pass(&mut self, phase: &Phase, ns: f64) {
        self.counts.iter_mut().zip(&phase.rates).for_each(|(count, rate)| *count += rate * ns);
        self.enabled += ns;
    }
}

/// A number from 0 to 1.
fn unit(random: &mut Random) -> f64 {
    random.below(1 << 30) as f64 / (1_u64 << 30) as f64
}
