//! Broken sessions: what is broken is said with its place, and what is whole is kept.

use super::{batch, bytes_of, chunks, raw_record, raw_sample, read_all, sampled_chunks};
use crate::support::files::Folder;
use crate::support::shown;
use profile::record::Record;
use profile::session::{Chunk, Reader, SessionWriter, load, recording_from};
use proptest::prelude::*;
use std::path::Path;

#[test]
fn records_that_make_no_sense_are_reported_and_the_others_kept() {
    let mut chunks = sampled_chunks();
    let mut cut = raw_sample(60, 0, 0x60);
    cut.truncate(20);
    // A sample whose body ends inside its time.
    let short = raw_record(9, 2, &[77, 0x70, 4711]);
    chunks.insert(3, batch(0, &[short, raw_sample(5, 0, 5), cut]));
    let recording = recording_from(&bytes_of(&chunks)[..], "s").unwrap();
    let samples = recording.records.iter();
    let is_sample = |r: &&Record| matches!(r, Record::Sample { .. });
    assert_eq!(samples.filter(is_sample).count(), 6);
    assert_shown!("notes_of_a_damaged_session", recording.notes.join("\n"));
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
    let folder = Folder::new();
    let cut = folder.write("cut", &bytes[..bytes.len() - 3]);
    assert_eq!(load(Path::new(&cut)).unwrap().notes.len(), 1);
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
            assert!(error.what().contains(" at byte "), "byte {at}: {error}");
        }
    }
}

#[test]
fn kinds_of_later_versions_are_skipped_and_later_versions_refused() {
    let mut bytes = bytes_of(&chunks()[..1]);
    // A chunk of kind 77 with payload "new", made by hand from docs/reference/session.md.
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
    assert_shown!("session_of_a_later_version", shown::error(&error, &Folder::new()));
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
    need!(Path::new("/dev/full").exists(), "no /dev/full here");
    let error = SessionWriter::create(Path::new("/dev/full")).unwrap_err();
    assert!(error.cause().unwrap().contains("space"), "{error}");
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
        let mut bytes = 0;
        for chunk in &mut chunks {
            let Chunk::Records(batch) = chunk else { continue };
            bytes += batch.bytes.len();
            for (at, byte) in &changes {
                let at = at.index(batch.bytes.len());
                batch.bytes[at] = *byte;
            }
        }
        let recording = recording_from(&bytes_of(&chunks)[..], "s").unwrap();
        // A damaged size divides a record into others; none is shorter than its header of 8 bytes.
        prop_assert!(recording.records.len() <= bytes / 8);
    }
}
