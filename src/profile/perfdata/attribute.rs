//! `struct perf_event_attr` as it stands in a file, bit by bit: linux-perf-data drops the bits that
//! it does not know, and with them the layout of samples of a newer perf.

use crate::recording::Event;
use pmu::records::format::SampleFormat;

/// `PERF_ATTR_SIZE_VER0`: no attribute is shorter.
pub const SMALLEST: usize = 64;
/// `freq`, bit 10 of the flags.
const FREQUENCY: u64 = 1 << 10;
/// `precise_ip`, bits 15 and 16.
const PRECISE_SHIFT: u32 = 15;
/// `sample_id_all`, bit 18.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// A word of the file.
pub fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Half a word.
pub fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// How many bytes the attribute at the start of `bytes` says it has.
pub fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(half(bytes, 4)?).ok().filter(|n| (SMALLEST..=bytes.len()).contains(n))
}

/// The attribute at the start of `bytes`; what an older one lacks is 0. Its name is made up of its
/// numbers: the file has names elsewhere, if at all.
pub fn parse(bytes: &[u8]) -> Option<Event> {
    let bytes = bytes.get(..length(bytes)?)?;
    let at = |place: usize| word(bytes, place).unwrap_or(0);
    let flags = at(40);
    let (kind, config) = (half(bytes, 0)?, at(8));
    Some(Event {
        name: name(kind, config),
        kind,
        config,
        precise: (flags >> PRECISE_SHIFT & 3) as u8,
        format: SampleFormat {
            sample_type: at(24),
            read_format: at(32),
            branch_sample_type: at(72),
            regs_user: at(80),
            regs_intr: at(96),
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
            leave_chains: false,
        },
        ids: Vec::new(),
        period: at(16),
        by_frequency: flags & FREQUENCY != 0,
    })
}

/// An attribute for linux-perf-data: it only has to find ids and times in records, so it gets the
/// bits that place them and nothing that it could refuse.
pub fn plain(format: &SampleFormat) -> [u8; SMALLEST] {
    /// `PERF_TYPE_SOFTWARE`; its config 0 is the CPU clock.
    const SOFTWARE: u8 = 1;
    let mut bytes = [0; SMALLEST];
    bytes[0] = SOFTWARE;
    bytes[4] = SMALLEST as u8;
    bytes[24..32].copy_from_slice(&format.sample_type.to_le_bytes());
    let flags = if format.sample_id_all { SAMPLE_ID_ALL } else { 0 };
    bytes[40..48].copy_from_slice(&flags.to_le_bytes());
    bytes
}

/// perf's names of events (`enum perf_hw_id`, `enum perf_sw_ids`).
fn name(kind: u32, config: u64) -> String {
    const HARDWARE: [&str; 10] = [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ];
    const SOFTWARE: [&str; 12] = [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
        "bpf-output",
        "cgroup-switches",
    ];
    // The upper half of a hardware event's config names the PMU of a hybrid processor.
    let number = usize::try_from(config & 0xffff_ffff).unwrap_or(usize::MAX);
    let known = match kind {
        0 => HARDWARE.get(number),
        1 => SOFTWARE.get(number),
        _ => None,
    };
    match (known, kind) {
        (Some(name), _) => (*name).to_owned(),
        (None, 4) => format!("r{config:x}"),
        (None, _) => format!("type {kind}, config {config:#x}"),
    }
}
