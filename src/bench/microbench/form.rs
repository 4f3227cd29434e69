//! An instruction form and its name: an encoding, with memory or registers only, a `lock` prefix and a mask.

pub use isa::latency::Mask;

use super::operand::{Class, Operand};
use iced_x86::{
    Code, Encoder, EncodingKind, Instruction, Mnemonic, OpCodeOperandKind, OpKind, Register,
};
use isa::names;
use tma::{Error, Result};

/// The memory operand of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// No memory: a register where there is a choice.
    None,
    /// A base register and a displacement.
    Based,
    /// For `lea`: base and index with this scale.
    Indexed(u8),
    /// For `lea`: base, index with this scale and displacement; for loads and stores, any address with an index.
    Full(u8),
}

/// An address in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Base register.
    pub base: Register,
    /// Index register, or none.
    pub index: Register,
    /// Added.
    pub displacement: i64,
}

/// An instruction form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Form {
    /// The encoding.
    pub code: Code,
    /// Its memory operand.
    pub memory: Memory,
    /// Whether it has a `lock` prefix.
    pub lock: bool,
    /// Whether a mask is applied.
    pub mask: Mask,
}

/// Operand index of the applied mask: after all operands.
pub const MASK: usize = 8;

/// Default immediate: a comparison, rounding mode or selection of elements that every form accepts and
/// that makes none of them trivial.
const IMMEDIATE: i64 = 1;
/// Default immediate of shifts and rotates. By 1 they are a different instruction, with its own encoding
/// and a defined overflow flag (Intel SDM, RCL/RCR/ROL/ROR and SAL/SAR/SHL/SHR), slower on some
/// cores. Below 8, so that no width wraps it to 0.
const COUNT: i64 = 5;

impl Form {
    /// All forms of an encoding; none if an operand is unsupported.
    pub fn all_of(code: Code) -> Vec<Self> {
        let op = code.op_code();
        let known = op.is_instruction() && op.mode64() && op.encoding() != EncodingKind::MVEX;
        if !known || op.op_kinds().iter().any(|k| Operand::of(*k, true).is_none()) {
            return Vec::new();
        }
        let based = Self { code, memory: Memory::Based, lock: false, mask: Mask::None };
        let registers = Self { memory: Memory::None, ..based };
        if is_address(code) {
            let shapes = [Memory::Based, Memory::Indexed(1), Memory::Indexed(4)];
            let full = [Memory::Full(1), Memory::Full(4)];
            return shapes.into_iter().chain(full).map(|memory| Self { memory, ..based }).collect();
        }
        let mut all = Vec::new();
        let always = op.op_kinds().contains(&OpCodeOperandKind::mem);
        if !always {
            all.push(registers);
        }
        if always || op.op_kinds().iter().any(|k| Operand::is_choice(*k)) {
            all.push(based);
            if op.op_kinds().iter().any(|k| Operand::of(*k, true) == Some(Operand::Memory)) {
                all.push(Self { memory: INDEXED, ..based });
            }
            if op.can_use_lock_prefix() {
                all.push(Self { lock: true, ..based });
            }
        }
        let masks = [
            (Mask::Merging, op.can_use_op_mask_register()),
            (Mask::Zeroing, op.can_use_op_mask_register() && op.can_use_zeroing_masking()),
        ];
        let plain = all.clone();
        for (mask, _) in masks.into_iter().filter(|(_, can)| *can) {
            all.extend(plain.iter().map(|form| Self { mask, ..*form }));
        }
        all
    }

    /// Its key in calibrations and latency tables.
    pub fn key(&self) -> isa::latency::Form {
        use isa::latency::Address as A;
        let choice = self.code.op_code().op_kinds().iter().any(|k| Operand::is_choice(*k));
        isa::latency::Form {
            code: self.code,
            memory: choice && self.memory != Memory::None,
            address: match self.memory {
                Memory::None | Memory::Based => A::Based,
                Memory::Indexed(1) => A::Index,
                Memory::Indexed(_) => A::Scaled,
                Memory::Full(1) => A::IndexDisplaced,
                Memory::Full(_) => A::Indexed,
            },
            mask: self.mask,
        }
    }

    /// Its operands, in the order of the instruction.
    pub fn operands(&self) -> Vec<Operand> {
        let memory = self.memory != Memory::None;
        let kinds = self.code.op_code().op_kinds().iter();
        kinds.filter_map(|kind| Operand::of(*kind, memory)).collect()
    }

    /// Whether it loads or stores with an index.
    pub fn is_indexed(&self) -> bool {
        self.memory == INDEXED && !is_address(self.code)
    }

