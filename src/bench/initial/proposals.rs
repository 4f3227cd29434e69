//! Proposes other initial values: for the inputs that a failing instruction depends on (its backward slice), and by
//! hill climbing, which starts from the run that got furthest and changes one input of the failing instruction at a
//! time.

use super::run_setup::RunSetup;
use super::value_search::{Candidate, FailedRun, MIN_COPIES, ValueSearch, writes};
use crate::values::{CONSTANT, Values};
use iced_x86::{Mnemonic, Register};
use isa::code::{Block, Inst};
use tma::Result;

/// Budget of one search, in runs; a run with many pages counts as several. Not in time, since the same block must
/// get the same values each time.
const BUDGET: usize = 400;

/// Inputs of the block that a failing instruction depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Influences {
    /// Encoding numbers of general-purpose registers, the nearest first.
    pub registers: Vec<u8>,
    /// Whether it depends on loaded values.
    pub memory: bool,
    /// Whether it depends on vector registers.
    pub vectors: bool,
}

/// Follows the operands of `instruction` backwards through the block, including loop-carried
/// dependencies.
fn influences(block: &Block, instruction: usize) -> Influences {
    let mut found = Influences::default();
    let mut reached: Vec<Register> = Vec::new();
    let failing = &block.instructions[instruction];
    for memory in &failing.memory {
        for register in [memory.base(), memory.index()] {
            reach(&mut reached, register);
        }
    }
    if computes(failing) {
        operands(failing, &mut reached, &mut found);
    }
    let mut next = 0;
    while let Some(register) = reached.get(next).copied() {
        next += 1;
        // Backwards from the failing instruction, then from the end.
        let (before, after) = block.instructions.split_at(instruction);
        for inst in before.iter().rev().chain(after.iter().rev()) {
            let writes = inst.registers.iter().any(|used| {
                Inst::writes(used.access()) && used.register().full_register() == register
            });
            if writes && !is_constant(inst) {
                operands(inst, &mut reached, &mut found);
            }
        }
        if found.memory && next == reached.len() {
            for inst in block.instructions.iter().filter(|i| i.writes_memory()) {
                operands(inst, &mut reached, &mut Influences::default());
            }
        }
    }
    let inputs = block.inputs();
    found.vectors |= reached.iter().any(|r| r.is_vector_register());
    found.registers = reached
        .iter()
        .filter(|r| r.is_gpr64() && inputs.contains(r))
        .map(|r| r.number() as u8)
        .collect();
    found
}

/// Whether it may fault because of operand values rather than addresses.
fn computes(inst: &Inst) -> bool {
    use Mnemonic as M;
    matches!(
        inst.decoded.mnemonic(),
        M::Div | M::Idiv | M::Ldmxcsr | M::Vldmxcsr | M::Fldcw | M::Fldenv | M::Frstor
    )
}

/// `xor eax,eax` and the like: the result does not depend on the register.
fn is_constant(inst: &Inst) -> bool {
    use Mnemonic as M;
    let same = matches!(inst.decoded.mnemonic(), M::Xor | M::Sub | M::Pxor | M::Xorps | M::Vpxor);
    let (first, second) = (inst.decoded.op0_register(), inst.decoded.op1_register());
    same && first != Register::None && first == second
}

fn reach(reached: &mut Vec<Register>, register: Register) {
    let full = register.full_register();
    if (full.is_gpr() || full.is_vector_register()) && !reached.contains(&full) {
        reached.push(full);
    }
}

/// The registers that `inst` reads, and whether it loads.
fn operands(inst: &Inst, reached: &mut Vec<Register>, found: &mut Influences) {
    for used in inst.registers.iter().filter(|used| Inst::reads(used.access())) {
        reach(reached, used.register());
    }
    found.memory |= inst.memory.iter().any(|memory| Inst::reads(memory.access()));
}

/// Values for a register, from address over count to divisor.
const REGISTER: [u64; 16] = [
    0,
    CONSTANT,
    1,
    0x40,
    CONSTANT + 8,
    CONSTANT + 0x10,
    0x2234_5600,
    0x1000,
    0x1_0000,
    0x10_0000,
    0x4000_0000,
    0x1234_5678_0000,
    0x3f,
    0xffff_ffff,
    0x8000_0000,
    u64::MAX,
];

