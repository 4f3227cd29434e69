//! Shortens a captured loop that runs longer than it was followed: its bound or its counter is set so that it
//! leaves after iterations whose memory is known.

use super::arrays::Known;
use super::exit::{Control, control};
use crate::Snapshot;
use crate::harness::loop_counter::Counter;
use crate::timing::measure::EIGHTHS;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use isa::code::{Block, Inst};
use isa::flow::Iteration;

/// Iterations to run where enough memory is known: enough to amortise an execution's start-up.
const ENOUGH: u64 = 1024;

/// Ways to leave the loop of a snapshot earlier, the better ones first. Only a run shows whether one works.
pub(super) fn bounded(snapshot: &Snapshot) -> Vec<Bounded> {
    let mut all = Vec::new();
    if let Some(one) = of_one_block(snapshot) {
        all.extend(one.longer(snapshot));
        all.push(one);
    }
    all.extend(candidates(snapshot));
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

/// A way to leave the loop earlier than in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounded {
    /// The register to set, by encoding number; `None` if a counter in memory ends the loop.
    pub register: Option<u8>,
    /// The counter of its iterations, where no register of the program ends it.
    pub counter: Option<Counter>,
    /// The register's or counter's value for no iteration, and its change with each.
    pub value: (u64, i64),
    /// Registers at the start in the program.
    pub start: [u64; 16],
    /// Registers that change by a fixed amount, and this amount.
    pub steps: Vec<(u8, i64)>,
    /// Iterations until it leaves.
    pub trips: u64,
    /// Iterations after which the program was observed, and all registers then, but the one that was set.
    pub like: Option<(u64, [u64; 16])>,
}

impl Bounded {
    /// The loop left by `counter` after the iterations that were followed; `None` if it was not.
    pub fn counted(snapshot: &Snapshot, counter: Counter) -> Option<Self> {
        let (trips, after) = snapshot.followed_to.filter(|(trips, _)| *trips > 0)?;
        let register = match counter {
            Counter::Register(register) => Some(register),
            Counter::Memory => None,
        };
        let (value, steps, like) = ((0, 1), Vec::new(), Some((trips, after)));
        let start = snapshot.registers;
        Some(Self { register, counter: Some(counter), value, start, steps, trips, like })
    }

    /// Registers with which it leaves after `trips`.
    pub fn registers(&self, trips: u64) -> [u64; 16] {
        let mut registers = self.start;
        if let Some(register) = self.register {
            registers[usize::from(register)] = moved(self.value.0, self.value.1, trips);
        }
        registers
    }

    /// Registers that are known then.
    pub fn ends(&self, trips: u64) -> impl Iterator<Item = (u8, u64)> {
        let registers = self.registers(trips);
        self.steps
            .iter()
            .map(move |(r, step)| (*r, moved(registers[usize::from(*r)], *step, trips)))
    }

    /// Trips of a run of length number `n`, from the longest.
    pub fn length(&self, n: usize) -> u64 {
        self.trips - n as u64 * self.eighth()
    }

    /// Extended to [`ENOUGH`] iterations, if the program has more than `self`.
    pub fn longer(&self, snapshot: &Snapshot) -> Option<Self> {
        let trips = snapshot.at_least.min(ENOUGH);
        (trips > self.trips).then(|| Self { trips, ..self.clone() })
    }

    /// Difference in trips between lengths; 0 if there are too few trips for several lengths.
    pub fn eighth(&self) -> u64 {
        let enough = if self.counter.is_some() { 8 } else { 4 * EIGHTHS as u64 };
        if self.trips < enough { 0 } else { self.trips / 8 }
    }
}

fn moved(value: u64, step: i64, trips: u64) -> u64 {
    value.wrapping_add(step.wrapping_mul(trips as i64) as u64)
}

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

/// Ways to end a loop of several blocks after the iterations that were followed, from the registers before and after
/// those: setting a register that only its exit reads changes nothing before. Which is right, if any, follows from
/// running it.
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
