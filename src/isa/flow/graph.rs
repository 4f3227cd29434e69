//! The control-flow graph of a function, as data.

use crate::code::Inst;

/// How a block goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edge {
    /// To the block at this index of [`Flow::blocks`].
    Block(usize),
    /// Out of the function: a tail call, a jump elsewhere, to this address.
    Outside(u64),
}

/// A basic block.
#[derive(Debug, Clone, Default)]
pub struct BasicBlock {
    /// First address (p_vaddr).
    pub start: u64,
    /// Behind its last instruction.
    pub end: u64,
    /// Where it may go on; falling through is the last.
    pub edges: Vec<Edge>,
    /// Whether it ends in a return or does not go on (`ud2`, `hlt`, a call at the function's end).
    pub is_exit: bool,
    /// Whether edges are missing: it ends in an indirect jump whose targets were not found, or goes
    /// on into bytes that are no code.
    pub unresolved: bool,
    /// Index of the innermost loop in [`Flow::loops`].
    pub innermost: Option<usize>,
}

/// A natural loop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loop {
    /// Index of its head.
    pub head: usize,
    /// Indices of the blocks that jump back to the head.
    pub back_edges: Vec<usize>,
    /// All its blocks, ascending.
    pub blocks: Vec<usize>,
    /// Nesting depth, from 1.
    pub depth: u32,
    /// Index of the loop around it.
    pub parent: Option<usize>,
}

/// The control flow of one function.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// Blocks in order of address.
    pub blocks: Vec<BasicBlock>,
    /// Loops, outer ones first.
    pub loops: Vec<Loop>,
    /// Instructions in order of address, with their addresses; decoded there, with absolute
    /// addresses in the text, and offsets from the start of the function.
    pub instructions: Vec<(u64, Inst)>,
    /// Addresses where decoding failed: data in the code, or the end was cut off.
    pub undecoded: Vec<(u64, u64)>,
    /// Jump tables found: address of the jump and its targets, in order of the table.
    pub tables: Vec<(u64, Vec<u64>)>,
    /// Padding between blocks (`nop`, `int3`) that nothing leads to: first address, address behind.
    pub padding: Vec<(u64, u64)>,
    /// Edges (from, to) that close a cycle with several ways in: no natural loop.
    pub irreducible: Vec<(usize, usize)>,
    /// Whether loops were given up, in code of a size or nesting beyond reason.
    pub loops_incomplete: bool,
}

impl Flow {
    /// Index of the block that holds `address`.
    pub fn block_at(&self, address: u64) -> Option<usize> {
        let after = self.blocks.partition_point(|b| b.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.blocks[index].end).then_some(index)
    }
}
