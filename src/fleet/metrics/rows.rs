//! What was measured in an interval, as the exporter takes it.

use crate::window::{Owner, Source};
use smol_str::SmolStr;
use tma::quantity::Missing;

/// Whose a row is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// The host, or a part of it.
    pub owner: Owner,
    /// Kind of core on hybrids: the table's name.
    pub core: Option<SmolStr>,
}

/// A node's share of the slots.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Whose it is.
    pub subject: Subject,
    /// The node's id.
    pub node: SmolStr,
    /// Its level, from 1.
    pub level: u32,
    /// The share, 0 to 1; `None` if only its ends are known.
    pub share: Option<f64>,
    /// Lowest and highest share at 95 %, if known.
    pub interval: Option<(f64, f64)>,
    /// Slots of the subject that the share is of; `None` if not counted, or if the share is of something else.
    pub slots: Option<f64>,
    /// Where it is from.
    pub source: Source,
}

/// A count.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// Whose it is.
    pub subject: Subject,
    /// What was counted.
    pub of: Counted,
    /// How many, in the interval.
    pub count: f64,
    /// Where it is from.
    pub source: Source,
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// Slots.
    Slots,
    /// This event, as its table or the kernel names it.
    Event(SmolStr),
    /// CPU seconds of tasks.
    TaskClock,
    /// CPU seconds in this mode.
    Mode(Mode),
}

/// A value that is no share.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Whose it is.
    pub subject: Subject,
    /// What it is.
    pub of: RatioOf,
    /// Its value.
    pub value: f64,
    /// Where it is from.
    pub source: Source,
}

/// What a value that is no share is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioOf {
    /// Instructions per cycle.
    Ipc,
    /// Frequency in hertz, of cycles that were not halted.
    Frequency,
}

/// What a CPU did, as `/proc/stat` divides its time (proc_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Programs.
    User,
    /// Programs of low priority.
    Nice,
    /// The kernel.
    System,
    /// Nothing.
    Idle,
    /// Nothing, while a task waited for a disk.
    Iowait,
    /// Interrupts.
    Irq,
    /// Deferred work of interrupts.
    Softirq,
    /// Another virtual machine had the CPU.
    Steal,
}

impl Mode {
    /// All, in the order of `/proc/stat`.
    pub const ALL: [Self; 8] = [
        Self::User,
        Self::Nice,
        Self::System,
        Self::Idle,
        Self::Iowait,
        Self::Irq,
        Self::Softirq,
        Self::Steal,
    ];

    /// The label.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Nice => "nice",
            Self::System => "system",
            Self::Idle => "idle",
            Self::Iowait => "iowait",
            Self::Irq => "irq",
            Self::Softirq => "softirq",
            Self::Steal => "steal",
        }
    }
}

/// What has no value, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMeasured {
    /// Whose it would be.
    pub subject: Subject,
    /// The node, event or value.
    pub what: SmolStr,
    /// The reason.
    pub reason: Reason,
}

/// Why something was not measured: few words, as labels have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No core PMU in a virtual machine.
    VirtualMachine,
    /// No core PMU.
    NoPmu,
    /// The kernel refuses it.
    NotPermitted,
    /// It never got a counter.
    NotScheduled,
    /// Processor or kernel do not have it.
    NotSupported,
    /// It is not among what is counted.
    NotAmongCounts,
    /// A division by a count of zero: nothing ran.
    Undefined,
    /// There is no such control group or process now.
    Absent,
    /// The measurement failed; `/healthz` has the cause.
    Failed,
}

impl Reason {
    /// The label.
    pub fn word(self) -> &'static str {
        match self {
            Self::VirtualMachine => "no_pmu_in_virtual_machine",
            Self::NoPmu => "no_pmu",
            Self::NotPermitted => "not_permitted",
            Self::NotScheduled => "never_scheduled",
            Self::NotSupported => "not_supported",
            Self::NotAmongCounts => "not_counted",
            Self::Undefined => "nothing_ran",
            Self::Absent => "absent",
            Self::Failed => "failed",
        }
    }
}

impl From<&Missing> for Reason {
    fn from(missing: &Missing) -> Self {
        match missing {
            Missing::NoPmu { virtual_machine: true } => Self::VirtualMachine,
            Missing::NoPmu { virtual_machine: false } => Self::NoPmu,
            Missing::NotPermitted(_) => Self::NotPermitted,
            Missing::NotCounted(_) => Self::NotScheduled,
            Missing::NotSupported(_) => Self::NotSupported,
            Missing::NotMeasured(_) => Self::NotAmongCounts,
            Missing::Undefined(_) => Self::Undefined,
        }
    }
}

/// What one measurement found in an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// Its length; `None` if nothing was measured in it.
    pub seconds: Option<f64>,
    /// Shares of slots.
    pub shares: Vec<Share>,
    /// Counts.
    pub counts: Vec<Count>,
    /// Other values.
    pub ratios: Vec<Ratio>,
    /// What has no value.
    pub not_measured: Vec<NotMeasured>,
}
