//! The metric families: name, unit, type and help of each. No other file has a name.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// A metric family, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// The program.
    Build,
    /// The processor.
    Processor,
    /// Slots.
    Slots,
    /// Slots by node.
    NodeSlots,
    /// Share of a node.
    Share,
    /// Its lowest value at 95 %.
    ShareLow,
    /// Its highest value at 95 %.
    ShareHigh,
    /// Instructions per cycle.
    Ipc,
    /// Frequency.
    Frequency,
    /// CPU seconds by mode.
    Cpu,
    /// CPU seconds of tasks.
    TaskClock,
    /// Events.
    Events,
    /// What has no value.
    NotMeasured,
    /// Length of an interval, as asked for.
    Interval,
    /// Measured intervals.
    Intervals,
    /// Intervals in which a measurement failed.
    Failures,
    /// Series left out.
    Dropped,
    /// Own CPU time.
    OwnCpu,
    /// Own memory.
    OwnMemory,
}

impl Family {
    /// All.
    pub const ALL: [Self; 19] = [
        Self::Build,
        Self::Processor,
        Self::Slots,
        Self::NodeSlots,
        Self::Share,
        Self::ShareLow,
        Self::ShareHigh,
        Self::Ipc,
        Self::Frequency,
        Self::Cpu,
        Self::TaskClock,
        Self::Events,
        Self::NotMeasured,
        Self::Interval,
        Self::Intervals,
        Self::Failures,
        Self::Dropped,
        Self::OwnCpu,
        Self::OwnMemory,
    ];

    /// The name without the unit, and what `# HELP` says.
    pub fn name_and_help(self) -> (&'static str, &'static str) {
        match self {
            Self::Build => ("tdtool_build", "The program."),
            Self::Processor => ("tdtool_processor", "Processor, kernel and event table."),
            Self::Slots => ("tdtool_slots", "Issue slots."),
            Self::NodeSlots => ("tdtool_node_slots", "Issue slots of a node of the tree."),
            Self::Share => ("tdtool_node_share", "A node's share of the slots, last interval."),
            Self::ShareLow => ("tdtool_node_share_low", "Lowest share at 95 %."),
            Self::ShareHigh => ("tdtool_node_share_high", "Highest share at 95 %."),
            Self::Ipc => ("tdtool_ipc", "Instructions per cycle, last interval."),
            Self::Frequency => ("tdtool_frequency", "Frequency while not halted, last interval."),
            Self::Cpu => ("tdtool_cpu", "CPU time by mode; idle and iowait are not busy."),
            Self::TaskClock => ("tdtool_task_clock", "CPU time of tasks."),
            Self::Events => ("tdtool_events", "Events of the kernel and of the core PMU."),
            Self::NotMeasured => ("tdtool_not_measured", "1 for what has no value, and why."),
            Self::Interval => ("tdtool_interval", "Length of an interval."),
            Self::Intervals => ("tdtool_intervals", "Intervals of the host that were measured."),
            Self::Failures => ("tdtool_failures", "Intervals in which a measurement failed."),
            Self::Dropped => ("tdtool_series_dropped", "Values left out by --max-series."),
            Self::OwnCpu => ("process_cpu", "CPU time of tdtool itself."),
            Self::OwnMemory => ("process_resident_memory", "Memory of tdtool itself."),
        }
    }

    /// Its unit, which ends the name.
    pub fn unit(self) -> Option<Unit> {
        match self {
            Self::Cpu | Self::TaskClock | Self::Interval | Self::OwnCpu => Some(Unit::Seconds),
            Self::OwnMemory => Some(Unit::Bytes),
            Self::Frequency => Some(Unit::Other("hertz".to_owned())),
            _ => None,
        }
    }

    /// Its type.
    pub fn kind(self) -> MetricType {
        match self {
            Self::Build | Self::Processor => MetricType::Info,
            Self::Slots
            | Self::NodeSlots
            | Self::Cpu
            | Self::TaskClock
            | Self::Events
            | Self::Intervals
            | Self::Failures
            | Self::Dropped
            | Self::OwnCpu => MetricType::Counter,
            _ => MetricType::Gauge,
        }
    }

    /// The name of its samples, with unit and suffix.
    pub fn sample(self) -> String {
        let (name, _) = self.name_and_help();
        let unit = self.unit().map(|unit| format!("_{}", unit.as_str())).unwrap_or_default();
        let suffix = match self.kind() {
            MetricType::Counter => "_total",
            MetricType::Info => "_info",
            _ => "",
        };
        format!("{name}{unit}{suffix}")
    }
}
