//! How a block is laid out for timing: how many copies, how they repeat, where they start.

use super::loop_counter::Counter;
use crate::Options;
use crate::initial::run_setup::Found;
use crate::timing::measure::Repeat;
use iced_x86::Register;
use isa::code::{Block, Inst};

/// Instructions in the longest straight run; more leave the op cache.
const INSTRUCTIONS: usize = 960;
/// Bytes of it.
const BYTES: usize = 12 * 1024;
/// Instructions and bytes of the copies in a loop.
const FEW: usize = 120;
const FEW_BYTES: usize = 1024;
/// Most copies, and most bytes of those that the user asks for.
const COPIES: usize = 480;
const ROOM: usize = 64 * 1024;
/// Distances of the code from the start of a line, one placement after the other.
const OFFSETS: [usize; 6] = [0, 32, 16, 48, 8, 40];

/// How many copies are traced.
pub fn copies(block: &Block, options: &Options) -> usize {
    match options.copies {
        Some(copies) => copies.min(ROOM / block.bytes.len()).max(2),
        None => (INSTRUCTIONS / block.instructions.len())
            .min(BYTES / block.bytes.len())
            .clamp(2, COPIES),
    }
}

/// How many copies are enough where addresses stay the same; `None` where it must be straight code
/// anyway.
pub fn few(block: &Block, options: &Options) -> Option<usize> {
    if options.straight || options.copies.is_some() || Counter::of(block).is_err() {
        return None;
    }
    let few = (FEW / block.instructions.len()).min(FEW_BYTES / block.bytes.len()).max(4);
    Some(few).filter(|few| *few < copies(block, options))
}

/// Whether it is plain that addresses change from copy to copy: the stack pointer goes one way, or a
/// register that addresses are made of is counted up or down.
pub fn moves(block: &Block) -> bool {
    use iced_x86::Mnemonic as M;
    let count =
        |mnemonic| block.instructions.iter().filter(|i| i.decoded.mnemonic() == mnemonic).count();
    let mut address = Vec::new();
    for memory in block.instructions.iter().flat_map(|i| &i.memory) {
        address.extend([memory.base(), memory.index()].map(Register::full_register));
    }
    let counts = |inst: &Inst| {
        let decoded = &inst.decoded;
        matches!(decoded.mnemonic(), M::Add | M::Sub | M::Inc | M::Dec)
            && decoded.op_count() > 0
            && (decoded.op_count() == 1 || !decoded.op1_register().is_gpr())
            && decoded.op0_register().is_gpr64()
            && decoded.memory_base() == Register::None
            && address.contains(&decoded.op0_register())
    };
    let set = |inst: &Inst, register: Register| {
        inst.registers.iter().any(|used| {
            used.register().full_register() == register
                && Inst::writes(used.access())
                && !Inst::reads(used.access())
        })
    };
    count(M::Push) != count(M::Pop)
        || block.instructions.iter().any(|inst| {
            let register = inst.decoded.op0_register();
            counts(inst) && !block.instructions.iter().any(|other| set(other, register))
        })
}

/// Ways to run the unrolled form, the best first: how many copies it has, and how it repeats them.
/// Where addresses stay the same and a loop can count, few copies in a loop are enough, and those
/// fit any op cache.
pub fn ways(block: &Block, found: &Found, options: &Options) -> Vec<(usize, Repeat)> {
    let straight = (found.copies, Repeat::Restored);
    let counter = match Counter::of(block) {
        Ok(counter) if !options.straight && found.is_stationary() => counter,
        _ => return vec![straight],
    };
    let few = few(block, options).unwrap_or(found.copies).min(found.copies);
    vec![(few, Repeat::Counted(counter)), straight]
}

/// Where the code of each placement starts, from the start of a line.
pub fn offsets(options: &Options) -> Vec<usize> {
    match options.align {
        Some(align) => vec![align % 64],
        None => OFFSETS.iter().cycle().take(options.placements.max(1)).copied().collect(),
    }
}
