//! The section `[facts]` of a table file: what measurements and models assume of the core.
//!
//! Every fact is optional and names its source. What is absent is reported as not known, never
//! replaced by another core's value. docs/reference/tables.md explains every key.

use serde::{Deserialize, Serialize};

/// Properties of a core beyond its events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Name of the file of latencies: `latency/NAME.toml`.
    #[serde(default)]
    pub latencies: Option<String>,
    /// Name of the file of ports: `ports/NAME.toml`.
    #[serde(default)]
    pub ports: Option<String>,
    /// The cache of decoded instructions.
    #[serde(default)]
    pub op_cache: Option<OpCache>,
    /// The first level of the data TLB.
    #[serde(default)]
    pub data_tlb: Option<DataTlb>,
    /// Zero idioms beyond those of every core.
    #[serde(default)]
    pub zero_idioms: Option<ZeroIdioms>,
    /// Operations that register renaming does without an execution unit.
    #[serde(default)]
    pub renamed: Option<RenamedMoves>,
    /// False dependences on a destination or on flags.
    #[serde(default)]
    pub false_dependences: Option<FalseDependences>,
    /// Whether a nop takes a slot of its own.
    #[serde(default)]
    pub nop_fusion: Option<NopFusion>,
    /// Distances at which a load falsely depends on an earlier store.
    #[serde(default)]
    pub store_aliasing: Option<StoreAliasing>,
    /// Whether two loads a cycle were seen among as many instructions as the width allows.
    #[serde(default)]
    pub sustained_width: Option<SustainedWidth>,
}

/// The cache of decoded instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpCache {
    /// Decoded operations that it holds.
    pub ops: u32,
    /// Limit for 32 aligned bytes of code, where there is one.
    #[serde(default)]
    pub per_32_bytes: Option<u32>,
    /// Source of the figure.
    pub source: String,
}

/// The first level of the data TLB, for pages of 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataTlb {
    /// Entries for loads, or for all accesses.
    pub loads: u32,
    /// Entries for stores, where those have their own.
    #[serde(default)]
    pub stores: Option<u32>,
    /// Source of the figure.
    pub source: String,
}

/// A zero idiom that not every core knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroIdiom {
    /// `sbb r,r` of 32 or 64 bits: depends only on CF.
    Sbb,
    /// `cmp r,r` of 32 or 64 bits.
    Cmp,
    /// `psubs*`, `psubus*` of one register.
    SaturatingSubtract,
    /// `pandn`, `andnps`, `andnpd` of one register.
    AndNot,
    /// `kxor*`, `kxnor*` of one register.
    MaskXor,
}

/// Zero idioms beyond those of every core (`xor`, `sub`, `pxor`, `pcmpeq*`, `pcmpgt*`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZeroIdioms {
    /// Which.
    pub also: Vec<ZeroIdiom>,
    /// Source of the fact.
    pub source: String,
}

/// An operation that renaming may do without an execution unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Renamed {
    /// Moves of general-purpose registers, 32 or 64 bits.
    Mov,
    /// `movzx` from the low byte of another register.
    Movzx,
    /// Moves of whole vector registers.
    VectorMov,
    /// Additions of a constant of 8 bits to a 64-bit register.
    AddConstant,
}

/// See [`Renamed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenamedMoves {
    /// Which; an empty list: none.
    pub kinds: Vec<Renamed>,
    /// Source of the fact.
    pub source: String,
}

/// An input that delays an instruction although its result does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FalseDependence {
    /// `popcnt` on its destination.
    Popcnt,
    /// `lzcnt`, `tzcnt` on their destination.
    Lzcnt,
    /// Shifts and rotates by `cl` on the flags, which a count of zero leaves unchanged.
    ShiftFlags,
}

/// See [`FalseDependence`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FalseDependences {
    /// Which; an empty list: none.
    pub on: Vec<FalseDependence>,
    /// Source of the fact.
    pub source: String,
}

/// How nops share slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FusedWith {
    /// Each nop takes a slot.
    Nothing,
    /// A nop shares the slot of the instruction before it.
    Previous,
}

