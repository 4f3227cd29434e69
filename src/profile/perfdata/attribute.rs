//! `struct perf_event_attr` as a file has it (include/uapi/linux/perf_event.h), bit by bit: fields of
//! newer kernels change the layout of samples, so none is dropped.

use crate::event::Event;
use pmu::records::format::SampleFormat;

/// `PERF_ATTR_SIZE_VER0`: no attribute is shorter.
pub const SMALLEST: usize = 64;
/// `freq`, bit 10 of the flags.
const FREQUENCY: u64 = 1 << 10;
/// `precise_ip`, bits 15 and 16.
const PRECISE_SHIFT: u32 = 15;
/// `sample_id_all`, bit 18.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// `use_clockid`, bit 25, and the clock of `perf record -k mono` (linux/time.h).
const USE_CLOCKID: u64 = 1 << 25;
const CLOCK_MONOTONIC: u32 = 1;

/// The 64-bit word at offset `at`; `None` if `bytes` end before it does.
pub fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The 32-bit word at offset `at`; `None` if `bytes` end before it does.
pub fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Size in bytes of the attribute at the start of `bytes`, as it claims; `None` if that cannot be.
pub fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(half(bytes, 4)?).ok().filter(|n| (SMALLEST..=bytes.len()).contains(n))
}

/// Parses the attribute at the start of `bytes`; fields that an older one lacks are 0. The event is
/// named after its type and config: names, if any, are elsewhere in the file.
pub fn parse(bytes: &[u8]) -> Option<Event> {
    let bytes = bytes.get(..length(bytes)?)?;
    let at = |place: usize| word(bytes, place).unwrap_or(0);
    let flags = at(40);
    let (kind, config) = (half(bytes, 0)?, at(8));
    Some(Event {
        name: name(kind, config),
        kind,
        config,
        config1: at(56),
        precise: (flags >> PRECISE_SHIFT & 3) as u8,
        format: SampleFormat {
            sample_type: at(24),
            read_format: at(32),
            branch_sample_type: at(72),
            regs_user: at(80),
            stack_user: at(88) as u32,
            regs_intr: at(96),
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
            leave_chains: false,
        },
        ids: Vec::new(),
        period: at(16),
        by_frequency: flags & FREQUENCY != 0,
        monotonic: flags & USE_CLOCKID != 0 && half(bytes, 92) == Some(CLOCK_MONOTONIC),
    })
}

/// perf's name for an event (`enum perf_hw_id`, `enum perf_sw_ids`).
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
