//! Whether cycles per entry can be those of a block's instructions.

use iced_x86::OpKind;
use isa::code::Block;

/// Instructions a core can retire in a cycle, more than any in the tables (8, with fused pairs up to
/// twice as many).
const WIDEST: f64 = 16.0;
/// Cycles that one instruction without memory may take on average: a 64-bit division on the oldest
/// cores in the tables takes about as long (uops.info: DIV r64 on Haswell and Skylake, up to 100).
const SLOWEST: f64 = 100.0;
/// Cycles that one memory operand may take: a miss to remote memory with its page walk.
const FARTHEST: f64 = 2_000.0;

/// Why `cycles` per entry, known to `error` as a ratio, cannot be those of the block; `None`: they
/// can.
pub fn contradiction(bytes: &[u8], cycles: f64, error: f64) -> Option<String> {
    let block = Block::decode(bytes).ok()?;
    let number = block.instructions.len() as f64;
    let is_far = |i: &iced_x86::Instruction| {
        let memory = (0..i.op_count()).any(|at| i.op_kind(at) == OpKind::Memory);
        memory || i.is_string_instruction() || i.is_stack_instruction()
    };
    if block.instructions.iter().any(|i| has_no_bound(&i.decoded)) {
        return None;
    }
    let far = block.instructions.iter().filter(|i| is_far(&i.decoded)).count() as f64;
    let (low, high) = (cycles * (1.0 - error).max(0.0), cycles * (1.0 + error));
    let most = SLOWEST * number + FARTHEST * far;
    let few = high < number / WIDEST;
    (few || low > most).then(|| {
        let amount = if few { "too few for any core" } else { "too many for any core" };
        format!(
            "entry counts and samples disagree: {cycles:.3} cycles per entry of {number} \
             instructions are {amount}"
        )
    })
}

/// Whether one execution may take any time: repeated moves, system calls and waits.
fn has_no_bound(instruction: &iced_x86::Instruction) -> bool {
    use iced_x86::Mnemonic::{Cpuid, Mwait, Pause, Rdrand, Rdseed, Syscall, Tpause, Umwait};
    instruction.has_rep_prefix()
        || instruction.has_repne_prefix()
        || matches!(
            instruction.mnemonic(),
            Cpuid | Mwait | Pause | Rdrand | Rdseed | Syscall | Tpause | Umwait
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_that_no_core_can_take_are_reported() {
        // add rax,rbx; imul rcx,rdx
        let code = [0x48, 0x01, 0xd8, 0x48, 0x0f, 0xaf, 0xca];
        assert_eq!(contradiction(&code, 3.0, 0.1), None);
        assert!(
            contradiction(&code, 400.0, 0.1)
                .is_some_and(|why| why.contains("too many for any core"))
        );
        assert_eq!(contradiction(&code, 210.0, 0.2), None);
        assert!(
            contradiction(&code, 0.01, 0.1).is_some_and(|why| why.contains("too few for any core"))
        );
        // mov rax,[rax] may miss every cache; rep movsb takes as long as it likes.
        assert_eq!(contradiction(&[0x48, 0x8b, 0x00], 900.0, 0.1), None);
        assert_eq!(contradiction(&[0xf3, 0xa4], 1e9, 0.1), None);
    }
}
