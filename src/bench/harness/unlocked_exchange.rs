//! `xchg` with memory without its implicit lock, for traces.

use iced_x86::Register;
use isa::code::Inst;

/// An `xchg` with memory split into a load and a store, since it locks even without a prefix.
pub(super) struct Exchange {
    /// A register that the instruction does not use.
    pub(super) scratch: u8,
    /// `mov scratch, register`.
    pub(super) copy: [u8; 3],
    /// `mov register, [memory]`.
    pub(super) load: Inst,
    /// `mov [memory], scratch`.
    pub(super) store: Inst,
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
    use super::super::emitter::Emitter;
    use super::*;
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
