//! The session file: what is written comes back, and a broken file says what is broken where.

mod damage;
mod round_trip;

use crate::profile::made;
use crate::support::files::Folder;
use pmu::records::format::SampleFormat;
use profile::session::{
    BuildId, Chunk, Reader, RecordBatch, SampledEvent, SampledEvents, SessionWriter,
    SoftwareCounts, StoredCounts, StoredTable,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tma::Error;
use tma::counts::{Counts, GroupCounts, Reading};
use tma::quantity::Missing;

/// Counts of one interval, of every kind.
pub fn some_counts(interval: u64) -> Counts {
    let second = |s| Duration::from_secs(s);
    Counts {
        core: None,
        scope: Some("cpu3".into()),
        interval: Some((second(interval), second(interval + 1))),
        groups: vec![
            GroupCounts::Live {
                events: vec![0, 3],
                readings: vec![Reading { enabled: 9, running: 5, values: vec![u64::MAX, 1] }],
                enabled: 10,
            },
            GroupCounts::Imported {
                events: vec![(1, Ok(0.1 + 0.2)), (2, Err(Missing::NotCounted("x".into())))],
                running: Some(1.0 / 3.0),
                intervals: Vec::new(),
            },
            GroupCounts::Missing { events: vec![4], why: Missing::NoPmu { virtual_machine: true } },
        ],
        constants: [None, Some(1000.5), None, Some(2.0), None],
        notes: vec!["user mode only".into()],
    }
}

/// Chunks of a recording of counts.
pub fn chunks() -> Vec<Chunk> {
    let (text, _) = events::library().text("zen4").unwrap();
    let counts = |i| Box::new(StoredCounts { table: "zen4".into(), counts: some_counts(i) });
    vec![
        Chunk::Header(serde_json::json!({ "command": ["sleep", "1"], "machine": { "cpus": 2 } })),
        Chunk::Table(StoredTable { name: "zen4".into(), text }),
        Chunk::Counts(counts(0)),
        Chunk::Counts(counts(1)),
        Chunk::Software(SoftwareCounts {
            scope: None,
            interval: None,
            values: BTreeMap::from([("task-clock".into(), Some(0.82)), ("cs".into(), None)]),
        }),
        Chunk::End(serde_json::json!({ "status": 0 })),
    ]
}

/// IP, TID, TIME, CPU, PERIOD and IDENTIFIER of linux/perf_event.h.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 16;

/// A record by hand, from linux/perf_event.h.
pub fn raw_record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    made::record(kind, misc, &made::words(words))
}

/// A sample: identifier, ip, pid and tid, time, CPU, period.
pub fn raw_sample(time: u64, cpu: u64, ip: u64) -> Vec<u8> {
    raw_record(9, 2, &[77, ip, 4711 | 4712 << 32, time, cpu, 1000])
}

/// Records of one processor's ring.
pub fn batch(cpu: u32, records: &[Vec<u8>]) -> Chunk {
    let samples = records.iter().filter(|r| r[0] == 9).count() as u32;
    let (records, bytes) = (records.len() as u32, records.concat());
    Chunk::Records(RecordBatch { cpu: Some(cpu), records, samples, bytes })
}

/// Chunks of a recording with samples, two rings alternately.
pub fn sampled_chunks() -> Vec<Chunk> {
    let event = SampledEvent {
        name: "cpu-clock:u".into(),
        kind: 1,
        period: 999,
        by_frequency: true,
        format: SampleFormat {
            sample_type: SAMPLE_TYPE,
            sample_id_all: true,
            ..SampleFormat::default()
        },
        ids: vec![77, 78],
        ..SampledEvent::default()
    };
    let lost = raw_record(2, 0, &[77, 5, 4711 | 4712 << 32, 35, 1, 77]);
    let ids = vec![BuildId::new("/bin/true", &[1, 2, 0xfe])];
    vec![
        Chunk::Header(serde_json::json!({ "command": ["busy"] })),
        Chunk::Machine(serde_json::json!({ "architecture": "x86_64", "kernel": "6.1" })),
        Chunk::SampledEvents(SampledEvents {
            events: vec![event],
            tracking_ids: vec![76],
            clock: "monotonic".into(),
            user_only: true,
            notes: vec!["why".into()],
        }),
        batch(0, &[raw_sample(10, 0, 0x10), raw_sample(30, 0, 0x30)]),
        batch(1, &[raw_sample(20, 1, 0x20), lost]),
        batch(0, &[raw_sample(50, 0, 0x50)]),
        batch(1, &[raw_sample(40, 1, 0x40)]),
        Chunk::BuildIds(ids),
        Chunk::End(serde_json::json!({ "status": 0, "sampling": { "lost": 5 } })),
    ]
}

/// Writes a session.
pub fn write(path: &Path, chunks: &[Chunk]) {
    let mut writer = SessionWriter::create(path).unwrap();
    for chunk in chunks {
        writer.append(chunk).unwrap();
    }
    writer.finish().unwrap();
}

/// A session's bytes.
pub fn bytes_of(chunks: &[Chunk]) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.path().join("s.tdtool");
    write(&path, chunks);
    fs::read(path).unwrap()
}

/// All chunks, the last error, and how many bytes were ignored.
pub fn read_all(bytes: &[u8]) -> (Vec<Chunk>, Option<Error>, u64) {
    let mut reader = match Reader::new(bytes, "s") {
        Ok(reader) => reader,
        Err(e) => return (Vec::new(), Some(e), 0),
    };
    let (mut chunks, mut error) = (Vec::new(), None);
    for chunk in reader.by_ref() {
        match chunk {
            Ok(chunk) => chunks.push(chunk),
            Err(e) => error = Some(e),
        }
    }
    (chunks, error, reader.ignored_bytes())
}
