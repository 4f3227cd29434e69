//! How the loop form counts: in a register that the block leaves alone, or in memory, and without
//! touching a flag that lives from one iteration to the next.

use super::emitter::{Emitter, RCX};
use crate::sandbox::layout::{self as at, context};
use iced_x86::{Register, RflagsBits};
use isa::code::Block;

/// Where and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// `dec` of an unused register, which changes every flag but the carry.
    Register(u8),
    /// `dec` of memory, with the same flags.
    Memory,
    /// `lea` and `jrcxz` in an unused `rcx`: no flag changes.
    Rcx,
    /// The same with `rcx` put aside meanwhile.
    Aside {
        /// Counts.
        counter: u8,
        /// Keeps the block's `rcx`.
        kept: u8,
    },
}

impl Counter {
    /// For a block.
    ///
    /// # Errors
    /// Why it cannot be counted.
    pub fn of(block: &Block) -> Result<Self, &'static str> {
        let free = free_registers(block);
        if block.flags_live_in() & !RflagsBits::CF == 0 {
            return Ok(free.first().map_or(Self::Memory, |r| Self::Register(*r)));
        }
        match (free.contains(&RCX), free.as_slice()) {
            (true, _) => Ok(Self::Rcx),
            (_, [counter, kept, ..]) => Ok(Self::Aside { counter: *counter, kept: *kept }),
            _ => Err("not possible: a flag lives across iterations, and counting without flags \
                      takes an unused rcx or two other unused registers"),
        }
    }

    /// Whether it changes a flag that lives across the iterations of `block`.
    pub fn disturbs(self, block: &Block) -> bool {
        matches!(self, Self::Register(_) | Self::Memory)
            && block.flags_live_in() & !RflagsBits::CF != 0
    }

    /// Loads the number of iterations.
    pub fn start(self, code: &mut Emitter) {
        let count = at::CONTEXT + context::LEFT;
        match self {
            Self::Register(register) => code.load32(register, count),
            Self::Rcx => code.load32(RCX, count),
            Self::Aside { counter, .. } => code.load32(counter, count),
            Self::Memory => {}
        }
    }

    /// Counts, and goes on at `head` unless that was the last iteration.
    pub fn end(self, code: &mut Emitter, head: usize) {
        /// Bytes of a jump, and of a move between registers.
        const JUMP: u8 = 5;
        const MOVE: u8 = 3;
        match self {
            Self::Register(register) => {
                code.decrement_register(register);
                code.jump_if_not_zero(head);
            }
            Self::Memory => {
                code.decrement(at::CONTEXT + context::LEFT);
                code.jump_if_not_zero(head);
            }
            Self::Rcx => {
                code.step_down(RCX);
                code.skip_if_rcx_is_zero(JUMP);
                code.jump(head);
            }
            Self::Aside { counter, kept } => {
                code.step_down(counter);
                code.copy(kept, RCX);
                code.copy(RCX, counter);
                code.skip_if_rcx_is_zero(MOVE + JUMP);
                code.copy(RCX, kept);
                code.jump(head);
                code.copy(RCX, kept);
            }
        }
    }
}

/// Registers that the block does not use, as encoding numbers, the highest first.
fn free_registers(block: &Block) -> Vec<u8> {
    let unused = |number: &u8| {
        !block.uses(|r| {
            let full = r.full_register();
            full.is_gpr64() && full != Register::RIP && full.number() == usize::from(*number)
        })
    };
    (0..16u8).rev().filter(|r| *r != 4).filter(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hex: &str) -> Result<Counter, &'static str> {
        Counter::of(&Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap())
    }

    #[test]
    fn a_carry_across_iterations_survives_dec_and_other_flags_are_left_alone() {
        assert_eq!(of("4801d8"), Ok(Counter::Register(15))); // add rax,rbx
        assert_eq!(of("4811d8"), Ok(Counter::Register(15))); // adc rax,rbx
        assert_eq!(of("f3a4"), Ok(Counter::Register(15))); // rep movsb reads the direction only
        assert_eq!(of("480f44c3"), Ok(Counter::Rcx)); // cmovz rax,rbx
        assert_eq!(of("480f44c1"), Ok(Counter::Aside { counter: 15, kept: 14 }));
        // sar rax,cl writes no flag if cl is 0, so that the jump's may be older.
        assert_eq!(of("48d3f8 74fb"), Ok(Counter::Aside { counter: 15, kept: 14 }));
    }
}
