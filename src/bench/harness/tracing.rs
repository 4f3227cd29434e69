//! What a trace needs: the registers that tracing code stores around an instruction, those that determine what it
//! accesses, and `xchg` with memory without its implicit lock.

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

/// An `xchg` with memory split into a load and a store, since it locks even without a prefix.
pub(super) struct Exchange {
    /// A register that the instruction does not use.
    pub scratch: u8,
    /// `mov scratch, register`.
    pub copy: [u8; 3],
    /// `mov register, [memory]`.
    pub load: Inst,
    /// `mov [memory], scratch`.
    pub store: Inst,
}

/// Splits an `xchg` with memory; `None` for others and for bytes, which cannot cross a line.
pub(super) fn unlocked_exchange(inst: &Inst) -> Option<Exchange> {
    let decoded = &inst.decoded;
    if decoded.mnemonic() != iced_x86::Mnemonic::Xchg || !inst.touches_memory() {
        return None;
    }
    let registers = [decoded.op0_register(), decoded.op1_register()];
    let register = registers.into_iter().find(|r| r.is_gpr() && r.size() > 1)?.full_register();
    let busy = [register, decoded.memory_base(), decoded.memory_index()].map(|r| r.full_register());
    let free = [Register::RAX, Register::RCX, Register::RDX, Register::RBX];
    let scratch = free.into_iter().find(|r| !busy.contains(r))?.number() as u8;
    // Prefixes and REX come before the opcode 87 and its ModRM byte.
    let prefix = |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let mut opcode = inst.bytes.iter().take_while(|b| prefix(b)).count();
    let rex = (inst.bytes.get(opcode)? & 0xf0 == 0x40).then_some(opcode);
    opcode += usize::from(rex.is_some());
    if *inst.bytes.get(opcode)? != 0x87 {
        return None;
    }
    let (mut load, mut store) = (inst.clone(), inst.clone());
    load.bytes[opcode] = 0x8b;
    store.bytes[opcode] = 0x89;
    store.bytes[opcode + 1] = store.bytes[opcode + 1] & 0xc7 | scratch << 3;
    if let Some(rex) = rex {
        store.bytes[rex] &= !4;
    }
    let number = register.number() as u8;
    let copy = [0x48 | (number >> 3) << 2, 0x89, 0xc0 | (number & 7) << 3 | scratch];
    Some(Exchange { scratch, copy, load, store })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::emitter::Emitter;
    use iced_x86::{Decoder, DecoderOptions};
    use isa::code::Block;

    #[test]
    fn an_exchange_is_traced_without_its_lock() {
        // xchg [r11+8],r9 ; xchg [rbx],eax ; lock xchg [rax+rcx*4],dx
        for (hex, load, store) in [
            ("4d874b08", "mov r9,[r11+8]", "mov [r11+8],rax"),
            ("8703", "mov eax,[rbx]", "mov [rbx],ecx"),
            ("66f0871488", "mov dx,[rax+rcx*4]", "mov [rax+rcx*4],bx"),
        ] {
            let block = Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap();
            let steps = unlocked_exchange(&block.instructions[0]).unwrap();
            let text = |inst: &Inst| {
                let mut code = Emitter::at(0);
                code.instruction(inst, true, 0);
                Block::decode(&code.into_bytes()).unwrap().instructions[0].text.clone()
            };
            assert_eq!(text(&steps.load), load);
            assert_eq!(text(&steps.store), store);
            let copy = Decoder::new(64, &steps.copy, DecoderOptions::NONE).decode();
            assert_eq!(copy.op0_register().number(), usize::from(steps.scratch));
        }
    }
}
