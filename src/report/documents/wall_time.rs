//! The wall time of a measured program by what it went to: its own code, the kernel, waiting.

use serde::{Deserialize, Serialize};
use tma::Address;

/// What wall time goes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeKind {
    /// The program's own code, and that of its libraries.
    #[default]
    OwnCode,
    /// The kernel, entered by page faults.
    PageFaults,
    /// The kernel, entered by system calls, with their instruction.
    SystemCalls,
    /// The kernel, entered by interrupts or not known how.
    Kernel,
    /// None of its threads was ready to run.
    Waiting,
    /// It was ready to run, but others had the processors.
    NoProcessor,
}

impl TimeKind {
    /// As shown.
    pub fn label(self) -> &'static str {
        match self {
            Self::OwnCode => "own code",
            Self::PageFaults => "page faults",
            Self::SystemCalls => "system calls",
            Self::Kernel => "kernel",
            Self::Waiting => "waiting",
            Self::NoProcessor => "no processor",
        }
    }
}

impl TimeRow {
    /// As shown: time that is not known to be spent waiting is only known not to be running.
    pub fn label(&self) -> &'static str {
        match self.kind {
            TimeKind::Waiting if self.low < self.share => "not running",
            kind => kind.label(),
        }
    }
}

/// How a share of the wall time is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeSource {
    /// By the kernel's clocks.
    #[default]
    Counted,
    /// By samples of the processor time.
    Sampled,
    /// The rest.
    Residual,
}

shown_as_written!(TimeSource);

/// A part of the wall time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeRow {
    /// What it went to.
    pub kind: TimeKind,
    /// Share of the wall time, 0 to 1.
    pub share: f64,
    /// The least that it may be.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// How it is known.
    pub source: TimeSource,
    /// User code that entered the kernel, that with the largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<EntryRow>,
    /// Figures on it, and advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// User code that entered the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryRow {
    /// Its function.
    pub name: String,
    /// Path of its module.
    pub module: String,
    /// The address with most of its samples: the instruction that faulted, or the one after a system call's.
    pub address: Address,
    /// Its source line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<(String, u32)>,
    /// Share of the wall time.
    pub share: f64,
    /// How often a run entered there, if `--estimate` counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<f64>,
}
