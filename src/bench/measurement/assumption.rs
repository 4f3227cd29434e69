//! Assumptions of a measurement.

use serde::Serialize;

/// Whether an assumption of the measurement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It held.
    Held,
    /// It did not.
    Violated,
    /// Not checkable here.
    Unchecked,
}

/// Assumptions of a measurement; docs/method/blocks.md describes each by its name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "they are described there")]
pub enum Assumed {
    L1Data,
    DataTlb,
    L1Code,
    OpCache,
    ContextSwitches,
    Contention,
    Alignment,
    LineCrossing,
    PageCrossing,
    PageAliasing,
    StoreAliasing,
    Masks,
    MappedPages,
    OwnRegisters,
    SteadyState,
    Reproducibility,
    Subnormals,
    PageFaults,
    InstructionCount,
    Bounds,
}

impl Assumed {
    /// As printed, and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::L1Data => "l1-data",
            Self::DataTlb => "data-tlb",
            Self::L1Code => "l1-code",
            Self::OpCache => "op-cache",
            Self::ContextSwitches => "context-switches",
            Self::Contention => "contention",
            Self::Alignment => "alignment",
            Self::LineCrossing => "line-crossing",
            Self::PageCrossing => "page-crossing",
            Self::PageAliasing => "page-aliasing",
            Self::StoreAliasing => "store-aliasing",
            Self::Masks => "masks",
            Self::MappedPages => "mapped-pages",
            Self::OwnRegisters => "own-registers",
            Self::SteadyState => "steady-state",
            Self::Reproducibility => "reproducibility",
            Self::Subnormals => "subnormals",
            Self::PageFaults => "page-faults",
            Self::InstructionCount => "instruction-count",
            Self::Bounds => "bounds",
        }
    }
}

/// One assumption.
#[derive(Debug, Clone, Serialize)]
pub struct Assumption {
    /// Its name.
    pub name: Assumed,
    /// Whether it held.
    #[serde(rename = "verdict")]
    pub outcome: Outcome,
    /// Evidence.
    pub how: String,
}
