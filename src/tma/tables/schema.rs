//! The shape of a table file, `events/**/NAME.toml`, as serde reads and the importer writes it, with the CPUID
//! signature of a core.
//!
//! docs/reference/tables.md explains every key to a person who writes one by hand.
//!
//! The section `[signature]` has what a core of this kind must show of itself. Family and model are a claim, which
//! a hypervisor makes as it likes; a signature has what it cannot invent. docs/method/identification.md says how
//! they are weighed.

use super::facts::Facts;
use crate::Cache;
use crate::cpuid::{CacheLevel, Feature};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// A whole table file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableFile {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The name users type: `skx`, `adl-e`, `zen4`.
    pub name: String,
    /// Common name of the processors.
    pub title: String,
    /// Further names, such as code names: `Genoa`, `skylakex`.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// CPUID vendor string, or `any` for a table that only --uarch selects.
    pub vendor: String,
    /// `P` or `E` on hybrid processors.
    #[serde(default)]
    pub core: Option<CoreKind>,
    /// Name of the core PMU in `/sys/bus/event_source/devices`: `cpu`, `cpu_core`, `cpu_atom`.
    pub pmu: String,
    /// Where the facts come from: vendor file, version, date.
    pub source: Vec<String>,
    /// Version of Intel's TMA method, where it has one.
    #[serde(default)]
    pub tma: Option<String>,
    /// Event whose count is the core clock of a thread.
    pub clocks: String,
    /// Which variant of the texts in `events/nodes.toml` fits: `e` for E-cores, `paper`.
    #[serde(default)]
    pub texts: Option<String>,
    /// Facts from the kernel or the errata sheets that a user must know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Processors this table is for.
    #[serde(default, rename = "match")]
    pub matches: Vec<MatchRule>,
    /// CPUID signature of such a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Width and depth of the machine.
    pub pipeline: Pipeline,
    /// Counters of the core.
    pub counters: Counters,
    /// Properties of the core that measurements and models assume.
    #[serde(default)]
    pub facts: Facts,
    /// Every event the formulas use, by the name they use (modifiers included).
    pub events: BTreeMap<String, EventSpec>,
    /// The tree, parents before children.
    #[serde(default)]
    pub node: Vec<NodeSpec>,
    /// The "bottlenecks" view.
    #[serde(default)]
    pub bottleneck: Vec<NodeSpec>,
    /// Metrics that are no part of the tree: IPC, GHz, bandwidths.
    #[serde(default)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchRule {
    /// Display family (extended family added).
    pub family: u32,
    /// Display models (extended model included); empty means every model of the family.
    #[serde(default)]
    pub models: Vec<u32>,
    /// Steppings; empty means all.
    #[serde(default)]
    pub steppings: Vec<u32>,
}

/// Shape of the pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Slots a cycle: how many µops it can issue (dispatch, on AMD).
    pub width: u32,
    /// Entries of the reorder buffer (retire queue, on AMD); 0 where no source gives it.
    #[serde(default)]
    pub reorder_buffer: u32,
    /// Source of these figures.
    #[serde(default)]
    pub source: Option<String>,
}

/// Counters of one hardware thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// General counters with SMT off (or absent).
    pub general: u32,
    /// General counters with SMT on.
    pub general_smt: u32,
    /// Fixed counters for single events.
    pub fixed: u32,
    /// Levels of fixed top-down metrics (`perf_metrics`): 0, 1 or 2.
    #[serde(default)]
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

