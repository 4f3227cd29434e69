//! A captured loop that runs longer than it was followed: its bound, or its counter, set so that it
//! leaves after iterations whose memory is known.

use super::exit::{Control, control};
use super::known::Known;
use super::leave_early::Bounded;
use super::only_read_by_exit;
use crate::Snapshot;
use isa::code::Block;
use isa::flow::Iteration;

/// Ways to leave the loop of a snapshot earlier, the better ones first. Only a run shows whether one works.
pub(super) fn bounded(snapshot: &Snapshot) -> Vec<Bounded> {
    let mut all = Vec::new();
    if let Some(one) = of_one_block(snapshot) {
        all.extend(one.longer(snapshot));
        all.push(one);
    }
    all.extend(only_read_by_exit::candidates(snapshot));
    all
}

/// The loop of one block, left after the iterations that were followed; `None` where it is not known to leave
/// by a register.
fn of_one_block(snapshot: &Snapshot) -> Option<Bounded> {
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
    let value = |trips| found.value(&iteration, exit, &known, trips);
    let step = value(2)?.wrapping_sub(value(1)?);
    let none = value(1)?.wrapping_sub(step) as u64;
    let steps = (0..16).filter_map(|r| Some((r, iteration.step(r).filter(|step| *step != 0)?)));
    Some(Bounded {
        register: Some(register),
        counter: None,
        value: (none, step),
        start: snapshot.registers,
        steps: steps.collect(),
        trips: snapshot.stepped,
        like: None,
    })
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
        let mut snapshot = snapshot("480307 4883c708 4839f7 75f4", registers);
        let found = bounded(&snapshot).remove(0);
        assert_eq!((found.register, found.trips, found.registers(10)[6]), (Some(6), 10, 0x7050));
        assert_eq!((found.registers(10)[7], found.registers(3)[6]), (0x7000, 0x7018));
        assert_eq!(found.ends(10).collect::<Vec<_>>(), [(7, 0x7050)]);
        // It runs longer where the program does.
        snapshot.at_least = 500;
        let trips: Vec<u64> = bounded(&snapshot).iter().map(|one| one.trips).collect();
        assert_eq!(trips, [500, 10]);
    }

    /// add rax,[rdi]; add rdi,8; cmp [rdi],0; jne: only memory decides. And a jump to elsewhere.
    #[test]
    fn what_memory_ends_is_not_bounded() {
        assert_eq!(bounded(&snapshot("480307 4883c708 48833f00 75f3", [1; 16])), []);
        assert_eq!(bounded(&snapshot("480307 4883c708 7500", [1; 16])), []);
    }
}
