//! A whole recording, from whatever it was read.

use super::record::Record;
use pmu::records::format::SampleFormat;

/// An event that was sampled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// As perf names it, modifiers included.
    pub name: String,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `precise_ip`: 0 has skid, 3 has none.
    pub precise: u8,
    /// How samples are laid out.
    pub format: SampleFormat,
    /// Ids in samples and READ fields.
    pub ids: Vec<u64>,
    /// Events between samples, or samples a second if `by_frequency`.
    pub period: u64,
    /// See `period`.
    pub by_frequency: bool,
}

/// A whole recording.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Where it comes from, for people.
    pub source: String,
    /// Events sampled.
    pub events: Vec<Event>,
    /// Records in order of time, as far as they have any.
    pub records: Vec<Record>,
    /// Build-ids of files, by path, from the file's own list.
    pub build_ids: Vec<(String, Vec<u8>)>,
    /// `uname -m` of the machine, where it is known.
    pub architecture: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// The boot that it was made in, by the kernel's own number for it.
    pub boot: Option<String>,
    /// Processor.
    pub processor: Option<String>,
    /// Host.
    pub host: Option<String>,
    /// Command line that was recorded.
    pub command: Option<Vec<String>>,
    /// Records lost.
    pub lost: u64,
    /// What a reader must know: cut off, records not understood (with how many), ….
    pub notes: Vec<String>,
}
