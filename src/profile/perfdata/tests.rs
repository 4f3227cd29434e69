//! Whole files: made here byte by byte, and those of `../shared/recordings` where they are.

#![allow(clippy::unwrap_used, clippy::print_stderr)]
use super::parse;
use super::records::user;
use crate::record::Record;
use crate::recording::Recording;
use pmu::records::format::field;
use pmu::records::kind;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Layout of the made samples: identifier, address, thread, time.
const SAMPLE_TYPE: u64 = field::IDENTIFIER | field::IP | field::TID | field::TIME;
/// Id of the made event.
const ID: u64 = 101;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A record after `struct perf_event_header`.
fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

fn sample(time: u64) -> Vec<u8> {
    record(kind::SAMPLE, 2, &words(&[ID, 0x40_1000, 12 << 32 | 11, time]))
}

/// A name from `time` on, with the sample's ids at its end.
fn comm(name: &[u8; 8], time: u64) -> Vec<u8> {
    let ids = words(&[12 << 32 | 11, time, ID]);
    record(kind::COMM, 0, &[&words(&[12 << 32 | 11])[..], name, &ids].concat())
}

/// A file in pipe mode with one event (`struct perf_event_attr` of 64 bytes, `sample_id_all` set).
fn file(records: &[u8]) -> Vec<u8> {
    let attribute = words(&[4 | 64 << 32, 0x1cd, 1000, SAMPLE_TYPE, 0, 1 << 18, 0, 0]);
    let event = record(user::HEADER_ATTR, 0, &[attribute, words(&[ID])].concat());
    [b"PERFILE2".to_vec(), words(&[16]), event, records.to_vec()].concat()
}

/// `records` as one zstd stream that is never ended, as perf leaves it, in records of `piece` bytes.
fn compressed(records: &[u8], piece: usize, sized: bool) -> Vec<u8> {
    let mut stream = compress_to_vec(records, CompressionLevel::Fastest);
    // The last block is none if its bit is cleared, and four bytes of checksum follow it.
    let descriptor = stream[4];
    assert_eq!(descriptor & 4, 4, "the encoder writes a checksum");
    stream[4] = descriptor & !4;
    stream.truncate(stream.len() - 4);
    let part = |data: &[u8]| match sized {
        false => record(user::COMPRESSED, 0, data),
        true => {
            let size = words(&[data.len() as u64]);
            record(user::COMPRESSED2, 0, &[&size[..], data, &[0; 5]].concat())
        }
    };
    stream.chunks(piece).flat_map(part).collect()
}

fn times(recording: &Recording) -> Vec<u64> {
    recording.records.iter().filter_map(Record::time).collect()
}

#[test]
fn records_come_in_order_of_time_and_those_without_one_after_their_round() {
    let round = record(user::FINISHED_ROUND, 0, &[]);
    let records =
        [sample(20), sample(10), round.clone(), sample(40), sample(30), round, sample(25)].concat();
    assert_eq!(times(&parse(&file(&records), "made").unwrap()), [10, 20, 25, 30, 40]);
    // perf's "no time": handed on at once.
    let named = [sample(10), comm(b"name\0\0\0\0", u64::MAX), sample(5)].concat();
    let recording = parse(&file(&named), "made").unwrap();
    assert!(matches!(recording.records[0], Record::Name { .. }), "{:?}", recording.records);
}

#[test]
fn compressed_records_are_those_that_were_compressed_however_they_are_cut() {
    let records: Vec<u8> = (0..5000).flat_map(sample).collect();
    let plain = parse(&file(&records), "made").unwrap();
    for piece in [7, 1000, 60_000] {
        for sized in [false, true] {
            let recording = parse(&file(&compressed(&records, piece, sized)), "made").unwrap();
            assert_eq!(recording.records, plain.records, "{piece}");
            assert_eq!(recording.notes, [""; 0]);
        }
    }
}

#[test]
fn damage_in_compressed_records_is_reported_with_its_offset() {
    let records: Vec<u8> = (0..50_000).flat_map(|n| sample(n * n)).collect();
    let whole = file(&compressed(&records, 1000, false));
    let mut reported = 0;
    for place in 1..40 {
        let mut damaged = whole.clone();
        let at = whole.len() / 40 * place;
        damaged[at..at + 20].fill(0x55);
        // Nothing at all comes out where it is in the first block.
        let Ok(recording) = parse(&damaged, "made") else { continue };
        if let Some(note) = recording.notes.iter().find(|n| n.contains("compressed data")) {
            assert!(note.contains("at byte") && note.contains("not read"), "{note}");
            assert!(recording.records.len() < 50_000);
            reported += 1;
        }
    }
    assert!(reported > 0, "not every damage is in literals");
    let cut = file(&compressed(&records[..records.len() - 8], 1000, false));
    let note = &parse(&cut, "made").unwrap().notes[0];
    assert!(note.contains("end inside a record"), "{note}");
}

/// A zstd stream (RFC 8878) of `blocks` blocks that each repeat one byte 128 Ki times: magic, frame
/// header without a size, window of 1 MiB, blocks of type RLE.
fn repeated(byte: u8, blocks: usize) -> Vec<u8> {
    let header: u32 = 0x2_0000 << 3 | 1 << 1;
    let block = [&header.to_le_bytes()[..3], &[byte]].concat();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x50][..], &block.repeat(blocks)].concat()
}

