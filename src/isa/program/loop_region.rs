//! The loop around a block of a program.

use super::elf::Program;
use crate::flow;
use std::ops::Range;

/// A loop of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// Its first block (p_vaddr).
    pub head: Range<u64>,
    /// Its code, a range for each run of adjacent blocks.
    pub region: Vec<Range<u64>>,
    /// Number of its blocks.
    pub blocks: usize,
}

/// The innermost loop that contains `address`; `None` if it is in no loop, or the file `data` has no
/// such function.
pub fn loop_around(data: &[u8], address: u64) -> Option<Around> {
    let program = Program::open(&data).ok()?;
    let function = program.around(address).ok()?;
    let flow = flow::flow(&program.code(&function).ok()?, function.start, &[], &program.image);
    let innermost = flow.loops.get(flow.blocks.get(flow.block_at(address)?)?.innermost?)?;
    let mut region: Vec<Range<u64>> = Vec::new();
    for block in &innermost.blocks {
        let block = flow.blocks.get(*block)?;
        match region.last_mut().filter(|last| last.end == block.start) {
            Some(last) => last.end = block.end,
            None => region.push(block.start..block.end),
        }
    }
    let head = flow.blocks.get(innermost.head)?;
    Some(Around { head: head.start..head.end, region, blocks: innermost.blocks.len() })
}

/// The code of the innermost loop that contains `address`, as [`loop_around`] finds it.
pub fn loop_region(data: &[u8], address: u64) -> Option<Vec<Range<u64>>> {
    loop_around(data, address).map(|around| around.region)
}
