//! The counter of arrivals at the entry of a region: an unused register, or memory, without changing a live flag.

use super::immovable::Immovable;
use super::loop_counter::free_registers;
use iced_x86::{FlowControl, RflagsBits};
use isa::code::{Block, Inst};
use std::collections::HashMap;

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
