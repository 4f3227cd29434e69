//! Instruction forms: the keys of latencies.

use crate::names::name;
use iced_x86::{Code, Instruction, Mnemonic, OpCodeOperandKind, OpKind, Register};
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// An instruction form: iced-x86's [`Code`], whether its register-or-memory operand is memory, the
/// components of the address, and masking.
///
/// The notation is the code's name, `_reg` or `_mem` if it has a register-or-memory operand, and the
/// address or mask after a `+`: `Imul_r64_rm64_reg`, `Imul_r64_rm64_mem`, `Lea_r64_m+bis`,
/// `EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b_er_reg+kz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Form {
    /// The instruction with its operand kinds.
    pub code: Code,
    /// Whether its register-or-memory operand is memory.
    pub memory: bool,
    /// The components of its address.
    pub address: Address,
    /// Its masking.
    pub mask: Mask,
}

/// The components of an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// No memory operand, or one without an index: base, displacement.
    #[default]
    Based,
    /// `lea`: base and index.
    Index,
    /// `lea`: base and scaled index.
    Scaled,
    /// `lea`: base, index and displacement.
    IndexDisplaced,
    /// `lea`: base, scaled index and displacement. Loads and stores: any address with an index.
    Indexed,
}

impl Address {
    /// All addresses.
    pub const ALL: [Self; 5] =
        [Self::Based, Self::Index, Self::Scaled, Self::IndexDisplaced, Self::Indexed];

    fn of(instruction: &Instruction) -> Self {
        if instruction.memory_index() == Register::None {
            return Self::Based;
        }
        if instruction.mnemonic() != Mnemonic::Lea {
            return Self::Indexed;
        }
        let displaced = instruction.memory_displacement64() != 0;
        match (instruction.memory_index_scale() > 1, displaced) {
            (false, false) => Self::Index,
            (true, false) => Self::Scaled,
            (false, true) => Self::IndexDisplaced,
            (true, true) => Self::Indexed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Based => "",
            Self::Index => "bi",
            Self::Scaled => "bis",
            Self::IndexDisplaced => "bid",
            Self::Indexed => "bisd",
        }
    }
}

/// Masking by a mask register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mask {
    /// No mask.
    #[default]
    None,
    /// Masked-off elements keep their old values.
    Merging,
    /// Masked-off elements become 0.
    Zeroing,
}

impl Mask {
    /// All masks.
    pub const ALL: [Self; 3] = [Self::None, Self::Merging, Self::Zeroing];

    fn of(instruction: &Instruction) -> Self {
        match (instruction.has_op_mask(), instruction.zeroing_masking()) {
            (false, _) => Self::None,
            (true, false) => Self::Merging,
            (true, true) => Self::Zeroing,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Merging => "k",
            Self::Zeroing => "kz",
        }
    }
}

impl Form {
    /// The form of `instruction`.
    pub fn of(instruction: &Instruction) -> Self {
        let kinds = 0..instruction.op_count();
        let memory = kinds.into_iter().any(|at| instruction.op_kind(at) == OpKind::Memory);
        let code = instruction.code();
        Self {
            code,
            memory: memory && has_rm_operand(code),
            address: if memory { Address::of(instruction) } else { Address::Based },
            mask: Mask::of(instruction),
        }
    }

    /// Parses the notation; `None` if it is invalid.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('+');
        let name = parts.next()?;
        let (mut address, mut mask) = (Address::Based, Mask::None);
        for part in parts.filter(|part| !part.is_empty()) {
            match Address::ALL.into_iter().find(|a| a.name() == part) {
                Some(known) => address = known,
                None => mask = Mask::ALL.into_iter().find(|m| m.name() == part)?,
            }
        }
        let (code, memory) = match name.strip_suffix("_reg") {
            Some(code) => (code, Some(false)),
            None => match name.strip_suffix("_mem") {
                Some(code) => (code, Some(true)),
                None => (name, None),
            },
        };
        let code = code_named(code)?;
        (has_rm_operand(code) == memory.is_some()).then_some(Self {
            code,
            memory: memory.unwrap_or(false),
            address,
            mask,
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = match (has_rm_operand(self.code), self.memory) {
            (false, _) => "",
            (true, false) => "_reg",
            (true, true) => "_mem",
        };
        write!(f, "{}{operand}", name(self.code))?;
        for suffix in [self.address.name(), self.mask.name()] {
            if !suffix.is_empty() {
                write!(f, "+{suffix}")?;
            }
        }
        Ok(())
    }
}

/// The code with that name in iced-x86.
pub(crate) fn code_named(text: &str) -> Option<Code> {
    static NAMES: OnceLock<HashMap<String, Code>> = OnceLock::new();
    NAMES.get_or_init(|| Code::values().map(|code| (name(code), code)).collect()).get(text).copied()
}

/// Whether it has a register-or-memory operand.
pub(super) fn has_rm_operand(code: Code) -> bool {
    static HAS_RM: OnceLock<Vec<bool>> = OnceLock::new();
    HAS_RM
        .get_or_init(|| Code::values().map(|c| c.op_code().op_kinds().iter().any(is_rm)).collect())
        .get(code as usize)
        .copied()
        .unwrap_or(false)
}

fn is_rm(kind: &OpCodeOperandKind) -> bool {
    use OpCodeOperandKind as K;
    matches!(
        kind,
        K::r8_or_mem
            | K::r16_or_mem
            | K::r32_or_mem
            | K::r32_or_mem_mpx
            | K::r64_or_mem
            | K::r64_or_mem_mpx
            | K::mm_or_mem
            | K::xmm_or_mem
            | K::ymm_or_mem
            | K::zmm_or_mem
            | K::bnd_or_mem_mpx
            | K::k_or_mem
    )
}
