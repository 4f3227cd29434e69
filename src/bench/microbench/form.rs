//! One fully-qualified instruction form: an encoding, and whether its choice is memory.

use super::operand::{Class, Operand};
use iced_x86::{
    Code, Encoder, EncodingKind, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpCodeOperandKind, OpKind, Register, UsedRegister,
};
use isa::code::Block;
pub use isa::latency::Mask;
use tma::{Error, Result};

/// What stands where an encoding takes memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// No memory: a register where there is a choice.
    None,
    /// A base register and a displacement.
    Based,
    /// Only computed, by `lea`: base and index, scaled or not.
    Indexed(u8),
    /// The same with a displacement. Of loads and stores: whatever has an index.
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
    /// What its memory operand is.
    pub memory: Memory,
    /// Whether it has a `lock` prefix.
    pub lock: bool,
    /// Whether a mask is applied.
    pub mask: Mask,
}

/// Where the applied mask stands among the operands: behind all of them.
pub const MASK: usize = 8;

/// Immediate of forms that have one, unless a block's own is given: it is a comparison, a rounding
/// mode, a choice of elements that all of them accept, and none of them is the same with it as with
/// no operand.
const IMMEDIATE: i64 = 1;
/// The same of shifts and rotates, which are another instruction by 1: that one has an encoding of
/// its own and defines the overflow flag (Intel SDM, RCL/RCR/ROL/ROR and SAL/SAR/SHL/SHR), and
/// rotates by it take longer on some cores. Below 8, so that no width wraps it to 0.
const COUNT: i64 = 5;

impl Form {
    /// All forms of an encoding, none where no kernel can be made of it.
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

    /// What calibrations and tables of latencies know it by.
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

    /// The name by mnemonic and operands: `ADD_GPR64i64_IMMi8`. Several encodings may have it.
    pub fn spelled(&self) -> String {
        let mut name = if self.lock { "LOCK_".to_owned() } else { String::new() };
        name += &format!("{:?}", self.code.mnemonic()).to_uppercase();
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

    /// Whether it loads or stores with an index.
    pub fn is_indexed(&self) -> bool {
        self.memory == INDEXED && !is_address(self.code)
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

    /// The name by iced-x86's encoding: `Add_rm64_imm8:reg`, `:mem`, `:lock`; without an ending where
    /// there is nothing to choose.
    pub fn exact(&self) -> String {
        let name = format!("{:?}", self.code);
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
        for unusual in [index, self.mask_name()].into_iter().filter(|part| !part.is_empty()) {
            name = name + "+" + unusual;
        }
        name
    }

    /// The instruction with these operands: `register` chooses for the operand at an index.
    /// Immediates are neutral ones.
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

    /// The same with these immediates, in the order of its operands; neutral ones where there are
    /// none.
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
        let mut made = Instruction::default();
        made.set_code(self.code);
        for (i, operand) in self.operands().into_iter().enumerate() {
            let at = i as u32;
            match operand {
                Operand::Register(class) => {
                    set_kind(&mut made, at, OpKind::Register)?;
                    set_register(&mut made, at, register(i, class))?;
                }
                Operand::Fixed(fixed) => {
                    set_kind(&mut made, at, OpKind::Register)?;
                    set_register(&mut made, at, fixed)?;
                }
                Operand::Memory => {
                    set_kind(&mut made, at, OpKind::Memory)?;
                    self.put(&mut made, address);
                }
                Operand::Immediate(kind) => {
                    set_kind(&mut made, at, kind)?;
                    let value = immediates.next().unwrap_or_else(|| neutral(self.code));
                    made.try_set_immediate_i64(at, value).map_err(|e| self.impossible(e))?;
                }
                Operand::One => {
                    set_kind(&mut made, at, OpKind::Immediate8)?;
                    made.set_immediate8(1);
                }
            }
        }
        made.set_has_lock_prefix(self.lock);
        if self.mask != Mask::None {
            made.set_op_mask(register(MASK, Class::Mask));
            made.set_zeroing_masking(self.mask == Mask::Zeroing);
        }
        Ok(made)
    }

    fn put(&self, made: &mut Instruction, address: Address) {
        made.set_memory_base(address.base);
        let (index, scale, displacement) = match self.memory {
            Memory::None | Memory::Based => (Register::None, 1, true),
            Memory::Indexed(scale) => (address.index, scale, false),
            Memory::Full(scale) => (address.index, scale, true),
        };
        made.set_memory_index(index);
        made.set_memory_index_scale(u32::from(scale));
        if displacement && address.displacement != 0 {
            made.set_memory_displ_size(1);
            made.set_memory_displacement64(address.displacement as u64);
        }
    }

    fn impossible(&self, error: iced_x86::IcedError) -> Error {
        Error::failed(format!("`{}` cannot be encoded", self.exact())).because(error)
    }

    /// Bytes of `instruction`, which is of this form.
    ///
    /// # Errors
    /// It cannot be encoded, or its bytes mean another encoding.
    pub fn encode(&self, instruction: &Instruction) -> Result<Vec<u8>> {
        let mut encoder = Encoder::new(64);
        encoder.encode(instruction, 0).map_err(|e| self.impossible(e))?;
        Ok(encoder.take_buffer())
    }

    /// An instance with registers that no form uses implicitly: numbers from 8 on.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn sample(&self) -> Result<Instruction> {
        let address = Address { base: Register::R14, index: Register::R13, displacement: 8 };
        let number = |i, class| if i == MASK { 7 } else { i as u32 + high(class) };
        self.instruction(|i, class| class.register(number(i, class)), address)
    }

