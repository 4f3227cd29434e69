//! The session file: what is written comes back, and a broken file says what is broken where.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use pmu::records::format::SampleFormat;
use profile::counts::{Format, Options, counts, read};
use profile::session::{
    BuildId, Chunk, Reader, RecordBatch, SampledEvent, SampledEvents, SessionWriter,
    SoftwareCounts, StoredCounts, StoredTable, has_samples, load, load_recording, recording_from,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tma::counts::{Counts, GroupCounts, Reading};
use tma::quantity::Missing;
use tma::tables::Library;

fn some_counts(interval: u64) -> Counts {
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

fn chunks() -> Vec<Chunk> {
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
fn raw_record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((8 + 8 * words.len() as u16).to_le_bytes());
    bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    bytes
}

/// A sample: identifier, ip, pid and tid, time, CPU, period.
fn raw_sample(time: u64, cpu: u64, ip: u64) -> Vec<u8> {
    raw_record(9, 2, &[77, ip, 4711 | 4712 << 32, time, cpu, 1000])
}

fn batch(cpu: u32, records: &[Vec<u8>]) -> Chunk {
    let samples = records.iter().filter(|r| r[0] == 9).count() as u32;
    let (records, bytes) = (records.len() as u32, records.concat());
    Chunk::Records(RecordBatch { cpu: Some(cpu), records, samples, bytes })
}

/// Chunks of a recording with samples, two rings in turns.
fn sampled_chunks() -> Vec<Chunk> {
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

fn write(path: &Path, chunks: &[Chunk]) {
    let mut writer = SessionWriter::create(path).unwrap();
    for chunk in chunks {
        writer.append(chunk).unwrap();
    }
    writer.finish().unwrap();
}

fn bytes_of(chunks: &[Chunk]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tdtool");
    write(&path, chunks);
    std::fs::read(path).unwrap()
}

fn read_all(bytes: &[u8]) -> (Vec<Chunk>, Option<tma::Error>, u64) {
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

#[test]
fn what_is_written_comes_back() {
    let (read, error, ignored) = read_all(&bytes_of(&chunks()));
    assert!(error.is_none());
    assert_eq!((read, ignored), (chunks(), 0));
}

#[test]
fn samples_of_all_rings_come_back_in_order_of_time() {
    use profile::record::Record;
    let bytes = bytes_of(&sampled_chunks());
    assert_eq!(read_all(&bytes).0, sampled_chunks());
    let recording = recording_from(&bytes[..], "s").unwrap();
    let ips = recording.records.iter().filter_map(|r| match r {
        Record::Sample { sample, event: 0 } => sample.ip,
        _ => None,
    });
    assert_eq!(ips.collect::<Vec<_>>(), [0x10, 0x20, 0x30, 0x40, 0x50]);
    assert_eq!(recording.lost, 5);
    assert_eq!(recording.build_ids, [("/bin/true".to_owned(), vec![1, 2, 0xfe])]);
    assert_eq!(recording.architecture.as_deref(), Some("x86_64"));
    assert_eq!(recording.command, Some(vec!["busy".to_owned()]));
    assert_eq!(recording.events[0].name, "cpu-clock:u");
    assert_eq!(recording.notes, ["why"]);
}

#[test]
fn a_session_without_samples_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    write(&path, &chunks());
    assert!(!has_samples(&path).unwrap());
    assert!(load_recording(&path).unwrap_err().what().ends_with("has no samples"));
    write(&path, &sampled_chunks());
    assert!(has_samples(&path).unwrap());
}

#[test]
fn records_that_make_no_sense_are_told_and_the_others_kept() {
    let mut chunks = sampled_chunks();
    let mut cut = raw_sample(60, 0, 0x60);
    cut.truncate(20);
    // A sample whose body ends inside its time.
    let short = raw_record(9, 2, &[77, 0x70, 4711]);
    chunks.insert(3, batch(0, &[short, raw_sample(5, 0, 5), cut]));
    let recording = recording_from(&bytes_of(&chunks)[..], "s").unwrap();
    let samples = recording.records.iter();
    let is_sample =
        |r: &&profile::record::Record| matches!(r, profile::record::Record::Sample { .. });
    assert_eq!(samples.filter(is_sample).count(), 6);
    let notes = recording.notes.join("\n");
    assert!(notes.contains("1 records not understood"), "{notes}");
    assert!(notes.contains("not whole"), "{notes}");
}

#[test]
fn a_killed_recording_keeps_every_whole_chunk() {
    let mut small = [chunks(), sampled_chunks()].concat();
    small.remove(1);
    let bytes = bytes_of(&small);
    let ends: Vec<usize> = (0..=small.len()).map(|n| bytes_of(&small[..n]).len()).collect();
    for cut in ends[0]..=bytes.len() {
        let whole = ends.iter().rposition(|end| *end <= cut).unwrap();
        let (read, error, ignored) = read_all(&bytes[..cut]);
        assert!(error.is_none(), "cut at {cut}");
        assert_eq!(read, small[..whole], "cut at {cut}");
        assert_eq!(ignored, (cut - ends[whole]) as u64);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut");
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let notes = load(&path).unwrap().notes;
    assert!(notes[0].starts_with("ends early: "), "{notes:?}");
    assert!(notes[0].ends_with("bytes after the last whole chunk ignored"), "{notes:?}");
}

#[test]
fn every_changed_byte_is_noticed() {
    let mut small = [chunks(), sampled_chunks()].concat();
    small.remove(1);
    let bytes = bytes_of(&small);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let (read, error, _) = read_all(&changed);
        let error = error.unwrap_or_else(|| panic!("byte {at} changed and nobody noticed"));
        assert!(read.len() < small.len());
        if at >= 8 {
            assert!(error.what().contains("is damaged at byte"), "byte {at}: {error}");
        }
    }
}

#[test]
fn kinds_of_later_versions_are_skipped_and_later_versions_refused() {
    let mut bytes = bytes_of(&chunks()[..1]);
    // A chunk of kind 77 with payload "new", made by hand from docs/session.md.
    let mut chunk = Vec::new();
    chunk.extend(77u32.to_le_bytes());
    chunk.extend(3u64.to_le_bytes());
    chunk.extend(crc32(b"new").to_le_bytes());
    chunk.extend(crc32(&chunk).to_le_bytes());
    chunk.extend(b"new");
    bytes.extend(chunk);
    bytes.extend(&bytes_of(&chunks()[5..])[16..]);
    let mut reader = Reader::new(&bytes[..], "s").unwrap();
    let read: Vec<Chunk> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(read, [chunks()[0].clone(), chunks()[5].clone()]);
    assert_eq!(reader.skipped_chunks(), 1);

    let mut later = b"\x89TDS\r\n\x1a\n".to_vec();
    later.extend(2u32.to_le_bytes());
    later.extend(crc32(&later).to_le_bytes());
    let error = Reader::new(&later[..], "s").err().unwrap();
    assert!(error.what().contains("version 2"), "{error}");
}

/// CRC-32 bit by bit, as IEEE 802.3 defines it: no code in common with the file's own.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[test]
fn a_tail_of_zeros_is_a_cut_off_write() {
    let mut bytes = bytes_of(&chunks()[..3]);
    bytes.extend([0; 5000]);
    let (read, error, ignored) = read_all(&bytes);
    assert!(error.is_none());
    assert_eq!((read.len(), ignored), (3, 5000));
    bytes.push(1);
    assert!(read_all(&bytes).1.is_some(), "zeros in the middle are damage");
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full");
        return;
    }
    let error = SessionWriter::create(Path::new("/dev/full")).unwrap_err();
    assert!(error.cause().unwrap().contains("space"), "{error}");
}

#[test]
fn an_import_takes_a_session_like_any_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.tdtool");
    write(&path, &chunks());
    let recording = read(&[&path]).unwrap();
    assert_eq!(recording.sources[0].format, Format::Session);
    let table = events::library().load("zen4").unwrap();
    let imported = counts(&recording, &table, Options::default()).unwrap();
    assert_eq!(imported.counts, [some_counts(0), some_counts(1)]);
    assert_eq!(imported.software[0].values["task-clock"], Ok(0.82));
    assert!(imported.software[0].values["cs"].is_err());
    let other = events::library().load("skx").unwrap();
    let error = counts(&recording, &other, Options::default()).unwrap_err();
    assert!(error.what().contains("not recorded with skx but with zen4"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_sessions_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..10),
        extra in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut bytes = bytes_of(&[&chunks()[2..], &sampled_chunks()].concat());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend(extra);
        read_all(&bytes);
        let _ = recording_from(&bytes[..], "s");
    }

    #[test]
    fn broken_records_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
    ) {
        let mut chunks = sampled_chunks();
        for chunk in &mut chunks {
            let Chunk::Records(batch) = chunk else { continue };
            for (at, byte) in &changes {
                let at = at.index(batch.bytes.len());
                batch.bytes[at] = *byte;
            }
        }
        let recording = recording_from(&bytes_of(&chunks)[..], "s").unwrap();
        prop_assert!(recording.records.len() <= 6);
    }
}
