//! Recordings of a small program with branch stacks and addresses.

use crate::support::perf_data::{ARCHITECTURE, Event, HOST, PerfData, SAMPLE_ID_ALL, string};
use std::collections::BTreeMap;

pub use crate::support::perf_data::{record, words};

/// `PERF_SAMPLE_*`: IP, TID, TIME, ADDR, BRANCH_STACK, DATA_SRC, IDENTIFIER.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 8 | 1 << 11 | 1 << 15 | 1 << 16;

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

/// Events 0x1cd and 0x2cd with the ids 101 and 102, of a machine of this architecture.
fn recording(architecture: &str) -> PerfData<'static> {
    let event = |name, id, config| Event {
        name,
        id,
        config,
        period: 1000,
        sample_type: SAMPLE_TYPE,
        flags: SAMPLE_ID_ALL,
        ..Event::default()
    };
    PerfData {
        events: vec![event("loads:pp", 101, 0x1cd), event("stores", 102, 0x2cd)],
        sections: BTreeMap::from([(HOST, string("host")), (ARCHITECTURE, string(architecture))]),
    }
}

/// A file of a machine of this architecture with these records.
pub fn file(architecture: &str, records: &[u8]) -> Vec<u8> {
    recording(architecture).file(records)
}

/// The same as a stream.
pub fn stream(records: &[u8]) -> Vec<u8> {
    recording("x86_64").stream(records)
}