/// See [`FusedWith`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NopFusion {
    /// The instruction that a nop shares its slot with, if any.
    pub with: FusedWith,
    /// Source of the fact.
    pub source: String,
}

/// Distances at which a load falsely depends on an earlier store of the same base register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreAliasing {
    /// Bytes between the two addresses.
    pub distances: Vec<u32>,
    /// Source of the fact.
    pub source: String,
}

/// The sustained issue width with loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SustainedWidth {
    /// Instructions a cycle, two of them loads.
    pub with_two_loads: u32,
    /// Source of the fact.
    pub source: String,
}

/// A fact that may not be known of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactName {
    /// Instructions that are issued a cycle.
    IssueWidth,
    /// Entries of the reorder buffer.
    ReorderBuffer,
    /// [`Facts::latencies`].
    Latencies,
    /// [`Facts::op_cache`].
    OpCache,
    /// [`Facts::data_tlb`].
    DataTlb,
    /// [`Facts::zero_idioms`].
    ZeroIdioms,
    /// [`Facts::renamed`].
    EliminatedMoves,
    /// [`Facts::false_dependences`].
    FalseDependences,
}

impl FactName {
    /// As reports print it.
    pub fn word(self) -> &'static str {
        match self {
            Self::IssueWidth => "issue width",
            Self::ReorderBuffer => "reorder buffer",
            Self::Latencies => "latencies",
            Self::OpCache => "op cache",
            Self::DataTlb => "data TLB",
            Self::ZeroIdioms => "zero idioms",
            Self::EliminatedMoves => "eliminated moves",
            Self::FalseDependences => "false dependences",
        }
    }
}

impl Facts {
    /// The unknown facts, for reports. What the processor's self-test answers is not among them.
    pub fn missing(&self) -> Vec<FactName> {
        let known = [
            (self.latencies.is_some(), FactName::Latencies),
            (self.op_cache.is_some(), FactName::OpCache),
            (self.data_tlb.is_some(), FactName::DataTlb),
            (self.zero_idioms.is_some(), FactName::ZeroIdioms),
            (self.renamed.is_some(), FactName::EliminatedMoves),
            (self.false_dependences.is_some(), FactName::FalseDependences),
        ];
        known.iter().filter(|(is, _)| !is).map(|(_, name)| *name).collect()
    }

    /// The facts that both state alike.
    #[must_use]
    pub fn in_common(&self, other: &Self) -> Self {
        fn same<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<T> {
            a.clone().filter(|a| b.as_ref() == Some(a))
        }
        Self {
            latencies: same(&self.latencies, &other.latencies),
            ports: same(&self.ports, &other.ports),
            op_cache: same(&self.op_cache, &other.op_cache),
            data_tlb: same(&self.data_tlb, &other.data_tlb),
            zero_idioms: same(&self.zero_idioms, &other.zero_idioms),
            renamed: same(&self.renamed, &other.renamed),
            false_dependences: same(&self.false_dependences, &other.false_dependences),
            nop_fusion: same(&self.nop_fusion, &other.nop_fusion),
            store_aliasing: same(&self.store_aliasing, &other.store_aliasing),
            sustained_width: same(&self.sustained_width, &other.sustained_width),
        }
    }

    /// Whether the core treats `idiom` as a zero idiom; not if it is not known.
    pub fn has_idiom(&self, idiom: ZeroIdiom) -> bool {
        self.zero_idioms.as_ref().is_some_and(|z| z.also.contains(&idiom))
    }

    /// Whether renaming may do this; not if it is not known.
    pub fn renames(&self, kind: Renamed) -> bool {
        self.renamed.as_ref().is_some_and(|r| r.kinds.contains(&kind))
    }

    /// Whether this false dependence exists. Where that is not known, only that on flags does: a count of
    /// zero leaves them unchanged by definition.
    pub fn waits(&self, on: FalseDependence) -> bool {
        match &self.false_dependences {
            Some(known) => known.on.contains(&on),
            None => on == FalseDependence::ShiftFlags,
        }
    }
}
