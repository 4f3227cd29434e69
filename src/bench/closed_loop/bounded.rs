//! A captured loop that runs longer than it was followed: its bound, or its counter, set so that it
//! leaves after iterations whose memory is known.

use super::exit::{Control, control};
use super::known::Known;
use super::only_read_by_exit;
use crate::Snapshot;
use crate::timing::measure::EIGHTHS;
use isa::code::Block;
use isa::flow::Iteration;

/// Iterations that are run where the memory around is known too: enough that what an execution takes to start is over.
const ENOUGH: u64 = 1024;

/// How a loop is made to leave earlier than in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounded {
    /// The register that is not the program's, by encoding number.
    pub register: u8,
    /// What it holds for no iteration, and its change with each.
    pub value: (u64, i64),
    /// Registers at the start in the program.
    pub start: [u64; 16],
    /// Registers that change by a fixed amount, and this amount.
    pub steps: Vec<(u8, i64)>,
    /// Iterations until it leaves.
    pub trips: u64,
    /// Where the program was seen after as many iterations: all registers then, but the one that was set.
    pub like: Option<(u64, [u64; 16])>,
}

impl Bounded {
    /// Registers with which it leaves after `trips`.
    pub fn registers(&self, trips: u64) -> [u64; 16] {
        let mut registers = self.start;
        registers[usize::from(self.register)] = moved(self.value.0, self.value.1, trips);
        registers
    }

    /// Registers that are known then.
    pub fn ends(&self, trips: u64) -> impl Iterator<Item = (u8, u64)> {
        let registers = self.registers(trips);
        self.steps.iter().map(move |(r, step)| (*r, moved(registers[usize::from(*r)], *step, trips)))
    }

    /// Trips of a run of length number `n`, from the longest.
    pub fn length(&self, n: usize) -> u64 {
        self.trips - n as u64 * self.eighth()
    }

    /// The same with as many iterations as are enough, if the program has more than `self`.
    pub fn longer(&self, snapshot: &Snapshot) -> Option<Self> {
        let trips = snapshot.at_least.min(ENOUGH);
        (trips > self.trips).then(|| Self { trips, ..self.clone() })
    }

    /// How many trips the lengths differ by; 0 where it has too few for several lengths.
    pub fn eighth(&self) -> u64 {
        if self.trips < 4 * EIGHTHS as u64 { 0 } else { self.trips / 8 }
    }
}

fn moved(value: u64, step: i64, trips: u64) -> u64 {
    value.wrapping_add(step.wrapping_mul(trips as i64) as u64)
}

/// Ways in which the loop of a snapshot may leave earlier, the better ones first. Each has to be run to know
/// whether it does.
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
        register,
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
        assert_eq!((found.register, found.trips, found.registers(10)[6]), (6, 10, 0x7050));
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
