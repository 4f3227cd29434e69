//! A captured loop that runs longer than it was followed: its bound, or its counter, set so that it
//! leaves after the iterations whose memory is known.

use super::exit::{Control, control};
use super::known::Known;
use crate::Snapshot;
use isa::code::Block;
use isa::flow::Iteration;

/// Where a loop of one block starts so that it leaves earlier than in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounded {
    /// The register that is not the program's, by encoding number.
    pub register: u8,
    /// All registers.
    pub registers: [u64; 16],
    /// Iterations until it leaves.
    pub trips: u64,
    /// Registers that change by a fixed amount, and what they hold then.
    pub ends: Vec<(u8, u64)>,
}

/// The loop of a snapshot, left after the iterations that were followed; `None` where it is not known to
/// leave by a register.
pub(super) fn bounded(snapshot: &Snapshot) -> Option<Bounded> {
    let [(start, bytes)] = snapshot.code.as_slice() else { return None };
    let block = Block::decode(bytes).ok().filter(Block::is_loop_body)?;
    if *start != snapshot.address || snapshot.stepped < 2 {
        return None;
    }
    let decoded: Vec<_> = block.instructions.iter().map(|i| i.decoded).collect();
    let iteration = Iteration::of(&decoded);
    let exit = iteration.exit.as_ref()?;
    let mut known = Known::default();
    for (register, value) in (0..).zip(snapshot.registers) {
        known.set(register, value as i64);
    }
    let accessed = iteration.accesses.iter().flat_map(|access| access.address.registers());
    let addresses: Vec<u8> = accessed.map(|(register, _)| register).collect();
    let found = control(&iteration, exit, &addresses)?;
    let Control::Register(register, _) = found else { return None };
    // An address must stay the program's.
    if addresses.contains(&register) {
        return None;
    }
    let value = found.value(&iteration, exit, &known, usize::try_from(snapshot.stepped).ok()?)?;
    let mut registers = snapshot.registers;
    registers[usize::from(register)] = value as u64;
    let steps = (0..16).filter_map(|r| Some((r, iteration.step(r).filter(|step| *step != 0)?)));
    let end = |(r, step): (u8, i64)| {
        let moved = step.wrapping_mul(snapshot.stepped as i64) as u64;
        (r, registers[usize::from(r)].wrapping_add(moved))
    };
    let ends = steps.map(end).collect();
    Some(Bounded { register, registers, trips: snapshot.stepped, ends })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::code::parse_hex;

    fn snapshot(hex: &str, registers: [u64; 16]) -> Snapshot {
        let code = vec![(0x1000, parse_hex(hex).unwrap())];
        Snapshot { address: 0x1000, code, registers, stepped: 10, ..Snapshot::default() }
    }

    /// add rax,[rdi]; add rdi,8; cmp rdi,rsi; jne: the end pointer is 10 elements of 8 bytes away.
    #[test]
    fn a_bound_is_set_and_addresses_stay() {
        let mut registers = [0; 16];
        (registers[7], registers[6]) = (0x7000, 0x9000);
        let found = bounded(&snapshot("480307 4883c708 4839f7 75f4", registers)).unwrap();
        assert_eq!((found.register, found.registers[6]), (6, 0x7050));
        assert_eq!((found.registers[7], found.ends), (0x7000, vec![(7, 0x7050)]));
    }

    /// add rax,[rdi]; add rdi,8; cmp [rdi],0; jne: only memory decides. And a jump to elsewhere.
    #[test]
    fn what_memory_ends_is_not_bounded() {
        assert_eq!(bounded(&snapshot("480307 4883c708 48833f00 75f3", [1; 16])), None);
        assert_eq!(bounded(&snapshot("480307 4883c708 7500", [1; 16])), None);
    }
}