    /// The instruction with these operands and default immediates; `register` chooses the register of the
    /// operand at an index.
    ///
    /// # Errors
    /// No such instruction can be encoded.
    pub fn instruction(
        &self,
        register: impl FnMut(usize, Class) -> Register,
        address: Address,
    ) -> Result<Instruction> {
        self.instruction_with(register, address, &[])
    }

    /// Like [`Self::instruction`], with `immediates` in operand order, and default ones after them.
    ///
    /// # Errors
    /// No such instruction can be encoded.
    pub fn instruction_with(
        &self,
        mut register: impl FnMut(usize, Class) -> Register,
        address: Address,
        immediates: &[i64],
    ) -> Result<Instruction> {
        let mut immediates = immediates.iter().copied();
        let mut built = Instruction::default();
        built.set_code(self.code);
        for (i, operand) in self.operands().into_iter().enumerate() {
            let at = i as u32;
            match operand {
                Operand::Register(class) => {
                    set_kind(&mut built, at, OpKind::Register)?;
                    set_register(&mut built, at, register(i, class))?;
                }
                Operand::Fixed(fixed) => {
                    set_kind(&mut built, at, OpKind::Register)?;
                    set_register(&mut built, at, fixed)?;
                }
                Operand::Memory => {
                    set_kind(&mut built, at, OpKind::Memory)?;
                    self.put(&mut built, address);
                }
                Operand::Immediate(kind) => {
                    let first = i == 0 || built.op_kind(at - 1) != OpKind::Immediate8;
                    set_kind(&mut built, at, if first { kind } else { OpKind::Immediate8_2nd })?;
                    let value = immediates.next().unwrap_or_else(|| default_immediate(self.code));
                    built.try_set_immediate_i64(at, value).map_err(|e| self.impossible(e))?;
                }
                Operand::One => {
                    set_kind(&mut built, at, OpKind::Immediate8)?;
                    built.set_immediate8(1);
                }
            }
        }
        built.set_has_lock_prefix(self.lock);
        if self.mask != Mask::None {
            built.set_op_mask(register(MASK, Class::Mask));
            built.set_zeroing_masking(self.mask == Mask::Zeroing);
        }
        Ok(built)
    }

    fn put(&self, built: &mut Instruction, address: Address) {
        built.set_memory_base(address.base);
        let (index, scale, displacement) = match self.memory {
            Memory::None | Memory::Based => (Register::None, 1, true),
            Memory::Indexed(scale) => (address.index, scale, false),
            Memory::Full(scale) => (address.index, scale, true),
        };
        built.set_memory_index(index);
        built.set_memory_index_scale(u32::from(scale));
        if displacement && address.displacement != 0 {
            built.set_memory_displ_size(1);
            built.set_memory_displacement64(address.displacement as u64);
        }
    }

    fn impossible(&self, error: iced_x86::IcedError) -> Error {
        Error::failed(format!("`{}` cannot be encoded", self.encoding_name())).because(error)
    }

    /// Encodes `instruction`, which is of this form.
    ///
    /// # Errors
    /// It cannot be encoded, or its bytes mean another encoding.
    pub fn encode(&self, instruction: &Instruction) -> Result<Vec<u8>> {
        let mut encoder = Encoder::new(64);
        encoder.encode(instruction, 0).map_err(|e| self.impossible(e))?;
        Ok(encoder.take_buffer())
    }

    /// An instance whose registers no form uses implicitly: numbers from 8 on.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn sample(&self) -> Result<Instruction> {
        let address = Address { base: Register::R14, index: Register::R13, displacement: 8 };
        let number = |i, class| if i == MASK { 7 } else { i as u32 + first_free(class) };
        self.instruction(|i, class| class.register(number(i, class)), address)
    }

    /// Whether it moves the stack pointer by 8 and does nothing else to it.
    pub fn is_push_or_pop(&self) -> bool {
        let known = matches!(self.code.mnemonic(), Mnemonic::Push | Mnemonic::Pop);
        let moved = || self.sample().map_or(0, |sample| sample.stack_pointer_increment());
        known && moved().abs() == 8
    }
}

/// Base, scaled index and displacement: one form for all loads and stores with an index.
pub const INDEXED: Memory = Memory::Full(4);

/// The default immediate of a form.
fn default_immediate(code: Code) -> i64 {
    use Mnemonic as M;
    let counts = matches!(
        code.mnemonic(),
        M::Rol
            | M::Ror
            | M::Rcl
            | M::Rcr
            | M::Rorx
            | M::Shl
            | M::Sal
            | M::Shr
            | M::Sar
            | M::Shld
            | M::Shrd
    );
    if counts { COUNT } else { IMMEDIATE }
}

