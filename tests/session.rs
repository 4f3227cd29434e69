//! The session file: what is written comes back, and a broken file says what is broken where.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tdtool::collect::recorded::{Format, Options, counts, read};
use tdtool::counts::{Counts, GroupCounts, Reading};
use tdtool::quantity::Missing;
use tdtool::session::{
    Chunk, Reader, SessionWriter, SoftwareCounts, StoredCounts, StoredTable, load,
};
use tdtool::tables::Library;

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
    let (text, _) = Library::embedded().text("zen4").unwrap();
    let counts = |i| Box::new(StoredCounts { table: "zen4".into(), counts: some_counts(i) });
    vec![
        Chunk::Header(serde_json::json!({ "command": ["sleep", "1"], "machine": { "cpus": 2 } })),
        Chunk::Table(StoredTable { name: "zen4".into(), text: text.into_owned() }),
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

fn read_all(bytes: &[u8]) -> (Vec<Chunk>, Option<tdtool::Error>, u64) {
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
fn a_killed_recording_keeps_every_whole_chunk() {
    let mut small = chunks();
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
    let mut small = chunks();
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
    let table = Library::embedded().load("zen4").unwrap();
    let imported = counts(&recording, &table, Options::default()).unwrap();
    assert_eq!(imported.counts, [some_counts(0), some_counts(1)]);
    assert_eq!(imported.software[0].values["task-clock"], Ok(0.82));
    assert!(imported.software[0].values["cs"].is_err());
    let other = Library::embedded().load("skx").unwrap();
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
        let mut bytes = bytes_of(&chunks()[2..]);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend(extra);
        read_all(&bytes);
    }
}
