//! Indirect jumps that leave their function: tail calls.
//!
//! Such a jump goes to a whole pointer, as it was loaded, passed or returned (not to a sum, as of a table of
//! distances), with the stack as it was at the function's start. It leaves the function if no pointer to
//! the inside of that exists, which the caller knows.

use super::block::{Block, Exit};
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use std::collections::BTreeSet;

/// Marks the blocks that end in tail calls as ones that leave the function.
pub(super) fn mark(blocks: &mut [Block]) {
    let is_open = |block: &Block| {
        let last = block.instructions.last();
        block.exit == Exit::Unknown
            && last.is_some_and(|last| last.flow_control() == FlowControl::IndirectBranch)
    };
    let open: Vec<usize> = (0..blocks.len()).filter(|number| is_open(&blocks[*number])).collect();
    if open.is_empty() {
        return;
    }
    let depths = depths(blocks);
    let mut before = vec![Vec::new(); blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        block.successors.iter().for_each(|next| before[*next].push(number));
    }
    let is_frame = |one: &Instruction| {
        one.op0_register() == Register::RBP
            && match one.code() {
                Code::Lea_r64_m => one.memory_base() == Register::RSP,
                Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => one.op1_register() == Register::RSP,
                _ => false,
            }
    };
    let has_frame = blocks.iter().flat_map(|block| &block.instructions).any(is_frame);
    let facts = InstructionInfoFactory::new();
    let mut origins = Origins { blocks, before: &before, has_frame, facts };
    let leaves = |number: &usize| depths[*number] == Some(0) && origins.is_pointer(*number);
    let found: Vec<usize> = open.into_iter().filter(leaves).collect();
    found.into_iter().for_each(|number| blocks[number].exit = Exit::Leaves);
}

/// Where the stack pointer is: bytes below where it was at the function's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stack {
    rsp: Option<i64>,
    /// The frame pointer, if it points into the frame.
    rbp: Option<i64>,
}

/// By block, how far the stack pointer is below that of the start at its end. None if that is not known, or
/// not the same on all known paths.
fn depths(blocks: &[Block]) -> Vec<Option<i64>> {
    let mut facts = InstructionInfoFactory::new();
    let mut at: Vec<Option<Stack>> = vec![None; blocks.len()];
    let mut ends: Vec<Option<i64>> = vec![None; blocks.len()];
    at[0] = Some(Stack { rsp: Some(0), rbp: None });
    let mut pending = vec![0];
    while let Some(number) = pending.pop() {
        let Some(begin) = at[number] else { continue };
        let own = blocks[number].instructions.iter();
        let end = own.fold(begin, |stack, one| stack.after(one, &mut facts));
        ends[number] = end.rsp;
        for next in &blocks[number].successors {
            let joined = match at[*next] {
                None => end,
                Some(known) => known.or_unknown(end),
            };
            if at[*next] != Some(joined) {
                at[*next] = Some(joined);
                pending.push(*next);
            }
        }
    }
    ends
}

impl Stack {
    /// What both paths agree on.
    fn or_unknown(self, other: Self) -> Self {
        let same = |one: Option<i64>, two: Option<i64>| one.filter(|_| one == two);
        Self { rsp: same(self.rsp, other.rsp), rbp: same(self.rbp, other.rbp) }
    }

    fn after(self, one: &Instruction, facts: &mut InstructionInfoFactory) -> Self {
        let Self { rsp, rbp } = self;
        if matches!(one.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            return self;
        }
        let frame = |register| match register {
            Register::RSP => rsp,
            Register::RBP => rbp,
            _ => None,
        };
        // What an instruction gives for rsp or rbp, in 64 bits.
        let moved = match one.code() {
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => frame(one.op1_register()),
            Code::Lea_r64_m if one.memory_index() == Register::None => {
                let down = one.memory_displacement64().cast_signed();
                frame(one.memory_base()).map(|depth| depth - down)
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => {
                frame(one.op0_register()).map(|depth| depth - one.immediate(1).cast_signed())
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => {
                frame(one.op0_register()).map(|depth| depth + one.immediate(1).cast_signed())
            }
            Code::Leaveq => return Self { rsp: rbp.map(|depth| depth - 8), rbp: None },
            _ => None,
        };
        let writes = |register| is_written(one, register, facts).is_some();
        let [to_rsp, to_rbp] = [Register::RSP, Register::RBP].map(writes);
        let pushed = i64::from(one.stack_pointer_increment());
        Self {
            rsp: match to_rsp {
                true if pushed != 0 => rsp.map(|depth| depth - pushed),
                true => moved,
                false => rsp,
            },
            rbp: if to_rbp { moved } else { rbp },
        }
    }
}

/// How an instruction writes a register or a part of it, if it does.
fn is_written(
    one: &Instruction,
    register: Register,
    facts: &mut InstructionInfoFactory,
) -> Option<OpAccess> {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    let used = facts.info(one).used_registers().iter();
    let mut own = used.filter(|used| used.register().full_register() == register);
    own.find(|used| matches!(used.access(), Write | CondWrite | ReadWrite | ReadCondWrite))
        .map(|used| used.access())
}

/// Where the targets of jumps come from.
struct Origins<'a> {
    blocks: &'a [Block],
    /// By block, those that lead there.
    before: &'a [Vec<usize>],
    /// Whether rbp may point into the stack.
    has_frame: bool,
    facts: InstructionInfoFactory,
}

impl Origins<'_> {
    /// Whether the jump at the end of a block goes to a whole pointer, on all paths.
    fn is_pointer(&mut self, number: usize) -> bool {
        let own = &self.blocks[number].instructions;
        let Some(jump) = own.last() else { return false };
        if jump.op0_kind() == OpKind::Memory {
            return self.is_whole(jump);
        }
        let mut seen = BTreeSet::new();
        let mut pending = vec![(number, own.len() - 1, jump.op0_register())];
        while let Some((number, end, register)) = pending.pop() {
            let block = &self.blocks[number];
            match self.source(&block.instructions[..end], register) {
                None => return false,
                Some(Source::Pointer) => {}
                Some(Source::Before(register)) => {
                    // An argument is a pointer; an exception or an unknown jump brings anything.
                    let from = &self.before[number];
                    if number != 0 && (block.is_entered || from.is_empty()) {
                        return false;
                    }
                    for from in from {
                        if seen.insert((*from, register as usize)) {
                            pending.push((*from, self.blocks[*from].instructions.len(), register));
                        }
                    }
                }
            }
        }
        true
    }

