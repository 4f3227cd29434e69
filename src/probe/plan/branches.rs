//! Requests for the branches of a function.

use super::request::{Request, What};
use crate::facts::{Block, Function};

/// Requests for the branches of a function whose outcome or target may vary.
pub fn branches(function: &Function) -> Vec<Request> {
    let request = |block: &Block| {
        let last = block.instructions.last()?;
        let what = match last {
            i if i.is_jcc_short_or_near() => What::Outcome,
            i if i.is_jmp_near_indirect() || i.is_call_near_indirect() => What::Target,
            _ => return None,
        };
        Some(Request { at: last.ip(), what })
    };
    function.blocks.iter().filter(|block| block.is_reached).filter_map(request).collect()
}
