//! Reads `struct perf_event_attr` as a file has it (include/uapi/linux/perf_event.h), bit by bit: fields of newer
//! kernels change the layout of samples, so none is dropped. Reads feature sections: the host, kernel, command
//! line, event names and build-ids of a recording.
//!
//! Layouts: perf's util/header.c and Documentation/perf.data-file-format.txt.

use crate::event::Event;
use pmu::records::format::{SampleFormat, misc};

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
pub fn from_attribute(bytes: &[u8]) -> Option<Event> {
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

/// Numbers of the features: `HEADER_*` of perf's util/header.h.
pub mod number {
    /// Build-ids of the files with samples.
    pub const BUILD_ID: u64 = 2;
    /// Host name.
    pub const HOSTNAME: u64 = 3;
    /// Kernel release.
    pub const OSRELEASE: u64 = 4;
    /// `uname -m`.
    pub const ARCH: u64 = 6;
    /// Processor name.
    pub const CPUDESC: u64 = 8;
    /// Vendor, family, model and stepping.
    pub const CPUID: u64 = 9;
    /// Command line of perf.
    pub const CMDLINE: u64 = 11;
    /// Events with names and ids.
    pub const EVENT_DESC: u64 = 12;
    /// `perf stat record` wrote the file: counts, no samples.
    pub const STAT: u64 = 19;
    /// The file is one of a folder (`perf record --threads`).
    pub const DIR_FORMAT: u64 = 24;
}

/// The features of a file that are used.
#[derive(Debug, Default)]
pub struct Features {
    /// Host name.
    pub host: Option<String>,
    /// Kernel release (`uname -r`).
    pub kernel: Option<String>,
    /// Architecture (`uname -m`).
    pub architecture: Option<String>,
    /// Processor name.
    pub processor: Option<String>,
    /// Vendor, family, model and stepping: `GenuineIntel,6,140,1`.
    pub cpuid: Option<String>,
    /// Command line of perf.
    pub command: Option<Vec<String>>,
    /// Paths and build-ids.
    pub build_ids: Vec<(String, Vec<u8>)>,
    /// Events with names and ids.
    pub events: Vec<Event>,
}

impl Features {
    /// Whether a feature is used.
    pub fn uses(&self, feature: u64) -> bool {
        use number::{ARCH, BUILD_ID, CMDLINE, CPUDESC, CPUID, EVENT_DESC, HOSTNAME, OSRELEASE};
        [BUILD_ID, HOSTNAME, OSRELEASE, ARCH, CPUDESC, CPUID, CMDLINE, EVENT_DESC]
            .contains(&feature)
    }

    /// Reads the section of a feature; one that is not used or malformed adds nothing.
    pub fn take(&mut self, feature: u64, section: &[u8]) {
        let mut rest = section;
        match feature {
            number::HOSTNAME => self.host = string(&mut rest),
            number::OSRELEASE => self.kernel = string(&mut rest),
            number::ARCH => self.architecture = string(&mut rest),
            number::CPUDESC => self.processor = string(&mut rest),
            number::CPUID => self.cpuid = string(&mut rest),
            number::CMDLINE => self.command = strings(rest),
            number::EVENT_DESC => self.events = events(rest),
            number::BUILD_ID => self.take_build_ids(rest),
            _ => {}
        }
    }

    /// The section is a sequence of build-id records.
    fn take_build_ids(&mut self, mut rest: &[u8]) {
        while let Some(header) = word(rest, 0) {
            let size = (header >> 48) as usize;
            let Some(record) = rest.get(..size).filter(|_| size > 8) else { return };
            self.take_build_id((header >> 32) as u16, &record[8..]);
            rest = &rest[size..];
        }
    }

    /// Reads the body of a build-id record: process, 24 bytes with the id, path.
    pub fn take_build_id(&mut self, flags: u16, body: &[u8]) {
        let Some((id, path)) = body.get(4..).and_then(|b| b.split_at_checked(24)) else { return };
        let length = if flags & misc::EXTENDED != 0 {
            usize::from(id[20]).min(20)
        } else {
            // Older files lack the length: 4-byte groups of zeros at the end are padding.
            20 - 4 * id[..20].rchunks(4).take_while(|group| **group == [0; 4]).count()
        };
        self.build_ids.push((until_zero(path), id[..length].to_vec()));
    }

    /// Gives events the names (and ids, if they have none) of EVENT_DESC.
    pub fn name(&self, events: &mut [Event]) {
        let same_order = events.len() == self.events.len();
        for (index, event) in events.iter_mut().enumerate() {
            let by_id = self
                .events
                .iter()
                .find(|known| known.ids.first().is_some_and(|id| event.ids.first() == Some(id)));
            let by_order = self.events.get(index).filter(|_| same_order);
            let Some(known) = by_id.or(by_order) else { continue };
            if !known.name.is_empty() {
                event.name.clone_from(&known.name);
            }
            if event.ids.is_empty() {
                event.ids.clone_from(&known.ids);
            }
        }
    }
}

/// The bytes up to the first zero, as text.
pub fn until_zero(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or_default());
    tma::text::name(&text).into_owned()
}

/// `struct perf_header_string`: a length, then that many bytes, padded with zeros.
fn string(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(half(rest, 0)?).ok()?;
    let (bytes, after) = rest[4..].split_at_checked(length)?;
    *rest = after;
    Some(until_zero(bytes))
}

fn strings(mut rest: &[u8]) -> Option<Vec<String>> {
    let count = half(rest, 0)?;
    rest = &rest[4..];
    (0..count).map(|_| string(&mut rest)).collect()
}

/// EVENT_DESC: number of events, size of an attribute; for each event the attribute, the number of
/// ids, its name, its ids.
fn events(section: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let (Some(count), Some(size)) = (half(section, 0), half(section, 4)) else { return events };
    let mut rest = &section[8..];
    for _ in 0..count {
        match event(&mut rest, size as usize) {
            Some(event) => events.push(event),
            None => break,
        }
    }
    events
}

fn event(rest: &mut &[u8], size: usize) -> Option<Event> {
    let (attribute, after) = rest.split_at_checked(size)?;
    let mut event = from_attribute(attribute)?;
    let ids = usize::try_from(half(after, 0)?).ok()?;
    *rest = &after[4..];
    event.name = string(rest)?;
    let (bytes, after) = rest.split_at_checked(ids.checked_mul(8)?)?;
    event.ids = bytes.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
    *rest = after;
    Some(event)
}
