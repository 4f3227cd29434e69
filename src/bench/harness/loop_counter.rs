//! The counter of the loop form: in an unused register or in memory, and without changing a flag that
//! is live across iterations.

use super::emitter::{Emitter, RCX};
use crate::sandbox::layout::{self as at, context};
use iced_x86::{Register, RflagsBits};
use isa::code::Block;
use std::fmt;

/// The kind of counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopCounter {
    /// `dec` of an unused register, which changes every flag but the carry.
    Register(u8),
    /// `dec` of memory, with the same flags.
    Memory,
    /// `lea` and `jrcxz` with an unused `rcx`: changes no flag.
    Rcx,
    /// `rcx`, with the block's `rcx` saved in a register around it.
    SavedRcx {
        /// The counter.
        counter: u8,
        /// Holds the block's `rcx` meanwhile.
        saved_rcx: u8,
    },
}

/// Nothing can count the iterations of a block: a flag is live across them, and too few registers are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCounter;

impl fmt::Display for NoCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not possible: a flag is live across iterations, and counting without flags needs an unused rcx or two \
             other unused registers",
        )
    }
}

impl LoopCounter {
    /// The counter for a block.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(block: &Block) -> Result<Self, NoCounter> {
        let free = free_registers(block);
        if block.flags_live_in() & !RflagsBits::CF == 0 {
            return Ok(free.first().map_or(Self::Memory, |r| Self::Register(*r)));
        }
        match (free.contains(&RCX), free.as_slice()) {
            (true, _) => Ok(Self::Rcx),
            (_, [counter, saved_rcx, ..]) => {
                Ok(Self::SavedRcx { counter: *counter, saved_rcx: *saved_rcx })
            }
            _ => Err(NoCounter),
        }
    }

    /// Whether it changes a flag that is live across iterations of `block`.
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
            Self::SavedRcx { counter, .. } => code.load32(counter, count),
            Self::Memory => {}
        }
    }

    /// Counts, and jumps to `head` unless that was the last iteration.
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
            Self::SavedRcx { counter, saved_rcx } => {
                code.step_down(counter);
                code.copy(saved_rcx, RCX);
                code.copy(RCX, counter);
                code.skip_if_rcx_is_zero(MOVE + JUMP);
                code.copy(RCX, saved_rcx);
                code.jump(head);
                code.copy(RCX, saved_rcx);
            }
        }
    }
}

/// Encoding numbers of registers that the block does not use, the highest first.
pub(super) fn free_registers(block: &Block) -> Vec<u8> {
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

    fn of(hex: &str) -> Result<LoopCounter, NoCounter> {
        LoopCounter::of(&Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap())
    }

    #[test]
    fn flags_live_across_iterations_are_preserved() {
        assert_eq!(of("4801d8"), Ok(LoopCounter::Register(15))); // add rax,rbx
        assert_eq!(of("4811d8"), Ok(LoopCounter::Register(15))); // adc rax,rbx
        assert_eq!(of("f3a4"), Ok(LoopCounter::Register(15))); // rep movsb reads the direction only
        assert_eq!(of("480f44c3"), Ok(LoopCounter::Rcx)); // cmovz rax,rbx
        assert_eq!(of("480f44c1"), Ok(LoopCounter::SavedRcx { counter: 15, saved_rcx: 14 }));
        // sar rax,cl writes no flag if cl is 0, so that the jump's may be older.
        assert_eq!(of("48d3f8 74fb"), Ok(LoopCounter::SavedRcx { counter: 15, saved_rcx: 14 }));
    }
}