    /// Where the value of a register after these instructions comes from, if it is a pointer.
    fn source(&mut self, instructions: &[Instruction], register: Register) -> Option<Source> {
        let mut register = register;
        for one in instructions.iter().rev() {
            let is_call =
                matches!(one.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            if is_call && register == Register::RAX {
                return Some(Source::Pointer);
            }
            // Code that reads another register after a call relies on that to preserve it.
            if is_call || is_written(one, register, &mut self.facts).is_none() {
                continue;
            }
            match one.code() {
                Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if one.op1_kind() == OpKind::Register => {
                    register = one.op1_register();
                }
                Code::Mov_r64_rm64 => return self.is_whole(one).then_some(Source::Pointer),
                Code::Lea_r64_m if one.is_ip_rel_memory_operand() => {
                    return Some(Source::Pointer);
                }
                _ => return None,
            }
        }
        Some(Source::Before(register))
    }

    /// Whether the memory operand is a pointer that the function has not stored itself: not on its stack,
    /// and not in the thread's block, where pointers are encrypted (PTR_MANGLE of glibc).
    fn is_whole(&self, one: &Instruction) -> bool {
        let base = one.memory_base();
        base != Register::RSP
            && !(self.has_frame && base == Register::RBP)
            && !matches!(one.segment_prefix(), Register::FS | Register::GS)
            && one.memory_size().size() == 8
    }
}

/// Where a value comes from.
enum Source {
    /// It was loaded, returned or is an address in the code.
    Pointer,
    /// From this register before.
    Before(Register),
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use isa::code::parse_hex;

    /// Blocks by their bytes and successors; those that end in an indirect jump are open.
    fn blocks(all: &[(&str, &[usize])]) -> Vec<Block> {
        let mut start = 0x1000;
        let block = |(hex, successors): &(&str, &[usize])| {
            let code = parse_hex(hex).unwrap();
            let decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
            let instructions: Vec<Instruction> = decoder.into_iter().collect();
            let (begin, end) = (start, start + code.len() as u64);
            start = end;
            Block {
                start: begin,
                end,
                live: vec![0; instructions.len()],
                instructions,
                successors: successors.to_vec(),
                exit: if successors.is_empty() { Exit::Unknown } else { Exit::None },
                is_entered: begin == 0x1000,
                is_reached: true,
            }
        };
        all.iter().map(block).collect()
    }

    fn exit(all: &[(&str, &[usize])]) -> Exit {
        let mut blocks = blocks(all);
        mark(&mut blocks);
        blocks.last().unwrap().exit
    }

    #[test]
    fn a_jump_to_a_loaded_pointer_with_the_stack_as_at_the_start_is_a_tail_call() {
        // push rbx; mov rbx,rdi; test rdi,rdi; je | mov rax,[rbx+0x48] | pop rbx; jmp rax
        let begin = ("53, 48 89 fb, 48 85 ff, 74 04", &[1, 1][..]);
        let load = ("48 8b 43 48", &[2][..]);
        assert_eq!(exit(&[begin, load, ("5b, ff e0", &[])]), Exit::Leaves);
        // Without the pop; with lea rsp,[rsp+8] for it; a second pop on one path.
        assert_eq!(exit(&[begin, load, ("ff e0", &[])]), Exit::Unknown);
        assert_eq!(exit(&[begin, load, ("48 8d 64 24 08, ff e0", &[])]), Exit::Leaves);
        let uneven = ("53, 48 89 fb, 48 85 ff, 74 04", &[1, 2][..]);
        let popped = ("48 8b 43 48, 5b", &[2][..]);
        assert_eq!(exit(&[uneven, popped, ("5b, ff e0", &[])]), Exit::Unknown);
        // push rbp; mov rbp,rsp; sub rsp,16; mov rax,[rdi]; leave; jmp rax
        let framed = "55, 48 89 e5, 48 83 ec 10, 48 8b 07, c9, ff e0";
        assert_eq!(exit(&[(framed, &[])]), Exit::Leaves);
    }

    #[test]
    fn sums_halves_and_the_stack_are_no_pointers() {
        // jmp rdx, an argument; jmp [rdi+0x18]; jmp [rip+8]
        for leaves in ["ff e2", "ff 67 18", "ff 25 08 00 00 00"] {
            assert_eq!(exit(&[(leaves, &[])]), Exit::Leaves, "{leaves}");
        }
        // movsxd rax,[rdx+rcx*4]; add rax,rdx; jmp rax. mov eax,[rdi]; jmp rax. jmp [rsp+8].
        // mov rax,[rsp-8]; jmp rax. mov rax,fs:[rdi]; jmp rax.
        for stays in [
            "48 63 04 8a, 48 01 d0, ff e0",
            "8b 07, ff e0",
            "ff 64 24 08",
            "48 8b 44 24 f8, ff e0",
            "64 48 8b 07, ff e0",
        ] {
            assert_eq!(exit(&[(stays, &[])]), Exit::Unknown, "{stays}");
        }
    }
}