/// Privilege ring an event is restricted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ring {
    /// Ring 3 only.
    User,
    /// Ring 0 only.
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
    #[serde(default)]
    pub pmu: PmuKind,
    /// Event code (12 bits on AMD). As the kernel takes it: fixed counters by their pseudo code.
    #[serde(default)]
    pub code: u32,
    /// Unit mask; bits 8 to 15 are the extended one (config bits 40 to 47, Lion Cove and later).
    #[serde(default)]
    pub umask: u32,
    /// Counter mask: count cycles with at least this many (`inv`: fewer).
    #[serde(default)]
    pub cmask: u32,
    /// Inverts the comparison of `cmask`.
    #[serde(default)]
    pub inv: bool,
    /// Counts rising edges.
    #[serde(default)]
    pub edge: bool,
    /// Counts both threads of the core (before Ice Lake).
    #[serde(default)]
    pub any: bool,
    /// Compares `cmask` for equality (Lion Cove and later).
    #[serde(default)]
    pub eq: bool,
    /// Extra register and its value.
    #[serde(default)]
    pub extra: Option<ExtraRegister>,
    /// Value of the extra register.
    #[serde(default)]
    pub value: Option<u64>,
    /// General counters that can count it; absent means every one.
    #[serde(default)]
    pub counters: Option<Vec<u8>>,
    /// Fixed counter that counts it.
    #[serde(default)]
    pub fixed: Option<u8>,
    /// With `fixed`: no general counter can count it (slots, ref-cycles).
    #[serde(default)]
    pub fixed_only: bool,
    /// Index of the fixed top-down metric (0 retiring … 7 memory bound): config 0x8000 + 0x100 n.
    #[serde(default)]
    pub metric: Option<u8>,
    /// Restricts counting to one ring.
    #[serde(default)]
    pub ring: Option<Ring>,
    /// To be summed over the threads of a core.
    #[serde(default)]
    pub percore: bool,
    /// The event supports precise sampling.
    #[serde(default)]
    pub precise: bool,
    /// Sampling period the vendor suggests.
    #[serde(default)]
    pub period: Option<u64>,
    /// Vendor erratum or kernel requirement.
    #[serde(default)]
    pub errata: Option<String>,
    /// For `latency`: the vendor's mean, used where it is not measured (an estimate). -1 where
    /// there is no mean and the formula tests for it: `… if LATENCY >= 0 else …`.
    #[serde(default)]
    pub default: Option<f64>,
}

/// A node of the tree, a bottleneck or an info metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// The vendor's own name.
    pub id: String,
    /// Label shown to users; absent: `id` with blanks for underscores.
    #[serde(default)]
    pub label: Option<String>,
    /// Parent in the tree; absent for level 1 and for infos.
    #[serde(default)]
    pub parent: Option<String>,
    /// Level in the tree, from 1; 0 for infos and bottlenecks.
    #[serde(default)]
    pub level: u32,
    /// Value as a ratio (0.15, not 15 %), except where `unit` says otherwise.
    pub formula: String,
    /// Domain of the share: `Slots`, `Clocks`, `Core_Clocks`, … (the vendor's CountDomain).
    #[serde(default)]
    pub domain: Option<SmolStr>,
    /// Unit of a bottleneck or info metric: absent for ratios (0.15 is 15 %), empty for plain
    /// numbers (µops per cycle).
    #[serde(default)]
    pub unit: Option<SmolStr>,
    /// The vendor's threshold expression over this and other nodes.
    #[serde(default)]
    pub over: Option<String>,
    /// Events to sample to find where it happens.
    #[serde(default)]
    pub locate: Vec<String>,
    /// Vendor tags (`MemoryBW`, `BvML`), for `--nodes`.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Issue tags (`BW`, `FB`): nodes with a tag in common point at one another.
    #[serde(default)]
    pub issues: Vec<String>,
    /// Why the value is an estimate, where it is one.
    #[serde(default)]
    pub estimate: Option<SmolStr>,
}

/// The text of one node or metric, in `events/nodes.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeText {
    /// Meaning of the value: a share of what, or a count of what.
    #[serde(default)]
    pub meaning: String,
    /// Usual causes of a large value; only nodes have them.
    #[serde(default)]
    pub causes: Option<String>,
    /// Next step: where to look or what to change; only nodes have it.
    #[serde(default)]
    pub next: Option<String>,
    /// This entry reads as that one (vendors rename nodes).
    #[serde(default)]
    pub same: Option<String>,
}

/// CPUID signature of a core. Absent parts are not weighed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Features that every such core has, unless they are hidden.
    #[serde(default)]
    pub has: Vec<Feature>,
    /// Features that no such core has.
    #[serde(default)]
    pub never: Vec<Feature>,
    /// Shapes of its first-level data cache.
    #[serde(default)]
    pub l1_data: Vec<Cache>,
    /// Shapes of its first-level instruction cache.
    #[serde(default)]
    pub l1_code: Vec<Cache>,
    /// Shapes of its second-level cache.
    #[serde(default)]
    pub l2: Vec<Cache>,
    /// The highest basic leaf of CPUID.
    #[serde(default)]
    pub highest_leaf: Option<u32>,
    /// Kind of core in leaf 1A, where it says one: 0x20 for Atom, 0x40 for Core.
    #[serde(default)]
    pub core_type: Option<u32>,
    /// Native model in leaf 1A.
    #[serde(default)]
    pub native_model: Option<u32>,
    /// Sources of all that.
    pub source: Vec<String>,
}

impl Signature {
    /// The shapes that a cache may have; empty where they are not stated.
    pub fn shapes(&self, level: CacheLevel) -> &[Cache] {
        match level {
            CacheLevel::L1Data => &self.l1_data,
            CacheLevel::L1Code => &self.l1_code,
            CacheLevel::L2 => &self.l2,
        }
    }
}
