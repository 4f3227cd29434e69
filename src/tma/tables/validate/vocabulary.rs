//! The words that units and domains are made of.

/// Units that info metrics may have; the empty one is a plain number.
pub const UNITS: &[&str] = &[
    "",
    "%",
    "instructions",
    "events",
    "slots",
    "cycles",
    "per 1000 instructions",
    "per 1000 µops",
    "instructions/cycle",
    "cycles/instruction",
    "ops/cycle",
    "GHz",
    "GB/s",
    "MB/s",
    "GFLOP/s",
    "s",
    "ns",
    "W",
];

/// What a value can be a share of, or be: Intel's count domains. AMD's and hand-written tables
/// use `Slots` and `Clocks`.
pub const DOMAINS: &[&str] = &[
    "Slots",
    "Slots_Estimated",
    "Scaled_Slots",
    "Clocks",
    "Clocks_Estimated",
    "Clocks_Calculated",
    "Clocks_Latency",
    "Clocks_Retired",
    "Core_Clocks",
    "Core_Execution",
    "Core_Utilization",
    "Cycles",
    "Stalls",
    "Uops",
    "Count",
    "Fraction",
    "Metric",
    "Inst_Metric",
    "Core_Metric",
    "System_Metric",
    "Seconds",
    "NanoSeconds",
    "GB/sec",
    "MB/sec",
];
