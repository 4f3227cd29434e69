//! Counters in an unused register or in memory that change no live flag: of the iterations of the loop form, and of
//! arrivals at the entry of a region.

use super::emitter::{Emitter, RCX};
use super::region::Immovable;
use crate::sandbox::layout as at;
use crate::sandbox::layout::context;
use iced_x86::{FlowControl, Register, RflagsBits};
use isa::code::{Block, Inst};
use std::collections::HashMap;
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
fn free_registers(block: &Block) -> Vec<u8> {
    let unused = |number: &u8| {
        !block.uses(|r| {
            let full = r.full_register();
            full.is_gpr64() && full != Register::RIP && full.number() == usize::from(*number)
        })
    };
    (0..16u8).rev().filter(|r| *r != 4).filter(unused).collect()
}

/// The kind of counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// `dec` of a general-purpose register (encoding number) that the code does not use.
    Register(u8),
    /// `dec` of memory of the sandbox.
    Memory,
}

impl Counter {
    /// The counter for the code of `ranges` (address and bytes), which is entered at `entry`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(ranges: &[(u64, Vec<u8>)], entry: u64) -> Result<Self, Immovable> {
        let (mut code, mut unused) = (HashMap::new(), (0..16).collect::<Vec<u8>>());
        for (start, bytes) in ranges {
            let block = Block::decode(bytes)?;
            let free = free_registers(&block);
            unused.retain(|register| free.contains(register));
            let placed = |inst: Inst| (start + inst.offset as u64, (*start, inst));
            code.extend(block.instructions.into_iter().map(placed));
        }
        if reads_flags(&code, entry) {
            return Err(Immovable::LiveFlag);
        }
        Ok(unused.last().map_or(Self::Memory, |register| Self::Register(*register)))
    }

    /// Counts, and leaves at zero: the bytes, the field with the distance to the counter in memory, and that
    /// of the jump.
    pub(super) fn code(self) -> (Vec<u8>, Option<usize>, usize) {
        let jump = [0x0f, 0x84, 0, 0, 0, 0];
        match self {
            Self::Register(r) => {
                let count = [0x40 | r >> 3, 0xff, 0xc8 | r & 7];
                ([&count[..], &jump].concat(), None, count.len() + 2)
            }
            Self::Memory => {
                let count = [0xff, 0x0d, 0, 0, 0, 0];
                ([&count[..], &jump].concat(), Some(2), count.len() + 2)
            }
        }
    }
}

/// Whether a flag that `dec` changes may be read from `entry` on before it is written.
fn reads_flags(code: &HashMap<u64, (u64, Inst)>, entry: u64) -> bool {
    // All but the carry, which `dec` leaves (Intel SDM, DEC).
    let changed =
        RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;
    // Which flags were already live when an instruction was looked at.
    let (mut seen, mut left) = (HashMap::<u64, u32>::new(), vec![(entry, changed)]);
    while let Some((at, live)) = left.pop() {
        let known = seen.entry(at).or_default();
        let Some((start, inst)) = code.get(&at).filter(|_| live & !*known != 0) else { continue };
        *known |= live;
        if inst.decoded.rflags_read() & live != 0 {
            return true;
        }
        let live = live & !inst.flags_written();
        let target = start.wrapping_add(inst.decoded.near_branch_target());
        let next = at + inst.bytes.len() as u64;
        match inst.decoded.flow_control() {
            FlowControl::UnconditionalBranch => left.push((target, live)),
            FlowControl::ConditionalBranch => left.extend([(target, live), (next, live)]),
            _ => left.push((next, live)),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::code::parse_hex;

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

    #[test]
    fn flags_that_are_live_at_the_entry_are_not_changed() {
        let of = |hex: &str| Counter::of(&[(0x1000, parse_hex(hex).unwrap())], 0x1000);
        // cmp rax,rbx; je +2; inc rax; jmp → 0x1000
        assert_eq!(of("4839d8 7405 48ffc0 ebf6"), Ok(Counter::Register(15)));
        // je +5 first, by the flags of the inc
        assert!(of("7405 48ffc0 ebf9").is_err());
        // adc rax,rbx reads the carry only
        assert_eq!(of("4811d8 75fb"), Ok(Counter::Register(15)));
        // mov rax,rbx; jmp → 0x1005; jne → 0x1000
        assert!(of("4889d8 eb00 75f9").is_err());
    }
}
