//! The control-flow graph of a function: basic blocks, edges, loops.
//!
//! | file | concern |
//! |---|---|
//! | `graph` | the control-flow graph as data |
//! | `partition` | bytes → instructions → blocks and edges |
//! | `jump_tables`, `slice_state` | targets of indirect jumps: sliced backwards, read from memory and checked |
//! | `transfer`, `value` | effects of instructions on symbolic values; symbolic values |
//! | `iteration` | one iteration of a loop body in terms of the registers at its start |
//! | `loops` | dominators and natural loops |
//! | `image` | a program's memory, from its ELF file |
//!
//! Unknown edges are marked, never guessed. Time and memory are bounded by the size of the function.
//! Bytes that do not decode are listed in [`Flow::undecoded`].

mod graph;
mod image;
mod iteration;
mod jump_tables;
mod loops;
mod partition;
mod slice_state;
#[cfg(test)]
mod tests;
mod transfer;
mod value;

use crate::code::{Inst, InstBuilder};
use iced_x86::Instruction;

pub use graph::{BasicBlock, Edge, Flow, Loop, stored};
pub use image::{Image, Memory, NoImage};
pub use iteration::{Exit, Iteration, Linear, LinearAccess, Loaded, Term};
pub use value::merged;

/// The control flow of the function with the bytes `code` at `start` (p_vaddr). `observed` are branch
/// targets seen in a recording, which also begin blocks; those outside the function are ignored.
///
/// ```
/// use isa::code::parse_hex;
/// use isa::flow::{Edge, flow};
///
/// // 1000: xor eax, eax
/// // 1002: add eax, edi; dec edi; jne 1002
/// // 1008: ret
/// let code = parse_hex("31 c0, 01 f8, ff cf, 75 fa, c3")?;
/// let found = flow(&code, 0x1000, &[], &());
/// let starts: Vec<u64> = found.blocks.iter().map(|block| block.start).collect();
/// assert_eq!(starts, [0x1000, 0x1002, 0x1008]);
/// assert_eq!(found.blocks[1].edges, [Edge::Block(1), Edge::Block(2)]);
///
/// let [inner] = &found.loops[..] else { panic!("one loop") };
/// assert_eq!((inner.head, &inner.blocks[..], inner.depth), (1, &[1][..], 1));
/// assert_eq!(found.block_at(0x1004), Some(1));
/// # Ok::<(), tma::Error>(())
/// ```
pub fn flow(code: &[u8], start: u64, observed: &[u64], memory: &dyn Memory) -> Flow {
    let (found, decoded) = decoded_flow(code, start, observed, memory);
    Flow { instructions: instructions(code, start, &decoded), ..found }
}

/// As [`flow`] without texts: the instructions come beside it, and [`Flow::instructions`] is empty.
pub fn decoded_flow(
    code: &[u8],
    start: u64,
    observed: &[u64],
    memory: &dyn Memory,
) -> (Flow, Vec<Instruction>) {
    let (disassembly, partition, tables) = resolve(code, start, observed, memory);
    let mut blocks = partition.blocks;
    let successors: Vec<_> = blocks.iter().map(jump_tables::successors).collect();
    let found = loops::loops(&successors);
    for (block, innermost) in blocks.iter_mut().zip(found.innermost) {
        block.innermost = innermost;
    }
    let flow = Flow {
        blocks,
        loops: found.loops,
        instructions: Vec::new(),
        undecoded: disassembly.undecoded,
        tables: tables.into_iter().collect(),
        padding: partition.padding,
        irreducible: found.irreducible,
        loops_incomplete: found.incomplete,
    };
    (flow, disassembly.instructions)
}

/// Only the basic blocks of a function, as [`flow`] finds them, without instruction texts and loops.
pub fn blocks(code: &[u8], start: u64, observed: &[u64], memory: &dyn Memory) -> Vec<BasicBlock> {
    resolve(code, start, observed, memory).1.blocks
}

fn resolve(
    code: &[u8],
    start: u64,
    observed: &[u64],
    memory: &dyn Memory,
) -> (partition::Disassembly, partition::Partition, partition::Tables) {
    let length = u64::try_from(code.len()).unwrap_or(u64::MAX).min(u64::MAX - start);
    let bytes = &code[..usize::try_from(length).unwrap_or(code.len())];
    jump_tables::resolve(&jump_tables::Code {
        bytes,
        range: start..start + length,
        observed,
        memory,
    })
}

/// The instructions with their addresses.
fn instructions(code: &[u8], start: u64, decoded: &[Instruction]) -> Vec<(u64, Inst)> {
    let mut builder = InstBuilder::default();
    let inst = |&decoded: &Instruction| {
        let offset = usize::try_from(decoded.ip() - start).unwrap_or(usize::MAX);
        let bytes = code.get(offset..offset.saturating_add(decoded.len())).unwrap_or_default();
        (decoded.ip(), builder.inst(decoded, bytes, offset))
    };
    decoded.iter().map(inst).collect()
}
