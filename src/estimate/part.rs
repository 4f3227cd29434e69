//! The parts of the time, as a tree: those that make up the time, and what some of them consist of. Names are those of
//! Intel's tree (`events/nodes.toml`).

use crate::evidence::Contending;

/// A part of the time, in slots of the core's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Slots of retired µops.
    Retiring,
    /// Mispredicted branches.
    BadSpeculation,
    /// Fetching and decoding, with all code in the first cache.
    FetchBandwidth,
    /// Fetching code from beyond the first cache.
    FetchLatency,
    /// Ports, dependencies, store forwarding and dividers.
    CoreBound,
    /// Loads and stores: what the first cache takes, as far as nothing hides it, and beyond it.
    MemoryBound,
    /// Time that none of them covers.
    Unexplained,
    /// Mispredicted branches: all of Bad Speculation that is modelled.
    BranchMispredicts,
    /// Fetching code from the second cache or beyond.
    ICacheMisses,
    /// Translating its addresses.
    ItlbMisses,
    /// Divisions and roots.
    Divider,
    /// Everything else behind the front end: ports and dependencies.
    PortsUtilization,
    /// Loads that wait for the first cache or for earlier stores, as known in isolation.
    L1Bound,
    /// Loads from the second cache, by their latency.
    L2Bound,
    /// Loads from the third cache.
    L3Bound,
    /// Loads from memory.
    DramBound,
    /// Stores to more lines than caches hold.
    StoreBound,
    /// Lines in which threads contend for the same bytes.
    ContestedAccesses,
    /// For different bytes.
    FalseSharing,
    /// For bytes that locked instructions access.
    LockLatency,
    /// Core and Memory Bound together, whose sum is known better than either.
    BackendBound,
}

/// All parts that make up the time, in the order of documents.
pub const ALL: [Part; 7] = [
    Part::Retiring,
    Part::BadSpeculation,
    Part::FetchBandwidth,
    Part::FetchLatency,
    Part::CoreBound,
    Part::MemoryBound,
    Part::Unexplained,
];

/// All parts of these, in the order of documents.
pub const WITHIN: [Part; 13] = [
    Part::BranchMispredicts,
    Part::ICacheMisses,
    Part::ItlbMisses,
    Part::Divider,
    Part::PortsUtilization,
    Part::L1Bound,
    Part::L2Bound,
    Part::L3Bound,
    Part::DramBound,
    Part::StoreBound,
    Part::ContestedAccesses,
    Part::FalseSharing,
    Part::LockLatency,
];

/// The parts by which threads contend for cache lines.
pub const CONTENTION: [Part; 3] = [Part::ContestedAccesses, Part::FalseSharing, Part::LockLatency];

impl Part {
    /// As in documents.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// As shown.
    pub fn label(self) -> &'static str {
        self.facts().1
    }

    /// The part that it is in; none of those that make up the time.
    pub fn parent(self) -> Option<Self> {
        self.facts().2
    }

    /// All: those that make up the time, what these consist of, and Backend Bound.
    pub fn every() -> impl Iterator<Item = Self> {
        ALL.into_iter().chain(Self::further())
    }

    /// Those that documents may have or not.
    pub(crate) fn further() -> impl Iterator<Item = Self> {
        WITHIN.into_iter().chain([Self::BackendBound])
    }

    /// The parts within it.
    pub fn children(self) -> impl Iterator<Item = Self> {
        WITHIN.into_iter().filter(move |part| part.parent() == Some(self))
    }

    fn facts(self) -> (&'static str, &'static str, Option<Self>) {
        match self {
            Self::Retiring => ("retiring", "Retiring", None),
            Self::BadSpeculation => ("bad_speculation", "Bad Speculation", None),
            Self::FetchBandwidth => ("fetch_bandwidth", "Fetch Bandwidth", None),
            Self::FetchLatency => ("fetch_latency", "Fetch Latency", None),
            Self::CoreBound => ("core_bound", "Core Bound", None),
            Self::MemoryBound => ("memory_bound", "Memory Bound", None),
            Self::Unexplained => ("unexplained", "Unexplained", None),
            Self::BranchMispredicts => {
                ("branch_mispredicts", "Branch Mispredicts", Some(Self::BadSpeculation))
            }
            Self::ICacheMisses => ("icache_misses", "ICache Misses", Some(Self::FetchLatency)),
            Self::ItlbMisses => ("itlb_misses", "ITLB Misses", Some(Self::FetchLatency)),
            Self::Divider => ("divider", "Divider", Some(Self::CoreBound)),
            Self::PortsUtilization => {
                ("ports_utilization", "Ports Utilization", Some(Self::CoreBound))
            }
            Self::L1Bound => ("l1_bound", "L1 Bound", Some(Self::MemoryBound)),
            Self::L2Bound => ("l2_bound", "L2 Bound", Some(Self::MemoryBound)),
            Self::L3Bound => ("l3_bound", "L3 Bound", Some(Self::MemoryBound)),
            Self::DramBound => ("dram_bound", "DRAM Bound", Some(Self::MemoryBound)),
            Self::StoreBound => ("store_bound", "Store Bound", Some(Self::MemoryBound)),
            Self::ContestedAccesses => {
                ("contested_accesses", "Contested Accesses", Some(Self::MemoryBound))
            }
            Self::FalseSharing => ("false_sharing", "False Sharing", Some(Self::MemoryBound)),
            Self::LockLatency => ("lock_latency", "Lock Latency", Some(Self::MemoryBound)),
            Self::BackendBound => ("backend_bound", "Backend Bound", None),
        }
    }

    /// The part of threads that contend so.
    pub fn contending(by: Contending) -> Self {
        match by {
            Contending::SameBytes => Self::ContestedAccesses,
            Contending::OtherBytes => Self::FalseSharing,
            Contending::Locked => Self::LockLatency,
        }
    }

    /// The part with this name, of those that make up the time.
    pub fn of(name: &str) -> Option<Self> {
        ALL.into_iter().find(|part| part.name() == name)
    }
}