/// Values for memory: two addresses of 32 bits, addresses of 64, counts, control words.
const MEMORY: [u64; 12] = [
    0x0000_1240_0000_1240,
    CONSTANT,
    0,
    0x40,
    1,
    0x1234_5600_1234_5600,
    0x0001_0001_0001_0001,
    0x10_0000,
    0x0000_1f80_0000_1f80,
    0x037f_037f_037f_037f,
    0x1234_5678_0000,
    u64::MAX,
];

const VECTOR: [u64; 4] = [CONSTANT, 0, 0x0000_0040_0000_0040, 0x1234_5600_1234_5600];

/// Sets of initial values that differ from `values` in one input of the failing instruction, the
/// likeliest first. `touched` are the addresses that it accessed, with sizes; `aligned` says whether
/// to correct their alignment.
fn proposals(
    values: &Values,
    influences: &Influences,
    touched: &[(u64, u64)],
    aligned: bool,
) -> Vec<Values> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Values)| {
        let mut changed = values.clone();
        change(&mut changed);
        if changed != *values && !all.contains(&changed) {
            all.push(changed);
        }
    };
    let registers = || influences.registers.iter().map(|r| usize::from(*r));
    for (address, size) in touched.iter().filter(|_| aligned) {
        let excess = address % (*size).max(16).next_power_of_two();
        for r in registers().filter(|_| excess > 0) {
            add(&|v| v.registers[r] = v.registers[r].wrapping_sub(excess));
            add(&|v| v.registers[r] = v.registers[r].wrapping_add(excess));
        }
    }
    for r in registers() {
        REGISTER.iter().for_each(|value| add(&|v| v.registers[r] = *value));
    }
    if influences.memory {
        MEMORY.iter().for_each(|value| add(&|v| v.memory = *value));
    }
    if influences.vectors {
        VECTOR.iter().for_each(|value| add(&|v| v.vector = *value));
    }
    all
}

/// Sets of initial values that may reduce the movement of addresses between copies: smaller strides and indices.
pub fn smaller_strides(block: &Block, values: &Values) -> Vec<Values> {
    let mut found = Influences::default();
    for (i, inst) in block.instructions.iter().enumerate() {
        if inst.touches_memory() {
            let own = influences(block, i);
            found.memory |= own.memory;
            for register in own.registers {
                if !found.registers.contains(&register) {
                    found.registers.push(register);
                }
            }
        }
    }
    let mut all = Vec::new();
    for register in found.registers {
        for value in [0, 8, 0x40, CONSTANT] {
            let mut changed = values.clone();
            changed.registers[usize::from(register)] = value;
            all.push(changed);
        }
    }
    let words = [0, 0x40, CONSTANT].into_iter().filter(|_| found.memory);
    all.extend(words.map(|memory| Values { memory, ..values.clone() }));
    all.retain(|changed| changed != values);
    all
}

/// Change of a register by which the slope of the failing address is measured.
const STEP: u64 = 64;

/// Values for a register with which the address can be mapped, by linear extrapolation: increasing
/// the register by [`STEP`] moved the address from `before` to `after`.
fn solve_linear(value: u64, before: u64, after: u64) -> Vec<u64> {
    let slope = after.wrapping_sub(before) as i64 / STEP as i64;
    if slope == 0 {
        return Vec::new();
    }
    [CONSTANT, 0x2234_5600, 0x1_2345_6000]
        .iter()
        .map(|target| {
            let missing = target.wrapping_sub(before) as i64;
            value.wrapping_add(missing.wrapping_div(slope) as u64) & !15
        })
        .collect()
}

