//! Whether a branch waits for a load of its own block.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};
use std::collections::BTreeSet;

/// Whether a value that the last of these instructions, a conditional jump, depends on is loaded by one of the
/// others.
pub fn for_a_load(block: &[Instruction]) -> bool {
    let Some((jump, before)) = block.split_last() else { return false };
    let mut factory = InstructionInfoFactory::new();
    let mut flags = jump.rflags_read();
    let mut registers: BTreeSet<Register> = read(&mut factory, jump);
    for instruction in before.iter().rev() {
        let written = written(&mut factory, instruction);
        let sets = instruction.rflags_modified() & flags;
        let feeds = sets != 0 || written.iter().any(|register| registers.contains(register));
        if !feeds {
            continue;
        }
        let loads = |access| !matches!(access, OpAccess::Write | OpAccess::NoMemAccess);
        let is_call =
            matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        if is_call || factory.info(instruction).used_memory().iter().any(|m| loads(m.access())) {
            return !is_call;
        }
        flags &= !sets;
        registers.retain(|register| !written.contains(register));
        registers.extend(read(&mut factory, instruction));
        flags |= instruction.rflags_read();
    }
    false
}

fn read(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> BTreeSet<Register> {
    registers(factory, instruction, |access| {
        !matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess)
    })
}

fn written(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> BTreeSet<Register> {
    registers(factory, instruction, |access| !matches!(access, OpAccess::Read | OpAccess::CondRead))
}

fn registers(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    is_so: impl Fn(OpAccess) -> bool,
) -> BTreeSet<Register> {
    let used = factory.info(instruction).used_registers();
    used.iter().filter(|r| is_so(r.access())).map(|r| r.register().full_register()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use isa::code::parse_hex;

    fn waits(hex: &str) -> bool {
        let code = parse_hex(hex).unwrap();
        let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
        for_a_load(&decoder.into_iter().collect::<Vec<_>>())
    }

    /// By hand.
    #[test]
    fn a_branch_waits_for_what_its_flags_come_from() {
        // movzx eax,byte [rdi]; test al,1; jne
        assert!(waits("0f b6 07, a8 01, 75 00"));
        // cmp byte [rdi],0; mov rax,rsi; jne
        assert!(waits("80 3f 00, 48 89 f0, 75 00"));
        // mov rax,[rdi]; add rbx,rax; sub rbx,rcx; jne
        assert!(waits("48 8b 07, 48 01 c3, 48 29 cb, 75 00"));
        // mov rax,[rdi]; test ecx,ecx; jne: it loads for others
        assert!(!waits("48 8b 07, 85 c9, 75 00"));
        // mov rax,[rdi]; mov eax,5; cmp rax,rcx; jne: overwritten
        assert!(!waits("48 8b 07, b8 05 00 00 00, 48 39 c8, 75 00"));
        // mov [rdi],rax; and edx,4; je
        assert!(!waits("48 89 07, 83 e2 04, 74 00"));
        assert!(!waits("75 00") && !for_a_load(&[]));
    }
}
