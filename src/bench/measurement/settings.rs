//! Settings and machine of a measurement, as its document records them, and its assumptions.

use crate::options::{Method, Options, Preset};
use serde::Serialize;
use std::collections::BTreeMap;
use tma::Core;
use tma::measured::Origin;

/// The settings that a number depends on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// `quick`, `default` or `thorough`, where passes, placements and rounds are those of one; else
    /// none.
    pub preset: Option<Preset>,
    /// `bhive`: one physical page, one set of values, no loop over the copies, no register reinitialised;
    /// `tdtool` otherwise.
    pub method: Method,
    /// Passes over all placements.
    pub passes: usize,
    /// Placements of the code.
    pub placements: usize,
    /// Rounds for each placement and pass.
    pub rounds: usize,
    /// Most passes repeated because of contention.
    pub retries: usize,
    /// Milliseconds that the block could wait for an uncontended core.
    pub budget_ms: u64,
    /// `tsc` or `pmu`.
    pub clock: &'static str,
    /// The processor measured on last; none if the kernel chose it.
    pub cpu: Option<usize>,
    /// Most copies in the unrolled form, if set by the user.
    pub copies: Option<usize>,
    /// Offset of the code within a 64-byte cache line, if set by the user.
    pub align: Option<usize>,
    /// Whether the throughput is the difference of two unroll factors.
    pub two_factors: bool,
    /// Whether the unrolled form never loops over its copies.
    pub straight: bool,
    /// Whether subnormals are computed exactly.
    pub gradual_underflow: bool,
    /// Whether the loop form was requested.
    pub loop_form: bool,
    /// Whether rounds with contention were rejected.
    pub sentinel: bool,
    /// Whether registers could be reinitialised between copies.
    pub reseed: bool,
    /// Whether pages are mapped.
    pub mapping: bool,
    /// Distinct physical pages.
    pub physical_pages: usize,
    /// Pages that the block may touch.
    pub page_limit: usize,
    /// Sets of initial values tried.
    pub value_sets: usize,
}

/// The core measured on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredOn {
    /// The processor's name by its own account.
    pub processor: String,
    /// Its event table, which gives the width of the pipeline.
    pub table: Option<String>,
    /// Where the facts of the core come from that the measurement used.
    pub facts: BTreeMap<&'static str, Origin>,
}

impl MeasuredOn {
    /// A measurement on `core`.
    pub fn on(core: &Core) -> Self {
        let table = core.uarch().map(str::to_owned);
        Self { processor: core.cpu.name.clone(), table, facts: core.origins() }
    }
}

impl Settings {
    /// Settings of `options`, with the clock and the processor chosen.
    pub fn of(options: &Options, clock: &'static str, cpu: Option<usize>) -> Self {
        Self {
            preset: options.preset,
            method: options.method,
            passes: options.passes,
            placements: options.placements,
            rounds: options.rounds,
            retries: options.retries,
            budget_ms: u64::try_from(options.budget.as_millis()).unwrap_or(u64::MAX),
            clock,
            cpu,
            copies: options.copies,
            align: options.align,
            two_factors: options.two_factors,
            straight: options.straight,
            gradual_underflow: options.gradual_underflow,
            loop_form: options.loop_form,
            sentinel: options.sentinel,
            reseed: options.reseed,
            mapping: options.mapping,
            physical_pages: options.physical_pages,
            page_limit: options.page_limit,
            value_sets: options.value_sets,
        }
    }
}

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
    /// As in JSON.
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

    /// What is assumed, as printed.
    pub fn state(self) -> &'static str {
        match self {
            Self::L1Data => "data in L1",
            Self::DataTlb => "pages in the L1 TLB",
            Self::L1Code => "code in L1",
            Self::OpCache => "code in the op cache",
            Self::ContextSwitches => "few context switches",
            Self::Contention => "no contention",
            Self::Alignment => "aligned accesses",
            Self::LineCrossing => "no access across lines",
            Self::PageCrossing => "no access across pages",
            Self::PageAliasing => "one address per line",
            Self::StoreAliasing => "no store aliasing",
            Self::Masks => "no empty masks",
            Self::MappedPages => "pages mapped",
            Self::OwnRegisters => "registers not restored",
            Self::SteadyState => "steady state",
            Self::Reproducibility => "reproduced",
            Self::Subnormals => "no subnormals",
            Self::PageFaults => "no page faults",
            Self::InstructionCount => "instructions counted",
            Self::Bounds => "bounds not exceeded",
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
