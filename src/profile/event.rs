//! A sampled event, as a recording describes it.

use pmu::records::format::SampleFormat;

/// An event that was sampled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// perf's name for it, modifiers included: `cycles:ppu`.
    pub name: String,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`: the least latency of load samples (`ldlat`), among others.
    pub config1: u64,
    /// `precise_ip`, from 0 (any skid) to 3 (none).
    pub precise: u8,
    /// Layout of its samples.
    pub format: SampleFormat,
    /// Its ids in samples and READ fields.
    pub ids: Vec<u64>,
    /// Sampling period in events, or samples per second if `by_frequency`.
    pub period: u64,
    /// Whether `period` is a frequency.
    pub by_frequency: bool,
    /// Whether times are those of `CLOCK_MONOTONIC`.
    pub monotonic: bool,
}
