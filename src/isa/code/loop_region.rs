//! The loop around a block of a program.

use super::elf::Program;
use crate::flow;
use std::ops::Range;

/// Addresses (p_vaddr) of the innermost loop that contains `address`, a range for each run of
/// adjacent blocks; `None` if it is in no loop, or the file `data` has no such function.
pub fn loop_region(data: &[u8], address: u64) -> Option<Vec<Range<u64>>> {
    let program = Program::open(&data).ok()?;
    let function = program.around(address).ok()?;
    let flow = flow::flow(&program.code(&function).ok()?, function.start, &[], &program.image);
    let innermost = flow.blocks.get(flow.block_at(address)?)?.innermost?;
    let mut region: Vec<Range<u64>> = Vec::new();
    for block in &flow.loops.get(innermost)?.blocks {
        let block = flow.blocks.get(*block)?;
        match region.last_mut().filter(|last| last.end == block.start) {
            Some(last) => last.end = block.end,
            None => region.push(block.start..block.end),
        }
    }
    Some(region)
}
