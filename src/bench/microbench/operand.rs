//! Operands of encodings, and how names of forms write them.

use iced_x86::{Code, MemorySize, OpCodeOperandKind, OpKind, Register};
use isa::names;

/// The registers that an operand may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Low bytes of general-purpose registers.
    Gpr8,
    /// Their low 16 bits.
    Gpr16,
    /// Their low 32 bits.
    Gpr32,
    /// General-purpose registers of 64 bits.
    Gpr64,
    /// MMX.
    Mmx,
    /// 128 bits.
    Xmm,
    /// 256 bits.
    Ymm,
    /// 512 bits.
    Zmm,
    /// Masks.
    Mask,
}

/// Registers that share their storage: a write to one class is seen by the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// General-purpose.
    Gpr,
    /// Vectors of any width.
    Vector,
    /// Masks.
    Mask,
    /// MMX.
    Mmx,
}

impl Family {
    /// Its registers, as text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Gpr => "general-purpose register",
            Self::Vector => "vector register",
            Self::Mask => "mask register",
            Self::Mmx => "MMX register",
        }
    }
}

impl Class {
    /// The family whose storage its registers share.
    pub fn family(self) -> Family {
        match self {
            Self::Gpr8 | Self::Gpr16 | Self::Gpr32 | Self::Gpr64 => Family::Gpr,
            Self::Xmm | Self::Ymm | Self::Zmm => Family::Vector,
            Self::Mask => Family::Mask,
            Self::Mmx => Family::Mmx,
        }
    }

    /// Its register with this number in encodings.
    pub fn register(self, number: u32) -> Register {
        // `AL + 4` is AH; the low bytes from SPL on follow BH.
        let byte = if number < 4 { Register::AL } else { Register::SPL };
        match self {
            Self::Gpr8 if number < 4 => byte + number,
            Self::Gpr8 => byte + (number - 4),
            Self::Gpr16 => Register::AX + number,
            Self::Gpr32 => Register::EAX + number,
            Self::Gpr64 => Register::RAX + number,
            Self::Mmx => Register::MM0 + (number & 7),
            Self::Xmm => Register::XMM0 + number,
            Self::Ymm => Register::YMM0 + number,
            Self::Zmm => Register::ZMM0 + number,
            Self::Mask => Register::K0 + (number & 7),
        }
    }

    fn bits(self) -> usize {
        match self {
            Self::Gpr8 => 8,
            Self::Gpr16 => 16,
            Self::Gpr32 => 32,
            Self::Gpr64 | Self::Mmx | Self::Mask => 64,
            Self::Xmm => 128,
            Self::Ymm => 256,
            Self::Zmm => 512,
        }
    }
}

/// One operand of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// Any register of a class.
    Register(Class),
    /// A fixed register (`cl`, `rax`).
    Fixed(Register),
    /// Memory.
    Memory,
    /// An immediate of this kind.
    Immediate(OpKind),
    /// The constant 1, which is not encoded.
    One,
}

impl Operand {
    /// The operand for `kind` in a form with memory or with registers only; `None` if unsupported.
    pub fn of(kind: OpCodeOperandKind, memory: bool) -> Option<Self> {
        use OpCodeOperandKind as K;
        let either = |class| Some(if memory { Self::Memory } else { Self::Register(class) });
        let register = |class| Some(Self::Register(class));
        match kind {
            K::mem => Some(Self::Memory),
            K::r8_or_mem => either(Class::Gpr8),
            K::r16_or_mem => either(Class::Gpr16),
            K::r32_or_mem => either(Class::Gpr32),
            K::r64_or_mem => either(Class::Gpr64),
            K::mm_or_mem => either(Class::Mmx),
            K::xmm_or_mem => either(Class::Xmm),
            K::ymm_or_mem => either(Class::Ymm),
            K::zmm_or_mem => either(Class::Zmm),
            K::k_or_mem => either(Class::Mask),
            K::r8_reg | K::r8_opcode => register(Class::Gpr8),
            K::r16_reg | K::r16_rm | K::r16_opcode => register(Class::Gpr16),
            K::r32_reg | K::r32_rm | K::r32_opcode | K::r32_vvvv => register(Class::Gpr32),
            K::r64_reg | K::r64_rm | K::r64_opcode | K::r64_vvvv => register(Class::Gpr64),
            K::k_reg | K::k_rm | K::k_vvvv => register(Class::Mask),
            K::mm_reg | K::mm_rm => register(Class::Mmx),
            K::xmm_reg | K::xmm_rm | K::xmm_vvvv | K::xmm_is4 => register(Class::Xmm),
            K::ymm_reg | K::ymm_rm | K::ymm_vvvv | K::ymm_is4 => register(Class::Ymm),
            K::zmm_reg | K::zmm_rm | K::zmm_vvvv => register(Class::Zmm),
            K::al => Some(Self::Fixed(Register::AL)),
            K::cl => Some(Self::Fixed(Register::CL)),
            K::ax => Some(Self::Fixed(Register::AX)),
            K::eax => Some(Self::Fixed(Register::EAX)),
            K::rax => Some(Self::Fixed(Register::RAX)),
            K::imm8 => Some(Self::Immediate(OpKind::Immediate8)),
            K::imm8_const_1 => Some(Self::One),
            K::imm8sex16 => Some(Self::Immediate(OpKind::Immediate8to16)),
            K::imm8sex32 => Some(Self::Immediate(OpKind::Immediate8to32)),
            K::imm8sex64 => Some(Self::Immediate(OpKind::Immediate8to64)),
            K::imm16 => Some(Self::Immediate(OpKind::Immediate16)),
            K::imm32 => Some(Self::Immediate(OpKind::Immediate32)),
            K::imm32sex64 => Some(Self::Immediate(OpKind::Immediate32to64)),
            K::imm64 => Some(Self::Immediate(OpKind::Immediate64)),
            _ => None,
        }
    }

