//! The key of a latency: an instruction form.

use iced_x86::{Code, Instruction, OpCodeOperandKind, OpKind};
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// An instruction form: iced-x86's [`Code`], and whether an operand that may be a register or
/// memory is memory.
///
/// Written as the code's name, with `_reg` or `_mem` behind it where there is such an operand:
/// `Imul_r64_rm64_reg`, `Imul_r64_rm64_mem`, `Lea_r64_m`, `Mov_r64_imm64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Form {
    /// The instruction with its operands' kinds.
    pub code: Code,
    /// Whether its operand that may be either is memory.
    pub memory: bool,
}

impl Form {
    /// That of `instruction`.
    pub fn of(instruction: &Instruction) -> Self {
        let kinds = 0..instruction.op_count();
        let memory = kinds.into_iter().any(|at| instruction.op_kind(at) == OpKind::Memory);
        let code = instruction.code();
        Self { code, memory: memory && has_choice(code) }
    }

    /// The form that is written so; `None` if there is none.
    pub fn parse(name: &str) -> Option<Self> {
        let (code, memory) = match name.strip_suffix("_reg") {
            Some(code) => (code, Some(false)),
            None => match name.strip_suffix("_mem") {
                Some(code) => (code, Some(true)),
                None => (name, None),
            },
        };
        let code = code_named(code)?;
        (has_choice(code) == memory.is_some())
            .then_some(Self { code, memory: memory.unwrap_or(false) })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match (has_choice(self.code), self.memory) {
            (false, _) => "",
            (true, false) => "_reg",
            (true, true) => "_mem",
        };
        write!(f, "{:?}{suffix}", self.code)
    }
}

/// The code of that name, as iced-x86 spells it.
pub(super) fn code_named(name: &str) -> Option<Code> {
    static NAMES: OnceLock<HashMap<String, Code>> = OnceLock::new();
    NAMES
        .get_or_init(|| Code::values().map(|code| (format!("{code:?}"), code)).collect())
        .get(name)
        .copied()
}

/// Whether one of its operands may be a register or memory.
pub(super) fn has_choice(code: Code) -> bool {
    static CHOICES: OnceLock<Vec<bool>> = OnceLock::new();
    CHOICES
        .get_or_init(|| Code::values().map(|c| c.op_code().op_kinds().iter().any(either)).collect())
        .get(code as usize)
        .copied()
        .unwrap_or(false)
}

fn either(kind: &OpCodeOperandKind) -> bool {
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
