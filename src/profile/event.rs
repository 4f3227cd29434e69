//! A sampled event, as a recording describes it, and what its name says that it counts.

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

/// Kind of event, as far as its name shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Nanoseconds on a processor: `cpu-clock`, `task-clock`.
    Time,
    /// Another event that is named after a clock.
    Clock,
    /// Cycles of a core, or of its reference clock: `cycles`, `cpu-cycles`, `ref-cycles`.
    Cycles,
    /// Another event that is named after cycles: `stalled-cycles-frontend`, `bus-cycles`.
    SomeCycles,
    /// Any other.
    Other,
}

impl EventKind {
    /// Kind of the event that perf calls `name`, with or without modifiers and PMU.
    pub fn of(name: &str) -> Self {
        match plain(name) {
            "cpu-clock" | "task-clock" => Self::Time,
            "cycles" | "cpu-cycles" | "ref-cycles" => Self::Cycles,
            _ if name.contains("clock") => Self::Clock,
            _ if name.contains("cycles") => Self::SomeCycles,
            _ => Self::Other,
        }
    }

    /// Whether it is named after a clock, so that its samples are taken as time.
    pub fn is_clock(self) -> bool {
        matches!(self, Self::Time | Self::Clock)
    }
}

/// An event without its PMU and modifiers: `cycles` of `cpu_core/cycles/u` and `cycles:u`.
fn plain(name: &str) -> &str {
    match name.split_once('/') {
        Some((_, rest)) => rest.split(['/', ',']).next().unwrap_or(rest),
        None => name.split(':').next().unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_whether_time_or_cycles_are_counted() {
        let is = |kind, names: &[&str]| {
            names.iter().for_each(|name| assert_eq!(EventKind::of(name), kind, "{name}"));
        };
        is(EventKind::Time, &["cpu-clock", "task-clock", "cpu-clock:u"]);
        is(EventKind::Clock, &["cpu-clocks", "uncore_imc/clockticks/"]);
        is(
            EventKind::Cycles,
            &["cycles", "cycles:ppu", "cpu_core/cycles/u", "cpu/cycles,period=7/"],
        );
        is(EventKind::Cycles, &["cpu-cycles:P", "ref-cycles"]);
        is(EventKind::SomeCycles, &["stalled-cycles-frontend", "bus-cycles", "cpu_cycles"]);
        is(EventKind::Other, &["instructions", "cpu_clk_unhalted.thread", "branches:u", ""]);
    }
}
