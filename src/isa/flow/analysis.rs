//! The control flow of one function: sweep, cut, jump tables, loops.

use super::graph::{BasicBlock, Flow};
use super::memory::Memory;
use super::{cut, loops, sweep, tables};
use crate::code::{Inst, intel};
use iced_x86::{Formatter as _, InstructionInfoFactory};

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
