//! Recordings of loads and stores made here, as `perf mem record` of perf 6.1 writes them: with CPUs, latencies and
//! the topology that `perf c2c` asks for.

use crate::support::perf_data::{
    ARCHITECTURE, Event, HOST, PerfData, SAMPLE_ID_ALL, padded, record, string, words,
};
use std::collections::BTreeMap;

/// `PERF_SAMPLE_*`: IP, TID, TIME, ADDR, CPU, PERIOD, WEIGHT, DATA_SRC, IDENTIFIER.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 8 | 1 << 7 | 1 << 8 | 1 << 14 | 1 << 15 | 1 << 16;
/// Feature sections: CPUs, and the nodes of memory.
const CPUS: u32 = 7;
const NODES: u32 = 14;
/// The process.
pub const PROCESS: u64 = 100;
const PERIOD: u64 = 37;
/// The events: name, config, config1.
const EVENTS: [(&str, u64, u64); 2] =
    [("cpu/mem-loads,ldlat=30/P", 0x1cd, 30), ("cpu/mem-stores/P", 0x82d0, 0)];

/// OP, LVL HIT | L1, LOCK no, TLB L1 hit, LVLNUM L1.
const COMMON: u64 = 1 << 24 | (2 | 8) << 26;
pub const LOAD: u64 = 2 | (2 | 8) << 5 | 2 << 19 | COMMON | 1 << 33;
pub const STORE: u64 = 4 | (2 | 8) << 5 | COMMON | 1 << 33;
/// L3 with HITM; remote cache with HITM (REM_CCE1, REMOTE), as arch/x86/events/intel/ds.c has them.
pub const LOCAL_HITM: u64 = 2 | (2 | 0x40) << 5 | 0x10 << 19 | COMMON | 3 << 33;
pub const REMOTE_HITM: u64 = 2 | (2 | 0x400) << 5 | 0x10 << 19 | COMMON | 3 << 33 | 1 << 37;

/// A sampled access.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    pub ip: u64,
    pub thread: u64,
    pub cpu: u64,
    pub address: u64,
    pub latency: u64,
    pub source: u64,
}

impl Sampled {
    /// The sample at a time.
    pub fn record(&self, time: u64) -> Vec<u8> {
        let Self { ip, thread, cpu, address, latency, source } = *self;
        let event = u64::from(source & 4 != 0);
        let ids = thread << 32 | PROCESS;
        let body = [101 + event, ip, ids, time, address, cpu, PERIOD, latency, source];
        record(9, 1 << 14 | 2, &words(&body))
    }
}

/// A mapping of `path` at `start`.
pub fn mapping(start: u64, length: u64, offset: u64, path: &str) -> Vec<u8> {
    let mut body = words(&[PROCESS << 32 | PROCESS, start, length, offset]);
    body.extend(padded(path));
    // The mode bit of data mappings.
    let misc = if offset == u64::MAX { 1 << 13 | 2 } else { 2 };
    body.extend(words(&[PROCESS << 32 | PROCESS, 1, 0, 101]));
    record(1, misc, &body)
}

/// A file with these records.
pub fn file(records: &[u8]) -> Vec<u8> {
    // exclude_kernel, mmap, comm, precise_ip 2, mmap_data.
    let flags = 1 << 5 | 1 << 8 | 1 << 9 | 2 << 15 | 1 << 17 | SAMPLE_ID_ALL;
    let (sample_type, period) = (SAMPLE_TYPE, PERIOD);
    let event = |(id, (name, config, config1))| Event {
        name,
        id,
        config,
        config1,
        period,
        sample_type,
        flags,
        ..Event::default()
    };
    let node = |number: u32, cpus: &str| {
        [&number.to_le_bytes()[..], &words(&[1 << 20, 1 << 19]), &string(cpus)].concat()
    };
    let nodes = [&2_u32.to_le_bytes()[..], &node(0, "0-1"), &node(1, "2-3")].concat();
    let sections = BTreeMap::from([
        (HOST, string("host")),
        (ARCHITECTURE, string("x86_64")),
        (CPUS, words(&[4 << 32 | 4])),
        (NODES, nodes),
    ]);
    PerfData { events: (101..).zip(EVENTS).map(event).collect(), sections }.file(records)
}
