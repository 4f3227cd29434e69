//! Functions → basic blocks, loops: the control-flow graph of one function.
//!
//! | file | concern |
//! |---|---|
//! | `sweep` | bytes → instructions; what is no code |
//! | `cut` | instructions → blocks and edges |
//! | `tables` | the targets of indirect jumps, read and checked |
//! | `slice`, `state` | backwards from a jump to where its target comes from |
//! | `effects`, `value` | what instructions compute, as far as a jump's target needs it |
//! | `dominators`, `loops` | dominators, natural loops |
//! | `image` | the memory of a program, from its ELF file |
//! | `no_return` | functions known not to return |
//!
//! What cannot be found is marked, never guessed. Work and memory are bounded by the size of the
//! function; bytes that are no code end in [`Flow::undecoded`].

mod cut;
mod dominators;
mod effects;
mod image;
mod loops;
mod no_return;
mod slice;
mod state;
mod sweep;
mod tables;
#[cfg(test)]
mod tests;
mod value;

pub use image::Image;

use crate::code::{Inst, intel};
use iced_x86::{Formatter as _, InstructionInfoFactory};

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

/// What the analysis may read beside the function's own code: the program's memory as it is loaded.
pub trait Memory {
    /// `length` bytes at `address` (p_vaddr), with relocations applied; `None` where nothing is
    /// mapped or it may be written.
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>>;

    /// Whether `address` may be jumped to; asked of targets outside the function.
    fn is_code(&self, address: u64) -> bool {
        self.read(address, 1).is_some()
    }

    /// Whether a call of the function at `callee` comes back; true unless that is known not to be
    /// (`abort`): code behind such a call belongs to something else.
    fn returns(&self, callee: u64) -> bool {
        let _ = callee;
        true
    }
}

/// No memory: no jump table can be read.
impl Memory for () {
    fn read(&self, _: u64, _: usize) -> Option<Vec<u8>> {
        None
    }
}

/// The control flow of the function `code`, which lies at `start` (p_vaddr). `observed` are targets
/// of branches seen in a recording: they begin blocks too; those elsewhere are ignored.
pub fn flow(code: &[u8], start: u64, observed: &[u64], memory: &dyn Memory) -> Flow {
    let (sweep, cut, tables) = resolve(code, start, observed, memory);
    let mut blocks = cut.blocks;
    let successors: Vec<_> = blocks.iter().map(tables::successors).collect();
    let found = loops::loops(&successors);
    for (block, innermost) in blocks.iter_mut().zip(found.innermost) {
        block.innermost = innermost;
    }
    Flow {
        blocks,
        loops: found.loops,
        instructions: instructions(code, start, &sweep),
        undecoded: sweep.undecoded,
        tables: tables.into_iter().collect(),
        padding: cut.padding,
        irreducible: found.irreducible,
        loops_incomplete: found.incomplete,
    }
}

/// The blocks of a function alone, as [`flow`] finds them, without texts and loops.
pub fn blocks(code: &[u8], start: u64, observed: &[u64], memory: &dyn Memory) -> Vec<BasicBlock> {
    resolve(code, start, observed, memory).1.blocks
}

fn resolve(
    code: &[u8],
    start: u64,
    observed: &[u64],
    memory: &dyn Memory,
) -> (sweep::Sweep, cut::Cut, cut::Tables) {
    let length = u64::try_from(code.len()).unwrap_or(u64::MAX).min(u64::MAX - start);
    let bytes = &code[..usize::try_from(length).unwrap_or(code.len())];
    tables::resolve(&tables::Code { bytes, range: start..start + length, observed, memory })
}

/// The instructions with their texts and facts.
fn instructions(code: &[u8], start: u64, sweep: &sweep::Sweep) -> Vec<(u64, Inst)> {
    let mut formatter = intel();
    let mut facts = InstructionInfoFactory::new();
    let inst = |&decoded: &iced_x86::Instruction| {
        let offset = usize::try_from(decoded.ip() - start).unwrap_or(usize::MAX);
        let bytes = code.get(offset..offset.saturating_add(decoded.len())).unwrap_or_default();
        let info = facts.info(&decoded);
        let mut text = String::new();
        formatter.format(&decoded, &mut text);
        let inst = Inst {
            offset,
            bytes: bytes.to_vec(),
            text,
            decoded,
            registers: info.used_registers().to_vec(),
            memory: info.used_memory().to_vec(),
            rip_displacement: displacement(bytes, &decoded),
        };
        (decoded.ip(), inst)
    };
    sweep.instructions.iter().map(inst).collect()
}

/// Where a `[rip+displacement]` keeps its displacement.
fn displacement(bytes: &[u8], decoded: &iced_x86::Instruction) -> Option<usize> {
    use iced_x86::{Decoder, DecoderOptions};
    decoded.is_ip_rel_memory_operand().then(|| {
        let decoder = Decoder::with_ip(64, bytes, decoded.ip(), DecoderOptions::NONE);
        decoder.get_constant_offsets(decoded).displacement_offset()
    })
}