    /// Whether `kind` can be either memory or a register.
    pub fn is_choice(kind: OpCodeOperandKind) -> bool {
        Self::of(kind, true).is_some() && Self::of(kind, true) != Self::of(kind, false)
    }

    /// Its part of a form's name: `GPR64i64`, `VR256f64x4`, `MEM64i64`, `IMMi8`, `CL`.
    pub fn name(self, code: Code) -> String {
        let memory = code.op_code().memory_size();
        match self {
            Self::Register(class) => match class.family() {
                Family::Gpr => format!("GPR{0}i{0}", class.bits()),
                Family::Mask => "K".to_owned(),
                Family::Vector => format!("VR{}{}", class.bits(), elements(code, class.bits())),
                Family::Mmx => format!("MMX64{}", elements(code, 64)),
            },
            Self::Fixed(register) => names::name(register),
            Self::Memory if memory.size() == 0 => "MEM".to_owned(),
            Self::Memory => format!("MEM{}{}", 8 * memory.size(), held(memory)),
            Self::Immediate(kind) => format!("IMMi{}", immediate_bits(kind)),
            Self::One => "1".to_owned(),
        }
    }
}

fn immediate_bits(kind: OpKind) -> usize {
    match kind {
        OpKind::Immediate16 => 16,
        OpKind::Immediate32 | OpKind::Immediate32to64 => 32,
        OpKind::Immediate64 => 64,
        _ => 8,
    }
}

/// The type of an element: `f64`, `i8`.
fn element(memory: MemorySize) -> String {
    let one = memory.element_type();
    let letter = match one {
        MemorySize::Float16 | MemorySize::Float32 | MemorySize::Float64 | MemorySize::Float80 => {
            "f"
        }
        MemorySize::BFloat16 => "bf",
        _ => "i",
    };
    format!("{letter}{}", 8 * one.size())
}

/// The type of memory: `i64`, `f64x4`.
fn held(memory: MemorySize) -> String {
    match memory.is_packed() {
        true => format!("{}x{}", element(memory), memory.element_count()),
        false => element(memory),
    }
}

/// The type of a vector register of `bits`, from the encoding's memory operand, else from the suffix of
/// the mnemonic.
fn elements(code: Code, bits: usize) -> String {
    let memory = code.op_code().memory_size();
    if memory.size() > 0 {
        let size = 8 * memory.element_type().size();
        let count = if memory.is_packed() { bits / size.max(1) } else { 1 };
        return format!("{}x{}", element(memory), count.max(1));
    }
    let mnemonic = names::small(code.mnemonic());
    let (kind, size, packed) = [
        ("ps", "f", 32, true),
        ("pd", "f", 64, true),
        ("ss", "f", 32, false),
        ("sd", "f", 64, false),
        ("b", "i", 8, true),
        ("w", "i", 16, true),
        ("d", "i", 32, true),
    ]
    .into_iter()
    .find(|(end, ..)| mnemonic.ends_with(end))
    .map_or(("i", 64, true), |(_, kind, size, packed)| (kind, size, packed));
    format!("{kind}{size}x{}", if packed { bits / size } else { 1 })
}
