//! Sampled loads and stores: the levels that served them; the variables, mappings and members that they access;
//! cache lines that several threads access.

use loads::class::Kind;
use loads::recorded::Sharing;
use serde::{Deserialize, Serialize};
use tma::Address;

/// Samples by what served the access; those without a level are in none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelsRow {
    /// A line that was on its way (line fill buffer): a late hit.
    pub lfb: u64,
    /// L1 cache.
    pub l1: u64,
    /// L2 cache.
    pub l2: u64,
    /// L3 cache.
    pub l3: u64,
    /// Memory of the own node.
    pub ram: u64,
    /// Memory of another node.
    pub remote_ram: u64,
    /// A cache of another core complex or node.
    pub remote_cache: u64,
    /// Something else, or not known to the hardware.
    pub other: u64,
}

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

impl LoadRow {
    /// Its operand in the source, by DWARF, with the structure that has it; or why that is not known, where its code
    /// has debug information.
    pub fn operand(&self) -> Option<String> {
        match (&self.field, &self.field_unknown) {
            (Some(field), _) => {
                let of = self.of.as_ref().map_or(String::new(), |of| format!(" ({of})"));
                Some(format!("operand {field}{of}"))
            }
            (None, Some(why)) if self.instruction.is_some() && !self.without_dwarf => {
                Some(format!("operand not known: {why}"))
            }
            _ => None,
        }
    }

    /// The variables that its addresses are of, or the heap or stack, with their samples if not all are of one; what
    /// its operand names is left out.
    pub fn data(&self) -> Option<String> {
        let shown = |name: &String| name != "unknown" && self.field.as_ref() != Some(name);
        let all = self.variables.iter().filter(|one| shown(&one.name));
        let text: Vec<String> = all
            .map(|one| match one.samples == self.samples {
                true => one.name.clone(),
                false => format!("{} ({})", one.name, one.samples),
            })
            .collect();
        (!text.is_empty()).then(|| text.join(", "))
    }
}

/// Kind of the accessed data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableKind {
    /// A static variable.
    Variable,
    /// A section without a variable there.
    Section,
    /// The heap, and other mappings without a file.
    Heap,
    /// A stack.
    Stack,
    /// A mapping of a file.
    Mapping,
    /// Not known.
    #[default]
    Unknown,
}

shown_as_written!(VariableKind);

/// A variable or mapping.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableRow {
    /// Event.
    pub event: usize,
    /// Its module; empty for what is in none.
    pub module: String,
    /// Its name, that of its section or mapping, `heap`, `stack`, or `unknown`.
    pub name: String,
    /// Kind.
    pub kind: VariableKind,
    /// Its first address, of variables and sections.
    pub address: Option<Address>,
    /// Bytes.
    pub size: Option<u64>,
    /// Share of the event's accesses, by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
    /// Its members by DWARF, those with the largest share first.
    #[serde(default)]
    pub members: Vec<MemberRow>,
}

/// A member of a variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberRow {
    /// With the variable: `table.buckets[].next`.
    pub name: String,
    /// Share of the event's accesses, by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
}

/// A member of a structure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldRow {
    /// Event.
    pub event: usize,
    /// The structure: `struct node`.
    #[serde(rename = "type")]
    pub of: String,
    /// Its path there: `next`.
    pub member: String,
    /// Its offset there.
    pub offset: u64,
    /// Share of the event's loads (of its stores, if it has no loads), by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
}

/// A cache line that several threads access.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LineRow {
    /// Recording, by its index in `sources`: lines are found over all its events.
    pub recording: usize,
    /// Its address in memory.
    pub address: Address,
    /// Process; absent for kernel memory and physical addresses.
    pub process: Option<u32>,
    /// Whether threads access the same bytes.
    pub sharing: Sharing,
    /// Variables of the line, if known.
    pub variables: Vec<String>,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write: stores and locked accesses.
    pub writes: u64,
    /// Samples that found the line modified in another core's cache (HITM).
    pub modified: u64,
    /// Samples that found it in a cache of another node.
    #[serde(default)]
    pub modified_remote: u64,
    /// Its share of all such samples of the recording.
    #[serde(default)]
    pub share: Option<f64>,
    /// Threads (CPUs, where samples have no thread).
    pub threads: usize,
    /// By thread, offset and instruction.
    pub accesses: Vec<LineAccessRow>,
}

/// Accesses to a cache line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LineAccessRow {
    /// Thread.
    pub thread: Option<u32>,
    /// Its name.
    pub thread_name: Option<String>,
    /// CPUs that it was on.
    pub cpus: Vec<u32>,
    /// Offset in the line.
    pub offset: u8,
    /// Bytes of the access, if the code is known.
    pub bytes: Option<u8>,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub writes: u64,
    /// Samples that found the line modified in another core's cache.
    pub modified: u64,
    /// Samples that found it in a cache of another node.
    #[serde(default)]
    pub modified_remote: u64,
    /// Mean latency in cycles.
    #[serde(default)]
    pub latency_mean: Option<f64>,
    /// Data of the access in the source, by DWARF: `counters.hits`, `node->next`.
    #[serde(default)]
    pub field: Option<String>,
    /// Module of the instruction.
    pub module: String,
    /// The instruction.
    pub address: Address,
    /// Its function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
}
