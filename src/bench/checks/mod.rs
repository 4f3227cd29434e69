//! The assumptions of a measurement, each with its verdict and how that is known.
//!
//! | file | assumptions |
//! |---|---|
//! | `lines`, `aliasing` | what the address trace shows |
//! | `code` | the copies' code |
//! | `tlb` | translations of the pages |
//! | `timing` | the core, the passes, and what the harness did to the block |
//!
//! `subnormals` and `bounds` are judged where they are measured.

mod aliasing;
pub(crate) mod aligned;
mod code;
mod common;
mod lines;
pub(crate) mod subnormal;
mod timing;
mod tlb;

use crate::initial::run_setup::Found;
use crate::measurement::Assumption;
use crate::timing::form_timing::FormTiming;
use isa::code::Block;
use tma::Core;

/// All of them that follow from the trace and the timing of `copies` copies.
pub fn all(
    block: &Block,
    found: &Found,
    copies: usize,
    timed: &FormTiming,
    physical: usize,
    core: &Core,
) -> Vec<Assumption> {
    vec![
        lines::l1_data(block, found, physical, core.l1_data),
        tlb::data_tlb(found, core.facts().data_tlb.as_ref()),
        code::l1_code(block, found, copies, core.l1_code),
        code::op_cache(block, found, copies, core.facts().op_cache.as_ref()),
        timing::context_switches(timed),
        timing::neighbour(timed),
        lines::alignment(block, found),
        lines::line_crossing(block, found),
        lines::page_crossing(block, found),
        aliasing::pages(found, physical),
        aliasing::stores(block, found),
        timing::own_registers(found),
        timing::reproducibility(timed),
    ]
}
