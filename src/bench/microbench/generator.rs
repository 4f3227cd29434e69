//! Generates the code of a microbenchmark: unrolled, interleaved, registers and memory from pools.

use super::form::{Address, Form, is_address};
use super::multiset::{MAX_INSTRUCTIONS, Multiset};
use super::operand::Operand;
use super::pools::{BASE, INDEX, Pools, is_written};
use crate::Values;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Mnemonic, Register};
use std::collections::HashMap;
use tma::{Error, Result};

/// Address of the arena: a page that any process may map, below 4 GiB for 32-bit addressing.
pub const ARENA: u64 = 0x1234_0000;
/// Initial stack pointer: pushes go below, at page offsets that the arena stores to; the first pops
/// come from above, at page offsets that it loads from.
const STACK: u64 = ARENA + 0x4000;

/// Size of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Settings {
    /// Approximate number of instructions in the unrolled code.
    pub unroll_size: usize,
    /// Minimum dynamic instructions of a long run, within the block measurer's limits.
    pub total_insn: usize,
    /// Samples over all passes and placements.
    pub measures: usize,
    /// Value of every 8 bytes of vector registers; ones, in the type that is computed with, if `None`.
    #[serde(skip)]
    pub vector: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { unroll_size: 60, total_insn: 10_000, measures: 192, vector: None }
    }
}

/// Unrolled code of a multiset with independent operands.
#[derive(Debug, Clone)]
pub struct Microbenchmark {
    /// The multiset.
    pub multiset: Multiset,
    /// Copies of the multiset.
    pub sets: usize,
    /// The form of each instruction.
    pub forms: Vec<Form>,
    /// Its bytes: these forms, then a `lea` that restores the stack pointer if they change it.
    pub bytes: Vec<u8>,
    /// Registers of each family.
    pub pools: Pools,
    /// Initial values of registers and memory.
    pub values: Values,
}

impl Microbenchmark {
    /// The microbenchmark of `multiset`.
    ///
    /// # Errors
    /// A form cannot be encoded, or no register is left for its results.
    pub fn of(multiset: &Multiset, settings: &Settings) -> Result<Self> {
        Self::after_moves(multiset, settings, &[])
    }

    /// Like [`Microbenchmark::of`], with a move of a constant to each of `registers` ahead of each instance, so
    /// that its results do not depend on the previous instance through them.
    ///
    /// # Errors
    /// As [`Microbenchmark::of`].
    pub fn after_moves(
        multiset: &Multiset,
        settings: &Settings,
        registers: &[Register],
    ) -> Result<Self> {
        let one = multiset.interleaved();
        let mut pools = Pools::of(&one)?;
        if let Some(pool) = pools.all.iter().find(|pool| pool.write.is_empty()) {
            return Err(Error::not_possible("these forms cannot be measured together")
                .because(format!("they leave no {} for results", pool.family.words())));
        }
        let sets = sets(one.len(), &pools, settings.unroll_size);
        let mut built = Self {
            multiset: multiset.clone(),
            sets,
            forms: Vec::with_capacity(sets * one.len()),
            bytes: Vec::new(),
            pools: pools.clone(),
            values: values(&one),
        };
        built.values.vector = settings.vector.unwrap_or(built.values.vector);
        let mut stack = 0;
        let mut instances: HashMap<Form, usize> = HashMap::new();
        for form in one.iter().cycle().take(sets * one.len()) {
            let instance = instances.entry(*form).or_default();
            let immediates = multiset.immediates(*form, *instance);
            let tied = multiset.tied(*form, *instance);
            let instruction = instantiate(form, immediates, tied, &mut pools)?;
            *instance += 1;
            stack += i64::from(instruction.stack_pointer_increment());
            for register in registers {
                built.bytes.extend(constant(*register, &built.values)?);
            }
            built.bytes.extend(form.encode(&instruction)?);
            built.forms.push(*form);
        }
        if stack != 0 {
            built.bytes.extend(restore_stack(stack)?);
        }
        Ok(built)
    }
}

/// `lea rsp, [rsp - moved]`, which keeps the flags.
fn restore_stack(moved: i64) -> Result<Vec<u8>> {
    let failed =
        |e: iced_x86::IcedError| Error::failed("the stack pointer cannot be restored").because(e);
    let place = MemoryOperand::with_base_displ(Register::RSP, -moved);
    let built = Instruction::with2(Code::Lea_r64_m, Register::RSP, place).map_err(failed)?;
    let mut encoder = Encoder::new(64);
    encoder.encode(&built, 0).map_err(failed)?;
    Ok(encoder.take_buffer())
}