    /// Whether it moves the stack pointer by 8 and does nothing else to it.
    pub fn is_push_or_pop(&self) -> bool {
        let known = matches!(self.code.mnemonic(), Mnemonic::Push | Mnemonic::Pop);
        let moved = || self.sample().map_or(0, |sample| sample.stack_pointer_increment());
        known && moved().abs() == 8
    }

    /// How each operand is used, and which registers besides the operands.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn usage(&self) -> Result<Usage> {
        let sample = self.sample()?;
        let mut facts = InstructionInfoFactory::new();
        let info = facts.info(&sample);
        let explicit: Vec<Register> = (0..sample.op_count())
            .filter(|i| sample.op_kind(*i) == OpKind::Register)
            .map(|i| sample.op_register(i))
            .filter(|r| r.full_register().number() >= 8 || r.is_mm() || r.is_k())
            .chain([sample.memory_base(), sample.memory_index(), sample.op_mask()])
            .map(Register::full_register)
            .collect();
        let pinned = |used: &&UsedRegister| !explicit.contains(&used.register().full_register());
        Ok(Usage {
            access: (0..sample.op_count()).map(|i| info.op_access(i)).collect(),
            implicit: info.used_registers().iter().filter(pinned).copied().collect(),
        })
    }

    /// Why no kernel is made of it, though its operands are known: it must not run, it moves the
    /// registers of its own address, or it cannot be encoded.
    pub fn refusal(&self) -> Option<String> {
        let bytes = match self.sample().and_then(|sample| self.encode(&sample)) {
            Ok(bytes) => bytes,
            Err(error) => return Some(error.to_string()),
        };
        let block = match Block::decode(&bytes) {
            Ok(block) => block,
            Err(error) => return Some(error.to_string()),
        };
        let [inst] = block.instructions.as_slice() else {
            return Some("its bytes are several instructions".to_owned());
        };
        if inst.decoded.code() != self.code {
            return Some(format!("its bytes mean {:?}", inst.decoded.code()));
        }
        if let Some(refusal) = block.refusal() {
            return Some(refusal.reason);
        }
        if inst.decoded.is_stack_instruction() && !self.is_push_or_pop() {
            return Some("moves the stack pointer".to_owned());
        }
        if inst.decoded.is_string_instruction() {
            return Some("moves the registers of its address".to_owned());
        }
        if self.code.op_code().require_op_mask_register() {
            return Some("needs a mask register that it clears".to_owned());
        }
        let pinned = self.usage().map(|usage| usage.implicit).unwrap_or_default();
        let stack = |r: &UsedRegister| r.register().is_st();
        if pinned.iter().any(stack) {
            return Some("works on the x87 stack".to_owned());
        }
        (!inst.memory.is_empty() && self.memory == Memory::None && !self.is_push_or_pop())
            .then(|| "has memory beside its operands".to_owned())
    }
}

/// How an instruction uses its operands.
#[derive(Debug, Clone)]
pub struct Usage {
    /// One for each operand.
    pub access: Vec<OpAccess>,
    /// Registers that are no operands that could be chosen.
    pub implicit: Vec<UsedRegister>,
}

/// Base, scaled index and displacement: one form for all loads and stores with an index.
pub const INDEXED: Memory = Memory::Full(4);

/// The immediate of a form that nobody gave one.
fn neutral(code: Code) -> i64 {
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

/// Immediates of an instruction, in the order of its operands; what is always 1 is none. One of 64 bits
/// is taken as the neutral one: only `mov` has it, which needs the same ports whatever it is, and
/// a long one takes a second slot of an op cache, which is for the front end's bound to tell.
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

/// The least number of a register that nothing uses implicitly.
fn high(class: Class) -> u32 {
    match class {
        Class::Mmx | Class::Mask => 1,
        _ => 8,
    }
}

fn set_kind(made: &mut Instruction, at: u32, kind: OpKind) -> Result<()> {
    made.try_set_op_kind(at, kind).map_err(unknown)
}

fn set_register(made: &mut Instruction, at: u32, register: Register) -> Result<()> {
    made.try_set_op_register(at, register).map_err(unknown)
}

fn unknown(error: iced_x86::IcedError) -> Error {
    Error::failed("no such operand").because(error)
}
