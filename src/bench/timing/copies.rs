//! The layout of a block for timing: number of copies, how they repeat, where they start.

use super::measure::Repeat;
use crate::Options;
use crate::harness::loop_counter::LoopCounter;
use crate::initial::run_setup::RunSetup;
use iced_x86::Register;
use isa::code::{Block, Inst};

/// Most instructions in unrolled code; more exceed the op cache.
const MAX_INSTRUCTIONS: usize = 960;
/// Most bytes of it.
const MAX_BYTES: usize = 12 * 1024;
/// Most instructions and bytes of the copies that are traced to see whether they may run in a loop.
const LOOP_INSTRUCTIONS: usize = 120;
const LOOP_BYTES: usize = 1024;
/// Cycles of a body whose ends are negligible, and its most bytes.
const BODY: f64 = 300.0;
const BODY_BYTES: usize = 8 * 1024;
/// Most copies; `--copies` takes no more.
pub const MAX_COPIES: usize = 480;
/// Most bytes of them where the user sets their number.
const MAX_USER_BYTES: usize = 64 * 1024;
/// Offsets of the code within a cache line, one per placement.
const OFFSETS: [usize; 6] = [0, 32, 16, 48, 8, 40];

/// The number of copies of the unrolled form, which is traced: the most that fit, or the user's.
pub fn copies(block: &Block, options: &Options) -> usize {
    match options.copies {
        Some(copies) => copies.min(MAX_USER_BYTES / block.bytes.len()).max(2),
        None => (MAX_INSTRUCTIONS / block.instructions.len())
            .min(MAX_BYTES / block.bytes.len())
            .clamp(2, MAX_COPIES),
    }
}

/// Copies that suffice in a loop if addresses do not change; `None` if the code must be unrolled.
pub fn few(block: &Block, options: &Options) -> Option<usize> {
    if options.straight || options.copies.is_some() || LoopCounter::of(block).is_err() {
        return None;
    }
    let few =
        (LOOP_INSTRUCTIONS / block.instructions.len()).min(LOOP_BYTES / block.bytes.len()).max(4);
    Some(few).filter(|few| *few < copies(block, options))
}

/// Whether addresses obviously change from copy to copy: pushes and pops do not balance, or an address
/// register is incremented or decremented.
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

/// Ways to repeat the unrolled form, with the number of copies, the best first. If addresses do not
/// change and a loop counter is possible, few copies in a loop suffice, which fit any op cache.
pub fn ways(block: &Block, setup: &RunSetup, options: &Options) -> Vec<(usize, Repeat)> {
    let straight = (setup.copies, Repeat::Restored);
    let counter = match LoopCounter::of(block) {
        Ok(counter) if !options.straight && setup.is_stationary() => counter,
        _ => return vec![straight],
    };
    let few = few(block, options).unwrap_or(setup.copies).min(setup.copies);
    vec![(few, Repeat::Counted(counter)), straight]
}

/// Copies to time, by the cycles that one takes. A loop's ends cost a cycle or two, depending on their offset
/// within a cache line, which differs between the long and the short run: up to a fifth of a dense block's time
/// for bodies of 15 cycles. Blocks that write memory have few copies: memory predictors learn each of them.
pub fn timed(block: &Block, copies: usize, how: Repeat, cycles: f64, options: &Options) -> usize {
    let writes = || block.instructions.iter().any(Inst::writes_memory);
    if matches!(how, Repeat::Restored) || options.copies.is_some() || writes() {
        return copies;
    }
    let most = (MAX_INSTRUCTIONS / block.instructions.len()).min(BODY_BYTES / block.bytes.len());
    copies.max(most.min((BODY / cycles) as usize))
}

/// Offset of each placement within a cache line.
pub fn offsets(options: &Options) -> Vec<usize> {
    match options.align {
        Some(align) => vec![align % 64],
        None => OFFSETS.iter().cycle().take(options.placements.max(1)).copied().collect(),
    }
}
