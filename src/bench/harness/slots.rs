//! The registers that tracing code stores around an instruction: those that determine what it accesses.

use iced_x86::{Mnemonic, Register};
use isa::code::Inst;

/// A register stored in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Copy, from 0.
    pub copy: usize,
    /// Instruction, from 0.
    pub instruction: usize,
    /// 64-bit general-purpose register, `ymm` or `zmm`, or mask.
    pub register: Register,
    /// Stored after the instruction, not before it.
    pub after: bool,
    /// Offset in the trace.
    pub at: usize,
}

impl Slot {
    /// Bytes that the register takes in the trace.
    pub fn size(register: Register) -> usize {
        if register.is_vector_register() { register.size() } else { 8 }
    }
}

/// Whether it is a string instruction repeated by `rcx`.
pub fn repeats(inst: &Inst) -> bool {
    let decoded = &inst.decoded;
    decoded.is_string_instruction() && (decoded.has_rep_prefix() || decoded.has_repne_prefix())
}

/// The bit offset of `bt [memory],register` and the like, which may lie outside of the operand.
pub fn bit_index(inst: &Inst) -> Option<Register> {
    let bits = matches!(
        inst.decoded.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    );
    let register = inst.decoded.op1_register();
    (bits && inst.touches_memory() && register.is_gpr()).then_some(register)
}

/// The mask that selects which elements of its memory operand an instruction accesses: faults of the others are
/// suppressed.
pub fn mask(inst: &Inst) -> Option<Register> {
    use Mnemonic as M;
    let decoded = &inst.decoded;
    if !inst.touches_memory() {
        return None;
    }
    if decoded.op_mask() != Register::None {
        return Some(decoded.op_mask());
    }
    match decoded.mnemonic() {
        M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq => {
            Some(decoded.op1_register())
        }
        M::Maskmovdqu | M::Vmaskmovdqu => Some(decoded.op2_register()),
        _ if inst.memory.iter().any(|m| m.index().is_vector_register()) => {
            Some(decoded.op2_register())
        }
        _ => None,
    }
}

/// Registers that determine what `inst` accesses: their values before it, and after it.
pub fn needed(inst: &Inst) -> (Vec<Register>, Vec<Register>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    if !inst.touches_memory() && !inst.hints() {
        return (before, after);
    }
    let evex = inst.decoded.op_code().encoding() == iced_x86::EncodingKind::EVEX;
    let mut add = |register: Register| {
        let full = match register {
            r if r.is_gpr() => r.full_register(),
            r if r.is_vector_register() && evex => Register::ZMM0 + r.number() as u32,
            r if r.is_vector_register() => Register::YMM0 + r.number() as u32,
            r if r.is_k() => r,
            _ => return,
        };
        if !before.contains(&full) {
            before.push(full);
        }
    };
    for memory in &inst.memory {
        add(memory.base());
        add(memory.index());
    }
    mask(inst).into_iter().for_each(&mut add);
    bit_index(inst).into_iter().for_each(&mut add);
    if repeats(inst) {
        add(Register::RCX);
        after.push(Register::RCX);
    }
    (before, after)
}
