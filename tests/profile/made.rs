//! perf.data files made here, byte by byte, after perf's `tools/perf/util/header.h` and
//! `Documentation/perf.data-file-format.txt`.

/// `PERF_SAMPLE_*`: IP, TID, TIME, ADDR, BRANCH_STACK, DATA_SRC, IDENTIFIER.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 8 | 1 << 11 | 1 << 15 | 1 << 16;
/// Bytes of `perf_event_attr` of Linux 6.1.
const ATTRIBUTE: usize = 128;

/// Words one after the other.
pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A record with its header.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// An attribute of a raw event, `sample_id_all` set.
fn attribute(config: u64) -> Vec<u8> {
    let mut words = [0; ATTRIBUTE / 8];
    words[0] = 4 | (ATTRIBUTE as u64) << 32;
    (words[1], words[2], words[3], words[5]) = (config, 1000, SAMPLE_TYPE, 1 << 18);
    self::words(&words)
}

/// A string of a feature section.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 64 * 64 + 64, 0);
    [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
}

/// A sample at `time` of the event with this id, with one branch.
pub fn sample(id: u64, time: u64) -> Vec<u8> {
    let branch = [1, 0x40_1010, 0x40_1000, 7 << 4 | 2];
    record(
        9,
        2,
        &words(&[&[id, 0x40_1000, 12 << 32 | 11, time, 0xdead][..], &branch, &[5]].concat()),
    )
}

/// The records of a small program: two rounds, the samples of both out of order.
pub fn records() -> Vec<u8> {
    let ids = |time| [12 << 32 | 11, time, 101];
    let comm = [&words(&[12 << 32 | 11]), &b"sort\0\0\0\0"[..], &words(&ids(1))].concat();
    let map = [&words(&[12 << 32 | 11, 0x40_0000, 0x2000, 0]), &b"/bin/sort\0\0\0\0\0\0\0"[..]];
    let map = [&map.concat()[..], &words(&ids(2))].concat();
    let lost = words(&[&[101, 3][..], &ids(40)].concat());
    let round = record(68, 0, &[]);
    [
        record(3, 1 << 13, &comm),
        record(1, 2, &map),
        sample(101, 20),
        sample(102, 10),
        round.clone(),
        sample(102, 40),
        sample(101, 30),
        record(2, 0, &lost),
        round,
    ]
    .concat()
}

/// A file of a machine of this architecture with these records; events 0x1cd and 0x2cd with the
/// ids 101 and 102.
pub fn file(architecture: &str, records: &[u8]) -> Vec<u8> {
    const HEADER: usize = 104;
    let ids = HEADER;
    let attributes = ids + 16;
    let data = attributes + 2 * (ATTRIBUTE + 16);
    let features = [(3, string("host")), (6, string(architecture)), (12, descriptions())];
    let mut file = b"PERFILE2".to_vec();
    let row = ATTRIBUTE as u64 + 16;
    let places =
        [HEADER as u64, row, attributes as u64, 2 * row, data as u64, records.len() as u64];
    file.extend(words(&places));
    file.extend(words(&[0, 0, features.iter().map(|(n, _)| 1 << n).sum(), 0, 0, 0]));
    file.extend(words(&[101, 102]));
    for (index, config) in [0x1cd, 0x2cd].into_iter().enumerate() {
        file.extend(attribute(config));
        file.extend(words(&[(ids + 8 * index) as u64, 8]));
    }
    file.extend(records);
    let mut at = (file.len() + 16 * features.len()) as u64;
    for (_, section) in &features {
        file.extend(words(&[at, section.len() as u64]));
        at += section.len() as u64;
    }
    features.iter().for_each(|(_, section)| file.extend(section));
    file
}

/// The same as a stream.
pub fn stream(records: &[u8]) -> Vec<u8> {
    let event = |config, id| record(64, 0, &[attribute(config), words(&[id])].concat());
    let names = record(80, 0, &[words(&[12]), descriptions()].concat());
    let start = [b"PERFILE2".to_vec(), words(&[16])].concat();
    [start, event(0x1cd, 101), event(0x2cd, 102), names, records.to_vec()].concat()
}

/// The EVENT_DESC section.
fn descriptions() -> Vec<u8> {
    let mut section = words(&[2 | (ATTRIBUTE as u64) << 32]);
    for (config, name, id) in [(0x1cd, "loads:pp", 101), (0x2cd, "stores", 102)] {
        section.extend(attribute(config));
        section.extend(1_u32.to_le_bytes());
        section.extend(string(name));
        section.extend(words(&[id]));
    }
    section
}