/// `mov r32, imm32` with the register's initial value.
fn constant(register: Register, values: &Values) -> Result<Vec<u8>> {
    let failed = |e: iced_x86::IcedError| Error::failed("a constant cannot be moved").because(e);
    let value = values.registers[register.number()] as u32;
    let code = Code::Mov_r32_imm32;
    let built = Instruction::with2(code, register.full_register32(), value).map_err(failed)?;
    let mut encoder = Encoder::new(64);
    encoder.encode(&built, 0).map_err(failed)?;
    Ok(encoder.take_buffer())
}

/// Copies of the multiset: about as many instructions as wanted, or up to twice as many if each pool of
/// written registers then rotates a whole number of times.
fn sets(instructions: usize, pools: &Pools, wanted: usize) -> usize {
    let least = wanted.clamp(1, MAX_INSTRUCTIONS).div_ceil(instructions.max(1)).max(1);
    let most = (2 * least).min(MAX_INSTRUCTIONS / instructions.max(1)).max(least);
    let uneven = |sets: &usize| {
        let rest = |pool: &super::pools::Pool| {
            let round = pool.write.len().max(1);
            let rest = (sets * pool.writes) % round;
            // The imbalance of use between registers.
            if rest == 0 { 0 } else { 1000 * (round - rest) / (sets * pool.writes) }
        };
        pools.all.iter().map(rest).max().unwrap_or(0)
    };
    (least..=most).min_by_key(uneven).unwrap_or(least)
}

/// The next instruction of a form, with these immediates and these two operands in one register.
fn instantiate(
    form: &Form,
    immediates: &[i64],
    tied: Option<(usize, usize)>,
    pools: &mut Pools,
) -> Result<Instruction> {
    let usage = form.usage()?;
    let access = |i: usize| usage.access.get(i).copied().unwrap_or(iced_x86::OpAccess::None);
    let operands = form.operands();
    let memory = operands.iter().position(|operand| *operand == Operand::Memory);
    let address = match memory {
        // `lea` does not access memory: its address registers are sources.
        Some(_) if is_address(form.code) => Address {
            base: pools.read(super::operand::Class::Gpr64, 0),
            index: pools.read(super::operand::Class::Gpr64, 1),
            displacement: 8,
        },
        Some(i) => {
            let bytes = form.code.op_code().memory_size().size();
            let displacement = pools.place(bytes, is_written(access(i)));
            Address { base: BASE, index: INDEX, displacement }
        }
        None => Address { base: Register::None, index: Register::None, displacement: 0 },
    };
    let mut sources = HashMap::new();
    let mut chosen = HashMap::new();
    form.instruction_with(
        |i, class| {
            let same = tied.filter(|(_, second)| *second == i).and_then(|(first, _)| {
                let register: &Register = chosen.get(&first)?;
                Some(class.register(u32::try_from(register.full_register().number()).ok()?))
            });
            let register = match (same, is_written(access(i))) {
                (Some(register), _) => register,
                (None, true) => pools.written(class),
                (None, false) => {
                    let index: &mut usize = sources.entry(class.family()).or_default();
                    *index += 1;
                    pools.read(class, *index - 1)
                }
            };
            chosen.insert(i, register);
            register
        },
        address,
        immediates,
    )
}

