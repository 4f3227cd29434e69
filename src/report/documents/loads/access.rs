//! Sampled loads and stores.

use super::levels::LevelsRow;
use loads::class::Kind;
use serde::{Deserialize, Serialize};
use tma::Address;

/// A sampled load or store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Event.
    pub event: usize,
    /// Its module; empty outside all known mappings.
    pub module: String,
    /// Its address.
    pub address: Address,
    /// Share of the event's loads or stores, by `shares` of the event.
    pub share: f64,
    /// Samples.
    pub samples: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
    /// The median.
    pub latency_p50: Option<u32>,
    /// 90 % are not longer.
    pub latency_p90: Option<u32>,
    /// 99 % are not longer.
    pub latency_p99: Option<u32>,
    /// Its function, if known.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// The instruction, in Intel syntax.
    pub instruction: Option<String>,
    /// Its basic block.
    pub block: Option<BlockOf>,
    /// The loops around it, the innermost first.
    pub loops: Vec<LoopOf>,
    /// How its addresses are made in the innermost loop, from the code; absent outside loops.
    pub class: Option<Kind>,
    /// Pattern in words, with strides and other loads.
    pub pattern: Option<String>,
    /// Instructions of the innermost loop that compute its address.
    pub slice: Option<Vec<Address>>,
    /// Executions in the whole run, estimated from a recording of branches.
    pub executions: Option<f64>,
    /// Samples with a known translation that walked the page tables.
    pub tlb_walks: Option<u64>,
    /// Samples that hit the second TLB, where the hardware says so.
    pub tlb_second: Option<u64>,
    /// Locked (atomic) accesses.
    pub locked: u64,
    /// Lines that another core had, unmodified.
    pub snoop_hits: u64,
    /// Lines that another core had, modified.
    pub snoop_modified: u64,
    /// Accessed variables, the most sampled first.
    pub variables: Vec<VariableOf>,
    /// Its operand in the source (`node->next`), by DWARF.
    #[serde(default)]
    pub field: Option<String>,
    /// The structure that has it: `struct node`.
    #[serde(default, rename = "type")]
    pub of: Option<String>,
    /// Its path in that structure.
    #[serde(default)]
    pub member: Option<String>,
    /// Its offset in that structure.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Why `field` is not known.
    #[serde(default)]
    pub field_unknown: Option<String>,
    /// Whether that is because its code has no debug information.
    #[serde(skip)]
    pub without_dwarf: bool,
}

/// A basic block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockOf {
    /// First address.
    pub start: Address,
    /// Address after its last instruction.
    pub end: Address,
}

/// A loop around a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopOf {
    /// First address of its first block.
    pub head: Address,
    /// Mean trips, from a recording of branches.
    pub trips: Option<f64>,
    /// Their mean is at least this, as few ends are recorded.
    pub trips_at_least: Option<u64>,
    /// Class of the load's addresses from one iteration of this loop to the next.
    pub class: Option<Kind>,
    /// Pattern in words.
    pub pattern: Option<String>,
}

/// A variable that a load accesses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableOf {
    /// Its name with the member (`table.buckets[].next`), that of its section or mapping, `heap`, `stack`, or
    /// `unknown`.
    pub name: String,
    /// Samples.
    pub samples: u64,
}
