//! The shape of a table file, `events/**/NAME.toml`, as serde reads and the importer writes it.
//!
//! docs/tables.md explains every key to a person who writes one by hand.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

fn is_false(b: &bool) -> bool {
    !b
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A whole table file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableFile {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The name users type: `skx`, `adl-e`, `zen4`.
    pub name: String,
    /// What people call the processors.
    pub title: String,
    /// CPUID vendor string, or `any` for a table that matches no processor by itself.
    pub vendor: String,
    /// `P` or `E` on hybrid processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<CoreKind>,
    /// Name of the core PMU in `/sys/bus/event_source/devices`: `cpu`, `cpu_core`, `cpu_atom`.
    pub pmu: String,
    /// Where the facts come from: vendor file, version, date.
    pub source: Vec<String>,
    /// Version of Intel's TMA method, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tma: Option<String>,
    /// Event whose count is the core clock of a thread.
    pub clocks: String,
    /// Which variant of the texts in `events/nodes.toml` fits: `e` for E-cores, `paper`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<String>,
    /// What the kernel or the errata sheets say that a user must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Processors this table is for.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<MatchRule>,
    /// Width and depth of the machine.
    pub pipeline: Pipeline,
    /// What can count.
    pub counters: Counters,
    /// Every event the formulas use, by the name they use (modifiers included).
    pub events: BTreeMap<String, EventSpec>,
    /// The tree, parents before children.
    #[serde(default)]
    pub node: Vec<NodeSpec>,
    /// The "bottlenecks" view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bottleneck: Vec<NodeSpec>,
    /// Metrics that are no part of the tree: IPC, GHz, bandwidths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub info: Vec<NodeSpec>,
}

/// Kind of core on a hybrid processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoreKind {
    /// Performance core (`cpu_core`).
    P,
    /// Efficiency core (`cpu_atom`).
    E,
}

/// One processor family and its models.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchRule {
    /// Display family (extended family added).
    pub family: u32,
    /// Display models (extended model included); empty means every model of the family.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<u32>,
    /// Steppings; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steppings: Vec<u32>,
}

/// Shape of the pipeline.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Slots a cycle: how many µops it can issue (dispatch, on AMD).
    pub width: u32,
    /// Entries of the reorder buffer (retire queue, on AMD); 0 where no source gives it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reorder_buffer: u32,
}

/// Counters of one hardware thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// General counters with SMT off (or absent).
    pub general: u32,
    /// General counters with SMT on.
    pub general_smt: u32,
    /// Fixed counters for single events.
    pub fixed: u32,
    /// Levels of fixed top-down metrics (`perf_metrics`): 0, 1 or 2.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub topdown_levels: u32,
}

/// Which PMU counts an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PmuKind {
    /// The table's core PMU.
    #[default]
    Core,
    /// The time stamp counter: computed from the run's duration, or `msr/tsc/`.
    Tsc,
    /// RAPL energy (`power/energy-pkg/`, `power/energy-ram/`).
    Power,
    /// Outside the core: imported counts only.
    Uncore,
    /// A latency, not a count: the mean cycles at retirement that PEBS reports.
    Latency,
    /// No hardware at all (the paper's table): imported counts only.
    Abstract,
}

impl PmuKind {
    fn is_core(&self) -> bool {
        *self == PmuKind::Core
    }
}

/// Privilege ring an event is restricted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ring {
    /// Ring 3 alone.
    User,
    /// Ring 0 alone.
    Kernel,
}

/// The scarce extra register an event needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtraRegister {
    /// Off-core response: `offcore_rsp=`; two of them exist.
    OffcoreRsp,
    /// Front-end retired: `frontend=`; one exists.
    Frontend,
    /// Load latency threshold: `ldlat=`; one exists.
    Ldlat,
    /// Snoop response of E-cores: `snoop_rsp=`; one exists.
    SnoopRsp,
}

/// How one event is programmed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// Which PMU counts it.
    #[serde(default, skip_serializing_if = "PmuKind::is_core")]
    pub pmu: PmuKind,
    /// Event code (12 bits on AMD). As the kernel takes it: fixed counters by their pseudo code.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub code: u32,
    /// Unit mask; bits 8 to 15 are the extended one (config bits 40 to 47, Lion Cove and later).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub umask: u32,
    /// Counter mask: count cycles with at least this many (`inv`: fewer).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cmask: u32,
    /// Inverts the comparison of `cmask`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inv: bool,
    /// Counts rising edges.
    #[serde(default, skip_serializing_if = "is_false")]
    pub edge: bool,
    /// Counts both threads of the core (before Ice Lake).
    #[serde(default, skip_serializing_if = "is_false")]
    pub any: bool,
    /// Compares `cmask` for equality (Lion Cove and later).
    #[serde(default, skip_serializing_if = "is_false")]
    pub eq: bool,
    /// Extra register and its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<ExtraRegister>,
    /// Value of the extra register.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// General counters that can count it; absent means every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Vec<u8>>,
    /// Fixed counter that counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<u8>,
    /// With `fixed`: no general counter can count it (slots, ref-cycles).
    #[serde(default, skip_serializing_if = "is_false")]
    pub fixed_only: bool,
    /// Index of the fixed top-down metric (0 retiring … 7 memory bound): config 0x8000 + 0x100 n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<u8>,
    /// Restricts counting to one ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<Ring>,
    /// To be summed over the threads of a core.
    #[serde(default, skip_serializing_if = "is_false")]
    pub percore: bool,
    /// The event supports precise sampling.
    #[serde(default, skip_serializing_if = "is_false")]
    pub precise: bool,
    /// Sampling period the vendor suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// Vendor erratum or kernel requirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errata: Option<String>,
    /// For `latency`: the vendor's mean, used where it is not measured (an estimate). -1 where
    /// there is no mean and the formula tests for it: `… if LATENCY >= 0 else …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<f64>,
}

/// A node of the tree, a bottleneck or an info metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// The vendor's own name.
    pub id: String,
    /// What we show; absent: `id` with blanks for underscores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Parent in the tree; absent for level 1 and for infos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Level in the tree, from 1; 0 for infos and bottlenecks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// Value as a ratio (0.15, not 15 %), except where `unit` says otherwise.
    pub formula: String,
    /// What it is a share of: `Slots`, `Clocks`, `Core_Clocks`, … (the vendor's CountDomain).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Unit of a bottleneck or info metric: absent for ratios (0.15 is 15 %), empty for plain
    /// numbers (µops per cycle).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The vendor's threshold expression over this and other nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Events to sample to find where it happens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locate: Vec<String>,
    /// Vendor tags (`MemoryBW`, `BvML`), for `--nodes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Issue tags (`BW`, `FB`): nodes with a tag in common point at one another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<String>,
    /// Why the value is an estimate, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<String>,
}