/// Two thousand samples' worth of equal stacks of 60,000 bytes, as `--call-graph dwarf` records them
/// of a small program: 15 bytes each, in a raw block and one of type RLE.
#[test]
fn large_equal_stacks_are_no_damage() {
    let block = |kind: u32, size: usize, data: &[u8]| {
        [&((size as u32) << 3 | kind << 1).to_le_bytes()[..3], data].concat()
    };
    let stack = record(kind::SAMPLE + 50, 0, &[0; 60_000]);
    let one = [block(0, 8, &stack[..8]), block(1, 60_000, &[0])].concat();
    let last = block(0, sample(5).len(), &sample(5));
    let stream = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x50][..], &one.repeat(2_000), &last].concat();
    let records: Vec<u8> =
        stream.chunks(400).flat_map(|part| record(user::COMPRESSED, 0, part)).collect();
    let recording = parse(&file(&records), "made").unwrap();
    assert_eq!((times(&recording), recording.about.notes), (vec![5], Vec::new()));
}

#[test]
fn kilobytes_that_would_become_gigabytes_are_refused() {
    // Records of 0x0808 bytes and type 0x08080808.
    let stream: Vec<u8> = repeated(8, 16_000);
    let records: Vec<u8> =
        stream.chunks(400).flat_map(|part| record(user::COMPRESSED, 0, part)).collect();
    let error = parse(&file(&records), "made").unwrap_err();
    assert!(error.cause().is_some_and(|c| c.contains("expand to more than")), "{error}");
}

#[test]
fn a_record_of_another_event_ends_as_that_event_says() {
    // Two events whose samples differ: ids and times stand at different places of their records.
    let attribute =
        |config, sample_type| words(&[4 | 64 << 32, config, 1000, sample_type, 0, 1 << 18, 0, 0]);
    let event = |config, sample_type, id| {
        record(user::HEADER_ATTR, 0, &[attribute(config, sample_type), words(&[id])].concat())
    };
    let (short, long) = (field::IDENTIFIER | field::TIME, SAMPLE_TYPE | field::CPU);
    let exit = |ids: &[u64]| record(kind::EXIT, 0, &words(&[&[1, 1, 0][..], ids].concat()));
    let bytes = [
        b"PERFILE2".to_vec(),
        words(&[16]),
        event(1, short, 1),
        event(2, long, 2),
        exit(&[50, 1]),
        exit(&[12 << 32 | 11, 40, 3, 2]),
    ];
    assert_eq!(times(&parse(&bytes.concat(), "made").unwrap()), [40, 50]);
}

/// The recordings of `../shared/recordings`; those that are not here are skipped aloud.
fn shared(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/recordings");
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: ../shared/recordings/{name} is not here");
        return None;
    }
    Some(path)
}

#[test]
fn recordings_of_other_projects_have_as_many_samples_as_perf_reports() {
    // `perf report --stats` (6.1); gematria's, which it refuses: sample ids counted by a script.
    for (name, samples, lost) in [
        ("quipper/perf.data.branch-4.14", 13, 0),
        ("quipper/perf.data.branch_stack_spec", 8, 0),
        ("quipper/perf.data.group_desc-4.14", 13, 0),
        ("quipper/perf.data.hybrid_topology", 7, 0),
        ("quipper/perf.data.lost_samples-4.4", 191, 2),
        ("quipper/perf.data.weight_struct", 14, 0),
        ("autofdo/propeller_sample_1.perfdata1", 3740, 0),
        ("gematria/simple_x86_elf_object.perf.data", 32, 0),
    ] {
        let Some(path) = shared(name) else { continue };
        let recording = super::read(&path).unwrap();
        let found = recording.records.iter().filter(|r| matches!(r, Record::Sample { .. }));
        assert_eq!((found.count(), recording.lost), (samples, lost), "{name}");
        assert_eq!(recording.notes, [""; 0], "{name}");
        assert!(times(&recording).is_sorted(), "{name}");
    }
}

/// Files to damage: small enough to be read thousands of times.
static WHOLE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let records: Vec<u8> =
        (0..200).flat_map(|n| [sample(n), comm(b"name\0\0\0\0", n)].concat()).collect();
    let mut all = vec![
        file(&records),
        file(&compressed(&records, 100, false)),
        file(&compressed(&records, 3000, true)),
    ];
    for name in [
        "quipper/perf.data.group_desc-4.14",
        "quipper/perf.data.branch-4.14",
        "quipper/perf.data.lost_samples-4.4",
        "quipper/perf.data.piped.corrupted.zero_size_sample-3.2",
        "gematria/simple_x86_elf_object.perf.data",
    ] {
        all.extend(shared(name).map(|path| std::fs::read(path).unwrap()));
    }
    all
});

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Bytes changed, the end cut off: an error or a recording, which never has more records than
    /// its bytes can hold.
    #[test]
    fn damaged_files_give_an_error_or_what_is_there(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<u32>(), any::<bool>(), any::<u64>(), 1_usize..9), 1..8),
        keep in prop_oneof![3 => Just(u32::MAX), 1 => any::<u32>()],
    ) {
        let mut data = WHOLE[which.index(WHOLE.len())].clone();
        for (at, early, value, bytes) in changes {
            // Half of them near the start, where sizes and offsets are.
            let at = at as usize % if early { data.len().min(600) } else { data.len() };
            let bytes = bytes.min(data.len() - at);
            data[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        if keep != u32::MAX {
            data.truncate(keep as usize % data.len());
        }
        match parse(&data, "damaged") {
            Ok(recording) => {
                let expanded = 2 * data.len() + (1 << 18);
                let is_compressed = data.windows(4).any(|w| w == [0x28, 0xb5, 0x2f, 0xfd]);
                let most = if is_compressed { expanded } else { data.len() / 8 };
                prop_assert!(recording.records.len() <= most);
            }
            Err(error) => prop_assert!(error.cause().is_some_and(|c| !c.is_empty())),
        }
    }
}
