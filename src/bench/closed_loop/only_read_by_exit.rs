//! Registers that only the exit of a captured loop of several blocks reads: setting one ends the loop earlier and
//! changes nothing before. From the registers before and after the iterations that were followed.

use super::leave_early::Bounded;
use crate::Snapshot;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use isa::code::{Block, Inst};

/// An instruction and its address in the program.
struct Placed {
    at: u64,
    inst: Inst,
}

impl Placed {
    fn next(&self) -> u64 {
        self.at + self.inst.bytes.len() as u64
    }
}

/// Ways to end the loop after the iterations that were followed. Which is right, if any, follows from running it.
pub(super) fn candidates(snapshot: &Snapshot) -> Vec<Bounded> {
    let Some((trips, after)) = snapshot.followed_to.filter(|(trips, _)| *trips >= 2) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (start, bytes) in &snapshot.code {
        let Ok(block) = Block::decode(bytes) else { return Vec::new() };
        let placed = |inst: Inst| Placed { at: start + inst.offset as u64, inst };
        all.extend(block.instructions.into_iter().map(|inst| (*start, placed(inst))));
    }
    let registers = &snapshot.registers;
    // The change of a register with each iteration, if it may be a fixed one.
    let step = |r: u8| {
        let change = after[usize::from(r)].wrapping_sub(registers[usize::from(r)]) as i64;
        (change % trips as i64 == 0).then_some(change / trips as i64)
    };
    let exits: Vec<_> = all
        .windows(2)
        .filter_map(|pair| match pair {
            [(range, compare), (same, jump)] if range == same => {
                leaves(snapshot, *range, jump).then_some((*range, compare, jump))
            }
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for (range, compare, jump) in &exits {
        // Exits that compare the same.
        let alike = exits.iter().filter(|(_, other, _)| {
            compared(&other.inst.decoded) == compared(&compare.inst.decoded)
        });
        let alike: Vec<u64> = alike.map(|(_, other, _)| other.at).collect();
        let target = range.wrapping_add(jump.inst.decoded.near_branch_target());
        let is_last = [target, jump.next()].contains(&snapshot.address);
        let is_only = |r: u8| only_read_at(all.iter().map(|(_, placed)| placed), r, &alike);
        let add = |(register, value): (u8, (u64, i64)), steps: Vec<(u8, i64)>| Bounded {
            register: Some(register),
            counter: None,
            value,
            start: *registers,
            steps,
            trips,
            like: is_last.then_some((trips, after)),
        };
        match compared(&compare.inst.decoded) {
            Some((one, Some(other))) => {
                for (moving, bound) in [(one, other), (other, one)] {
                    let Some(by) = step(moving).filter(|by| *by != 0) else { continue };
                    if step(bound) != Some(0) || !is_only(bound) {
                        continue;
                    }
                    // The comparison may use the value before or after the step.
                    for off in [0, by.wrapping_neg(), by] {
                        let none = registers[usize::from(moving)].wrapping_add(off as u64);
                        found.push(add((bound, (none, by)), vec![(moving, by)]));
                    }
                }
            }
            Some((counter, None)) => {
                let Some(by) = step(counter).filter(|by| *by != 0 && is_only(counter)) else {
                    continue;
                };
                found.push(add((counter, (0, by.wrapping_neg())), vec![(counter, by)]));
            }
            None => {}
        }
    }
    found
}

/// Whether a conditional jump leaves the loop in one of its directions.
fn leaves(snapshot: &Snapshot, range: u64, jump: &Placed) -> bool {
    let inside = |at: u64| {
        snapshot.code.iter().any(|(start, code)| (*start..start + code.len() as u64).contains(&at))
    };
    let decoded = &jump.inst.decoded;
    decoded.is_jcc_short_or_near()
        && inside(range.wrapping_add(decoded.near_branch_target())) != inside(jump.next())
}

/// The registers that an instruction compares, or the one that it counts.
fn compared(decoded: &Instruction) -> Option<(u8, Option<u8>)> {
    let number = |register: Register| {
        (register.is_gpr32() || register.is_gpr64()).then(|| register.number() as u8)
    };
    let (first, second) = (number(decoded.op0_register())?, number(decoded.op1_register()));
    match decoded.mnemonic() {
        Mnemonic::Cmp => Some((first, Some(second?))),
        Mnemonic::Dec | Mnemonic::Inc => Some((first, None)),
        Mnemonic::Sub | Mnemonic::Add
            if second.is_none() && decoded.op1_kind() != OpKind::Memory =>
        {
            Some((first, None))
        }
        _ => None,
    }
}

/// Whether no instruction but those at `these` addresses uses register `r`.
fn only_read_at<'a>(mut all: impl Iterator<Item = &'a Placed>, r: u8, these: &[u64]) -> bool {
    let uses = |inst: &Inst| {
        let full = inst.registers.iter().map(|used| used.register().full_register());
        full.filter(|register| register.is_gpr())
            .any(|register| register.number() == usize::from(r))
    };
    !all.any(|placed| !these.contains(&placed.at) && uses(&placed.inst))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::code::parse_hex;

    /// 0x1000: test byte [rdi],1; je 0x1008; inc rax; 0x1008: inc rdi; cmp rdi,rsi; jne 0x1000
    const COUNTS: &str = "f60701 7403 48ffc0 48ffc7 4839f7 75f0";

    #[test]
    fn a_bound_that_only_the_exit_reads_is_found() {
        let mut snapshot = Snapshot {
            address: 0x1000,
            code: vec![(0x1000, parse_hex(COUNTS).unwrap())],
            ..Snapshot::default()
        };
        (snapshot.registers[7], snapshot.registers[6]) = (0x7000, 0x9000);
        let mut after = snapshot.registers;
        (after[7], after[0]) = (0x7100, 99);
        snapshot.followed_to = Some((256, after));
        let found = candidates(&snapshot).remove(0);
        assert_eq!((found.register, found.registers(100)[6]), (Some(6), 0x7064));
        assert_eq!(
            (found.ends(100).collect::<Vec<_>>(), found.like),
            (vec![(7, 0x7064)], Some((256, after)))
        );
        // add rax,rsi in between reads the bound.
        snapshot.code[0].1 = parse_hex("f60701 7403 4801f0 48ffc7 4839f7 75f0").unwrap();
        assert_eq!(candidates(&snapshot), []);
    }
}
