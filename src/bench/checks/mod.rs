//! Checks the assumptions of a measurement, each with its evidence.
//!
//! | file | assumptions |
//! |---|---|
//! | `lines`, `aliasing` | what the address trace shows |
//! | `code` | the copies' code |
//! | `tlb` | translations of the pages |
//! | `captured` | cache lines and pages of a loop with a program's memory |
//! | `timing` | contention, reproducibility, and registers that the harness reinitialised |
//! | `masks` | masks that select nothing, and pages that masked accesses lack |
//! | `aligned` | alignment, by the processor's own check |
//! | `steady` | whether unrolled code was in its steady state |
//! | `subnormal` | subnormal operands and results |
//!
//! `bounds` is checked where bounds are measured.

mod aliasing;
mod aligned;
mod captured;
mod code;
mod common;
mod lines;
mod masks;
mod steady;
mod subnormal;
mod timing;
mod tlb;

use crate::initial::run_setup::RunSetup;
use crate::measurement::Assumption;
use crate::timing::form_timing::FormTiming;
pub(crate) use captured::Footprint;
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
        all.push(captured::l1_data(footprint, core.l1_data));
        all.push(captured::data_tlb(footprint, core.facts().data_tlb.as_ref()));
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
    let masks = masks::masks(block, setup);
    let all = [
        lines::l1_data(block, setup, physical, core.l1_data),
        tlb::data_tlb(setup, core.facts().data_tlb.as_ref()),
        code::l1_code(block, setup, copies, core.l1_code),
        code::op_cache(block, setup, copies, core.op_cache().as_ref()),
        timing::context_switches(timed),
        timing::contention(timed),
        lines::alignment(block, setup),
        lines::line_crossing(block, setup),
        lines::page_crossing(block, setup),
        aliasing::pages(setup, physical),
        aliasing::stores(block, setup, core.false_distances().as_deref()),
        timing::own_registers(setup),
        timing::reproducibility(timed),
    ];
    all.into_iter().chain(masks).collect()
}