/// Immediates of an instruction, in the order of its operands; the constant 1 is not one. A 64-bit
/// immediate becomes the default: only `mov` has it, whose ports do not depend on it, and the second
/// op-cache slot of a long one belongs to the front-end bound.
pub fn immediates(instruction: &Instruction) -> Vec<i64> {
    let kinds = instruction.op_code();
    (0..instruction.op_count())
        .filter(|i| {
            let kind = kinds.op_kinds().get(*i as usize);
            let operand = kind.and_then(|kind| Operand::of(*kind, false));
            matches!(operand, Some(Operand::Immediate(_)))
        })
        .filter_map(|i| Some((instruction.op_kind(i), instruction.try_immediate(i).ok()?)))
        .map(|(kind, value)| if kind == OpKind::Immediate64 { IMMEDIATE } else { value as i64 })
        .collect()
}

/// Whether it only computes its address.
pub fn is_address(code: Code) -> bool {
    matches!(code, Code::Lea_r16_m | Code::Lea_r32_m | Code::Lea_r64_m)
}

/// The lowest register number that no form uses implicitly.
fn first_free(class: Class) -> u32 {
    match class {
        Class::Mmx | Class::Mask => 1,
        _ => 8,
    }
}

fn set_kind(built: &mut Instruction, at: u32, kind: OpKind) -> Result<()> {
    built.try_set_op_kind(at, kind).map_err(unknown)
}

fn set_register(built: &mut Instruction, at: u32, register: Register) -> Result<()> {
    built.try_set_op_register(at, register).map_err(unknown)
}

fn unknown(error: iced_x86::IcedError) -> Error {
    Error::failed("invalid operand").because(error)
}

impl Form {
    /// The name by mnemonic and operands: `ADD_GPR64i64_IMMi8`. Several encodings may have it.
    pub fn name(&self) -> String {
        let mut name = if self.lock { "LOCK_".to_owned() } else { String::new() };
        name += &names::name(self.code.mnemonic()).to_uppercase();
        for (i, operand) in self.operands().into_iter().enumerate() {
            name.push('_');
            name += &match operand {
                Operand::Memory if is_address(self.code) => self.address_name(),
                Operand::Memory if self.is_indexed() => operand.name(self.code) + "bisd",
                operand => operand.name(self.code),
            };
            if i == 0 {
                name += self.mask_name();
            }
        }
        name
    }

    fn mask_name(&self) -> &'static str {
        match self.mask {
            Mask::None => "",
            Mask::Merging => "k",
            Mask::Zeroing => "kz",
        }
    }

    fn address_name(&self) -> String {
        match self.memory {
            Memory::None | Memory::Based => "ADDRbd".to_owned(),
            Memory::Indexed(1) => "ADDRbi".to_owned(),
            Memory::Indexed(_) => "ADDRbis".to_owned(),
            Memory::Full(1) => "ADDRbid".to_owned(),
            Memory::Full(_) => "ADDRbisd".to_owned(),
        }
    }

    /// The name by iced-x86's encoding: `Add_rm64_imm8:reg`, `:mem`, `:lock`; without a suffix where the
    /// encoding has one form.
    pub fn encoding_name(&self) -> String {
        let name = names::name(self.code);
        let choice = self.code.op_code().op_kinds().iter().any(|k| Operand::is_choice(*k));
        let mut name = match (self.memory, self.lock) {
            (_, true) => name + ":lock",
            (memory, _) if is_address(self.code) && memory != Memory::Based => {
                format!("{name}:{}", self.address_name())
            }
            (Memory::None, _) if choice => name + ":reg",
            (_, _) if choice => name + ":mem",
            _ => name,
        };
        let index = if self.is_indexed() { "bisd" } else { "" };
        for suffix in [index, self.mask_name()].into_iter().filter(|part| !part.is_empty()) {
            name = name + "+" + suffix;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `extrq xmm, length, index` is 66 0F 78 /0 ib ib (AMD64 manual, volume 4).
    #[test]
    fn an_instruction_with_two_immediates_is_encoded() {
        let form = Form::all_of(Code::Extrq_xmm_imm8_imm8)[0];
        let bytes = form.encode(&form.sample().unwrap()).unwrap();
        assert_eq!(bytes, [0x66, 0x41, 0x0f, 0x78, 0xc0, 1, 1]);
        assert!(form.refusal().is_none());
    }
}
