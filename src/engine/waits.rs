//! For how many loads of its own block a branch waits.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};
use std::collections::{BTreeMap, BTreeSet};

/// Loads of the block, one after another, that its last instruction, a branch, waits for; with its own.
pub fn loads(block: &[Instruction]) -> u32 {
    let mut factory = InstructionInfoFactory::new();
    let mut behind = Behind::default();
    let mut waits = 0;
    for instruction in block {
        let flags = instruction.rflags_read();
        let inputs = read(&mut factory, instruction);
        waits = behind.most(&inputs, flags) + u32::from(has_load(&mut factory, instruction));
        if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            // A call's result was loaded elsewhere, if at all.
            behind = Behind::default();
        }
        behind.write(&written(&mut factory, instruction), instruction.rflags_modified(), waits);
    }
    waits
}

/// How many loads of the block, one after another, lead to what is in a register or flag.
#[derive(Default)]
struct Behind {
    registers: BTreeMap<Register, u32>,
    flags: BTreeMap<u32, u32>,
}

impl Behind {
    fn most(&self, registers: &BTreeSet<Register>, flags: u32) -> u32 {
        let of_registers = registers.iter().filter_map(|register| self.registers.get(register));
        let of_flags = bits(flags).filter_map(|flag| self.flags.get(&flag));
        of_registers.chain(of_flags).copied().max().unwrap_or(0)
    }

    fn write(&mut self, registers: &BTreeSet<Register>, flags: u32, loads: u32) {
        self.registers.extend(registers.iter().map(|register| (*register, loads)));
        self.flags.extend(bits(flags).map(|flag| (flag, loads)));
    }
}

/// The single bits that are set.
fn bits(all: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|n| 1 << n).filter(move |bit| all & bit != 0)
}

fn has_load(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> bool {
    let loads = |access| !matches!(access, OpAccess::Write | OpAccess::NoMemAccess);
    // The return address is predicted.
    instruction.flow_control() != FlowControl::Return
        && factory.info(instruction).used_memory().iter().any(|m| loads(m.access()))
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

    fn waits(hex: &str) -> u32 {
        let code = parse_hex(hex).unwrap();
        let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
        loads(&decoder.into_iter().collect::<Vec<_>>())
    }

    /// By hand.
    #[test]
    fn a_branch_waits_for_what_its_flags_come_from() {
        // movzx eax,byte [rdi]; test al,1; jne
        assert_eq!(waits("0f b6 07, a8 01, 75 00"), 1);
        // cmp byte [rdi],0; mov rax,rsi; jne
        assert_eq!(waits("80 3f 00, 48 89 f0, 75 00"), 1);
        // mov rax,[rdi]; add rbx,rax; sub rbx,rcx; jne
        assert_eq!(waits("48 8b 07, 48 01 c3, 48 29 cb, 75 00"), 1);
        // mov rax,[rdi]; cmp dword [rax],0; jne
        assert_eq!(waits("48 8b 07, 83 38 00, 75 00"), 2);
        // mov rax,[rdi]; test ecx,ecx; jne: it loads for others
        assert_eq!(waits("48 8b 07, 85 c9, 75 00"), 0);
        // mov rax,[rdi]; mov eax,5; cmp rax,rcx; jne: overwritten
        assert_eq!(waits("48 8b 07, b8 05 00 00 00, 48 39 c8, 75 00"), 0);
        // mov [rdi],rax; and edx,4; je
        assert_eq!(waits("48 89 07, 83 e2 04, 74 00"), 0);
        assert_eq!((waits("75 00"), loads(&[])), (0, 0));
    }

    /// By hand, the code of gcc 12 for `switch (d[i])` and `o[d[i]].table->act(…)`.
    #[test]
    fn targets_wait_for_the_loads_that_lead_to_them() {
        // movzx ecx,byte [rdi+rdx]; movsxd rcx,[rsi+rcx*4]; add rcx,rsi; jmp rcx
        assert_eq!(waits("0f b6 0c 17, 48 63 0c 8e, 48 01 f1, ff e1"), 2);
        // movzx edi,byte [rbx]; add rbx,1; shl rdi,4; add rdi,rbp; mov rax,[rdi]; call [rax]
        assert_eq!(waits("0f b6 3b, 48 83 c3 01, 48 c1 e7 04, 48 01 ef, 48 8b 07, ff 10"), 3);
        // mov rax,[rdi]; call [rip]: the first load is for others
        assert_eq!(waits("48 8b 07, ff 15 00 00 00 00"), 1);
    }
}
