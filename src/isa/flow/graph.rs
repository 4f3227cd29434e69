//! The control-flow graph of a function as data, also from its parts, as another process stored them: the code need not
//! be here.

use crate::code::{Inst, InstBuilder};
use iced_x86::{Decoder, DecoderOptions};

/// A control-flow edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edge {
    /// To the block at this index of [`Flow::blocks`].
    Block(usize),
    /// Out of the function, to this address: a tail call or another jump.
    Outside(u64),
}

/// A basic block.
#[derive(Debug, Clone, Default)]
pub struct BasicBlock {
    /// First address (p_vaddr).
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// Outgoing edges; the fall-through edge is last.
    pub edges: Vec<Edge>,
    /// Whether it ends in a return or control does not continue (`ud2`, `hlt`, a call at the
    /// function's end).
    pub is_exit: bool,
    /// Whether edges are missing: it ends in an indirect jump with unknown targets, or continues into
    /// bytes that do not decode.
    pub unresolved: bool,
    /// Index of the innermost loop in [`Flow::loops`].
    pub innermost: Option<usize>,
}

/// A natural loop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loop {
    /// Index of its header block.
    pub head: usize,
    /// Indices of the latches: the blocks that jump back to the header.
    pub back_edges: Vec<usize>,
    /// All its blocks, ascending.
    pub blocks: Vec<usize>,
    /// Nesting depth, from 1.
    pub depth: u32,
    /// Index of the directly enclosing loop.
    pub parent: Option<usize>,
}

/// The control flow of one function.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// Blocks in order of address.
    pub blocks: Vec<BasicBlock>,
    /// Natural loops, outer ones first.
    pub loops: Vec<Loop>,
    /// Instructions with their addresses, in order of address. They are decoded at these addresses,
    /// so their texts have absolute addresses; offsets are from the start of the function.
    pub instructions: Vec<(u64, Inst)>,
    /// Address ranges that do not decode: data between the code, or a truncated last instruction.
    pub undecoded: Vec<(u64, u64)>,
    /// Resolved jump tables: address of the jump and its targets, in table order.
    pub tables: Vec<(u64, Vec<u64>)>,
    /// Unreachable padding between blocks (`nop`, `int3`): start and end (exclusive).
    pub padding: Vec<(u64, u64)>,
    /// Edges (from, to) that close an irreducible cycle: one with several entries.
    pub irreducible: Vec<(usize, usize)>,
    /// Whether some loops are missing because the code is too large or too deeply nested.
    pub loops_incomplete: bool,
}

impl Flow {
    /// Index of the block that contains `address`.
    pub fn block_at(&self, address: u64) -> Option<usize> {
        let after = self.blocks.partition_point(|b| b.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.blocks[index].end).then_some(index)
    }
}

/// Most bytes of a block: no code is longer, and counting a block's lines stays bounded.
const LONGEST: u64 = 1 << 20;

/// The graph of these blocks and loops, whose code is runs of bytes at addresses. `None` if they are inconsistent:
/// blocks out of order, indices of missing blocks or loops, bytes that do not decode.
pub fn stored(blocks: Vec<BasicBlock>, loops: Vec<Loop>, code: &[(u64, Vec<u8>)]) -> Option<Flow> {
    let (n, of_loops) = (blocks.len(), loops.len());
    let is_sound = |block: &BasicBlock| {
        let leads = |edge: &Edge| !matches!(edge, Edge::Block(to) if *to >= n);
        block.start < block.end
            && block.end - block.start <= LONGEST
            && block.edges.iter().all(leads)
            && block.innermost.is_none_or(|of| of < of_loops)
    };
    let in_order = blocks.windows(2).all(|two| two[0].start < two[1].start);
    let is_loop = |one: &Loop| {
        let all = one.back_edges.iter().chain(&one.blocks);
        one.head < n && all.into_iter().all(|block| *block < n)
    };
    if !in_order || !blocks.iter().all(is_sound) || !loops.iter().all(is_loop) {
        return None;
    }
    let start = blocks.first().map_or(0, |block| block.start);
    let (mut builder, mut instructions) = (InstBuilder::default(), Vec::new());
    for (at, bytes) in code {
        at.checked_add(bytes.len() as u64)?;
        let mut decoder = Decoder::with_ip(64, bytes, *at, DecoderOptions::NONE);
        while decoder.can_decode() {
            let from = decoder.position();
            let decoded = decoder.decode();
            if decoded.is_invalid() {
                return None;
            }
            let offset = usize::try_from(decoded.ip().checked_sub(start)?).ok()?;
            let own = bytes.get(from..decoder.position())?;
            instructions.push((decoded.ip(), builder.inst(decoded, own, offset)));
        }
    }
    let sorted = instructions.windows(2).all(|two| two[0].0 < two[1].0);
    sorted.then(|| Flow { blocks, loops, instructions, ..Flow::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `dec eax; jne` back to itself: one block that is a loop.
    #[test]
    fn only_what_belongs_together_is_a_graph() {
        let block = || BasicBlock {
            start: 0x10,
            end: 0x14,
            edges: vec![Edge::Block(0), Edge::Outside(0x14)],
            innermost: Some(0),
            ..BasicBlock::default()
        };
        let around = || Loop { head: 0, back_edges: vec![0], blocks: vec![0], ..Loop::default() };
        let code = [(0x10, vec![0xff, 0xc8, 0x75, 0xfc])];
        let flow = stored(vec![block()], vec![around()], &code).unwrap();
        let texts: Vec<&str> = flow.instructions.iter().map(|(_, one)| &*one.text).collect();
        assert_eq!(texts, ["dec eax", "jne short 0x10"]);
        assert!(stored(vec![block()], vec![], &code).is_none(), "its loop is not there");
        let other = Loop { head: 1, ..around() };
        assert!(stored(vec![block()], vec![other], &code).is_none());
        let long = BasicBlock { end: u64::MAX, ..block() };
        assert!(stored(vec![long], vec![around()], &code).is_none());
        assert!(stored(vec![block(), block()], vec![around()], &code).is_none(), "not in order");
        assert!(stored(vec![block()], vec![around()], &[(u64::MAX, vec![0x90; 4])]).is_none());
    }
}