/// Initial values with which no form ever faults: ones in the type that it computes with; the upper half
/// of a dividend is 0.
pub fn values(forms: &[Form]) -> Values {
    let mut registers = [1; 16];
    let divides = |form: &&Form| matches!(form.code.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
    if forms.iter().any(|form| divides(&form)) {
        registers[2] = 0;
    }
    registers[BASE.number()] = ARENA;
    registers[Register::RSP.number()] = STACK;
    if forms.iter().any(Form::is_indexed) {
        registers[INDEX.number()] = 0;
    }
    let vector = floats(forms);
    let computes = forms.iter().any(|form| number(form).is_some());
    Values { registers, memory: if computes { vector } else { 1 }, vector }
}

/// 1.0 in the type of all `forms`; normal numbers where their types differ.
fn floats(forms: &[Form]) -> u64 {
    let kinds: Vec<u8> = forms.iter().filter_map(number).collect();
    let all = |kind| !kinds.is_empty() && kinds.iter().all(|k| *k == kind);
    match () {
        () if all(64) => 1.0f64.to_bits(),
        () if all(16) => 0x3c00_3c00_3c00_3c00,
        // 1.0 twice; a normal number as double precision.
        () => 0x3f80_0000_3f80_0000,
    }
}

/// Width of the floating-point numbers that a form computes with.
fn number(form: &Form) -> Option<u8> {
    let name = form.name();
    [("f64x", 64), ("f32x", 32), ("f16x", 16)]
        .into_iter()
        .find(|(part, _)| name.contains(part))
        .map(|(_, bits)| bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::code::Block;

    #[test]
    fn a_microbenchmark_is_copies_of_its_multiset() {
        let set = Multiset::parse("ADD_GPR64i64_GPR64i64*2, MOV_GPR64i64_MEM64i64").unwrap();
        let benchmark = Microbenchmark::of(&set, &Settings::default()).unwrap();
        let block = Block::decode(&benchmark.bytes).unwrap();
        assert_eq!(block.instructions.len(), 3 * benchmark.sets);
        let back = Multiset::of(&block).unwrap();
        for (form, count) in &set.forms {
            let there = back.forms.iter().find(|(f, _)| f == form).map(|f| f.1);
            assert_eq!(there, Some(count * benchmark.sets), "{form:?}");
        }
        // Written registers rotate a whole number of times.
        let pool = &benchmark.pools.all[0];
        assert_eq!((benchmark.sets * pool.writes) % pool.write.len(), 0);
    }

    #[test]
    fn a_microbenchmark_of_a_block_has_its_immediates() {
        // rol rax,13; imul rcx,rdx,-7; add rbx,0x12345678
        let bytes = isa::code::parse_hex("48c1c00d 486bcaf9 4881c378563412").unwrap();
        let set = Multiset::of(&Block::decode(&bytes).unwrap()).unwrap();
        let benchmark = Microbenchmark::of(&set, &Settings::default()).unwrap();
        let block = Block::decode(&benchmark.bytes).unwrap();
        assert_eq!(block.instructions.len(), 3 * benchmark.sets);
        for inst in &block.instructions {
            let expected = match inst.decoded.mnemonic() {
                Mnemonic::Rol => 13,
                Mnemonic::Imul => -7,
                _ => 0x1234_5678,
            };
            assert_eq!(super::super::form::immediates(&inst.decoded), [expected], "{}", inst.text);
        }
    }

    /// As a real `xor` it would need a port and wait for its operands.
    #[test]
    fn zeroing_idioms_and_moves_stay_what_they_are() {
        // xor eax,eax; xor eax,ebx; vpxor xmm0,xmm1,xmm1; mov ecx,ecx; mov ecx,edx
        let bytes = isa::code::parse_hex("31c0 31d8 c5f1efc1 89c9 89d1").unwrap();
        let set = Multiset::of(&Block::decode(&bytes).unwrap()).unwrap();
        let benchmark = Microbenchmark::of(&set, &Settings::default()).unwrap();
        let block = Block::decode(&benchmark.bytes).unwrap();
        let (mut idioms, mut others) = (0, 0);
        for inst in &block.instructions {
            let decoded = &inst.decoded;
            let (a, b) = match decoded.mnemonic() {
                Mnemonic::Vpxor => (decoded.op1_register(), decoded.op2_register()),
                _ => (decoded.op0_register(), decoded.op1_register()),
            };
            if a == b { idioms += 1 } else { others += 1 }
        }
        assert_eq!((idioms, others), (3 * benchmark.sets, 2 * benchmark.sets));
    }

    #[test]
    fn shifts_and_rotates_by_name_are_not_by_one() {
        let set = Multiset::parse("ROL_GPR64i64_IMMi8, SHL_GPR8i8_IMMi8").unwrap();
        let benchmark = Microbenchmark::of(&set, &Settings::default()).unwrap();
        for inst in &Block::decode(&benchmark.bytes).unwrap().instructions {
            let count = super::super::form::immediates(&inst.decoded)[0];
            assert!(count > 1 && count < 8, "{}", inst.text);
        }
    }

    /// `mul` reads and writes RAX: a move ahead of each is all that parts them.
    #[test]
    fn moves_break_dependencies_through_implicit_registers() {
        let set = Multiset::parse("MUL_GPR64i64").unwrap();
        let benchmark =
            Microbenchmark::after_moves(&set, &Settings::default(), &[Register::RAX]).unwrap();
        let block = Block::decode(&benchmark.bytes).unwrap();
        assert_eq!(block.instructions.len(), 2 * benchmark.sets);
        for pair in block.instructions.chunks(2) {
            assert_eq!(pair[0].text, "mov eax,1");
            assert_eq!(pair[1].decoded.mnemonic(), Mnemonic::Mul);
        }
    }
}
