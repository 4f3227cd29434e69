//! The control-flow graph of a function as data.

use crate::code::Inst;

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