impl ValueSearch<'_> {
    /// Tries one change after the other from the run that got furthest, and continues from the
    /// first that gets further. With `reseed`, registers may be reinitialised before every copy.
    pub(super) fn hill_climb(&mut self, reseed: bool) -> Result<Option<RunSetup>> {
        let Some(mut from) = self.best_failure.clone() else { return Ok(None) };
        let mut budget = BUDGET;
        'hill_climb: while let Some(position) = from.failure.position() {
            for step in self.candidates(&from, position, reseed, &mut budget)? {
                if budget == 0 || self.is_hopeless() {
                    break 'hill_climb;
                }
                let step = Candidate { values: self.with_user_values(step.values), ..step };
                let outcome = self.traced_run(&step)?;
                budget = budget.saturating_sub(self.run_cost());
                match outcome {
                    Ok(setup) => return Ok(Some(setup)),
                    Err(failed) if failed.failure.position() > Some(position) => {
                        from = failed;
                        continue 'hill_climb;
                    }
                    Err(_) => {}
                }
            }
            break;
        }
        Ok(None)
    }

    /// The candidates one change away from `from`, the likeliest first.
    pub(super) fn candidates(
        &mut self,
        from: &FailedRun,
        position: (usize, usize),
        reseed: bool,
        budget: &mut usize,
    ) -> Result<Vec<Candidate>> {
        let influences = influences(self.block, position.1);
        let mut candidates = Vec::new();
        if reseed && position.0 > 0 {
            for register in &influences.registers {
                let mut start = from.start.clone();
                if writes(self.block, *register) && !start.reseeded.contains(register) {
                    start.reseeded.push(*register);
                    candidates.push(start);
                }
            }
        }
        let aligned = from.may_be_misaligned;
        let values = proposals(&from.start.values, &influences, &from.touched, aligned);
        candidates
            .extend(values.into_iter().map(|values| Candidate { values, ..from.start.clone() }));
        // The slope of the failing address over each register predicts values that can be mapped.
        let Some(before) = from.touched.first().map(|t| t.0) else { return Ok(candidates) };
        let mut by_slope = Vec::new();
        for register in influences.registers.iter().take(6) {
            let number = usize::from(*register);
            let mut start = from.start.clone();
            start.values.registers[number] = start.values.registers[number].wrapping_add(STEP);
            let moved = self.traced_run(&start)?;
            *budget = budget.saturating_sub(self.run_cost());
            let Err(moved) = moved else { return Ok(vec![start]) };
            let same = moved.failure.position() == Some(position);
            let Some(after) = moved.touched.first().map(|t| t.0).filter(|_| same) else { continue };
            for value in solve_linear(from.start.values.registers[number], before, after) {
                let mut start = from.start.clone();
                start.values.registers[number] = value;
                by_slope.push(start);
            }
        }
        by_slope.extend(candidates);
        Ok(by_slope)
    }

    /// Cost of the last run, in runs: every page that it mapped restarted it.
    pub(super) fn run_cost(&self) -> usize {
        1 + self.mapped / 8
    }

    /// Retries with only as many copies as ran before the failure, if those are enough.
    pub(super) fn fewer_copies(&mut self) -> Result<Option<RunSetup>> {
        let Some(best) = self.best_failure.clone() else { return Ok(None) };
        let whole = self.copies;
        self.copies = best.failure.copy.unwrap_or(0) & !1;
        if self.copies >= MIN_COPIES.min(whole / 2).max(2)
            && let Ok(setup) = self.traced_run(&best.start)?
        {
            return Ok(Some(setup));
        }
        self.copies = whole;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn the_slice_of_an_address_follows_registers_and_loads_round_the_block() {
        // mov rcx,[rax+rdx*8]; mov rax,rbx; xor edx,edx; add r8,r9
        let found = influences(&block("488b0cd0 4889d8 31d2 4d01c8"), 0);
        assert_eq!(found.registers, [0, 2, 3]); // rax, rdx, rbx; not r8, r9
        assert!(!found.memory);
        // mov rax,[rax]
        assert!(influences(&block("488b00"), 0).memory);
    }

    #[test]
    fn a_division_depends_on_dividend_and_divisor() {
        let mut registers = influences(&block("48f7f1"), 0).registers; // div rcx
        registers.sort_unstable();
        assert_eq!(registers, [0, 1, 2]);
    }

    #[test]
    fn an_address_is_brought_where_it_can_be_mapped_by_its_slope() {
        // [rbp*8 + 0x17f6144] with rbp far below zero
        let address = |rbp: u64| rbp.wrapping_mul(8).wrapping_add(0x17f_6144);
        let start = 0xffff_fffb_9784_0000;
        for value in solve_linear(start, address(start), address(start + STEP)) {
            assert!((0x1_0000..0x2_0000_0000).contains(&address(value)), "{value:#x}");
        }
    }
}
