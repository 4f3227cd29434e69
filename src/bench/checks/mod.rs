//! Checks the assumptions of a measurement, each with its evidence.
//!
//! | file | assumptions |
//! |---|---|
//! | `common` | outcomes of a check, and lists in its wording |
//! | `lines` | cache lines, boundaries and aliasing, by the address trace |
//! | `fits` | whether code and memory fit the first level |
//! | `accesses` | alignment, by the processor's own check; masks |
//! | `timing` | contention, reproducibility, the steady state, and registers that the harness reinitialised |
//! | `subnormal` | subnormal operands and results |
//!
//! `bounds` is checked where bounds are measured.

mod accesses;
mod common;
mod fits;
mod lines;
mod subnormal;
mod timing;

pub(crate) use fits::Footprint;

use crate::initial::run_setup::RunSetup;
use crate::measurement::Assumption;
use crate::timing::form_timing::FormTiming;
use isa::code::Block;
use tma::Core;

/// Checks the assumptions that follow from the timing, and from the memory that a captured loop accesses.
pub fn of_captured(
    footprint: Option<&Footprint>,
    timed: &FormTiming,
    core: &Core,
) -> Vec<Assumption> {
    let mut all = Vec::new();
    if let Some(footprint) = footprint {
        all.push(fits::captured_l1_data(footprint, core.l1_data));
        all.push(fits::captured_data_tlb(footprint, core.facts().data_tlb.as_ref()));
    }
    all.push(timing::context_switches(timed));
    all.push(timing::contention(timed));
    all.push(timing::reproducibility(timed));
    all
}

/// Checks all assumptions that follow from the trace and the timing of `copies` copies.
pub fn all(
    block: &Block,
    setup: &RunSetup,
    copies: usize,
    timed: &FormTiming,
    physical: usize,
    core: &Core,
) -> Vec<Assumption> {
    let masks = accesses::masks(block, setup);
    let all = [
        lines::l1_data(block, setup, physical, core.l1_data),
        fits::data_tlb(setup, core.facts().data_tlb.as_ref()),
        fits::l1_code(block, setup, copies, core.l1_code),
        fits::op_cache(block, setup, copies, core.op_cache().as_ref()),
        timing::context_switches(timed),
        timing::contention(timed),
        lines::alignment(block, setup),
        lines::line_crossing(block, setup),
        lines::page_crossing(block, setup),
        lines::pages(setup, physical),
        lines::stores(block, setup, core.false_distances().as_deref()),
        timing::own_registers(setup),
        timing::reproducibility(timed),
    ];
    all.into_iter().chain(masks).collect()
}
