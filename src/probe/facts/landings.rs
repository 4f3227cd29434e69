//! Possible targets of unknown jumps of a function: only places with the stack depth of the jump. A
//! place in code has one depth on all paths, as unwinding needs it.

use super::function::{Block, Exit, Function};
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use std::ops::Range;

/// Bytes that the function has pushed: now, and when `rbp` was set to the stack pointer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Depth {
    stack: Option<i64>,
    frame: Option<i64>,
}

impl Function {
    /// Finds the number of first instructions of each block that run as often as the block is
    /// entered.
    pub(super) fn find_certain(&mut self, all_decoded: bool) {
        if self.is_complete {
            self.blocks.iter_mut().for_each(|block| block.certain = block.instructions.len());
            return;
        }
        let depths = depths(&self.blocks, &self.range);
        let is_unknown = |block: &Block| block.exit == Exit::Unknown;
        let jumps: Option<Vec<i64>> = self
            .blocks
            .iter()
            .zip(&depths)
            .filter(|(block, _)| is_unknown(block))
            .map(|(_, own)| own.last().copied().flatten())
            .collect();
        // Undecoded code may jump at any depth.
        let jumps = jumps.filter(|_| all_decoded);
        let is_safe = |depth: &Option<i64>| {
            jumps.as_ref().zip(*depth).is_some_and(|(jumps, depth)| !jumps.contains(&depth))
        };
        for (block, own) in self.blocks.iter_mut().zip(&depths) {
            // Indirect jumps land on an endbr64, not after it.
            let lands = block.instructions.first().is_some_and(|i| i.code() == Code::Endbr64);
            let sure = (1 + usize::from(lands)).min(own.len());
            block.certain = sure + own[sure..].iter().take_while(|depth| is_safe(depth)).count();
        }
    }
}

/// The depth before each instruction, if known by a path from the start without calls.
fn depths(blocks: &[Block], range: &Range<u64>) -> Vec<Vec<Option<i64>>> {
    let mut factory = InstructionInfoFactory::new();
    let start = blocks.iter().position(|block| block.start == range.start);
    let mut into: Vec<Option<Depth>> = vec![None; blocks.len()];
    let mut open = Vec::new();
    if let Some(start) = start {
        into[start] = Some(Depth { stack: Some(0), frame: None });
        open.push(start);
    }
    while let Some(number) = open.pop() {
        let Some(own) = into[number] else { continue };
        // Code after a call that does not return may be reached otherwise, at another depth.
        if blocks[number].exit == Exit::MayEnd {
            continue;
        }
        let out = blocks[number].instructions.iter().fold(own, |d, i| after(&mut factory, d, i));
        for next in &blocks[number].successors {
            let met = into[*next].map_or(out, |known| known.met(out));
            if into[*next] != Some(met) {
                into[*next] = Some(met);
                open.push(*next);
            }
        }
    }
    let depths_in = |(block, own): (&Block, Option<Depth>)| {
        let mut now = own.unwrap_or_default();
        let each = block.instructions.iter().map(|instruction| {
            let before = now.stack;
            now = after(&mut factory, now, instruction);
            before
        });
        each.collect()
    };
    blocks.iter().zip(into).map(depths_in).collect()
}

impl Depth {
    /// The facts known on both paths.
    fn met(self, other: Self) -> Self {
        let same = |a: Option<i64>, b| a.filter(|_| a == b);
        Self { stack: same(self.stack, other.stack), frame: same(self.frame, other.frame) }
    }
}

/// The depth after an instruction.
fn after(factory: &mut InstructionInfoFactory, now: Depth, instruction: &Instruction) -> Depth {
    use Register::{RBP, RSP};
    let Depth { stack, frame } = now;
    let to = (instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register)
        .then(|| instruction.op0_register());
    let pushed = |bytes: i64| Depth { stack: stack.map(|depth| depth + bytes), frame };
    match (instruction.mnemonic(), to) {
        // Callees preserve both.
        _ if is_call(instruction) => now,
        (Mnemonic::Mov, Some(RBP)) if instruction.op1_register() == RSP => {
            Depth { stack, frame: stack }
        }
        (Mnemonic::Mov, Some(RSP)) if instruction.op1_register() == RBP => {
            Depth { stack: frame, frame }
        }
        (Mnemonic::Leave, _) => Depth { stack: frame.map(|depth| depth - 8), frame: None },
        (Mnemonic::Lea, Some(RSP)) if instruction.memory_index() == Register::None => {
            let up = instruction.memory_displacement64().cast_signed();
            let from = match instruction.memory_base() {
                RSP => stack,
                RBP => frame,
                _ => None,
            };
            Depth { stack: from.map(|depth| depth.wrapping_sub(up)), frame }
        }
        (Mnemonic::Sub, Some(RSP)) => match instruction.try_immediate(1) {
            Ok(bytes) => pushed(bytes.cast_signed()),
            Err(_) => Depth { stack: None, frame },
        },
        (Mnemonic::Add, Some(RSP)) => match instruction.try_immediate(1) {
            Ok(bytes) => pushed(bytes.cast_signed().wrapping_neg()),
            Err(_) => Depth { stack: None, frame },
        },
        _ => {
            let writes = writes(factory, instruction);
            let moved = i64::from(instruction.stack_pointer_increment());
            let stack = match writes(RSP) {
                true if moved == 0 => None,
                _ => stack.map(|depth| depth - moved),
            };
            Depth { stack, frame: frame.filter(|_| !writes(RBP)) }
        }
    }
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

/// Which registers an instruction may write.
fn writes(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> impl Fn(Register) -> bool {
    let used = factory.info(instruction).used_registers();
    let is_written = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead);
    let written: Vec<Register> = used
        .iter()
        .filter(|used| is_written(used.access()))
        .map(|used| used.register().full_register())
        .collect();
    move |register| written.contains(&register)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use isa::code::parse_hex;

    fn along(hex: &str) -> Vec<Option<i64>> {
        let code = parse_hex(hex).unwrap();
        let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
        let mut factory = InstructionInfoFactory::new();
        let mut now = Depth { stack: Some(0), frame: None };
        let each = decoder.into_iter().map(|instruction| {
            now = after(&mut factory, now, &instruction);
            now.stack
        });
        each.collect()
    }

    /// By hand.
    #[test]
    fn the_depth_follows_pushes_and_the_frame() {
        // push rbp; mov rbp,rsp; push rbx; sub rsp,0x18; call; lea rsp,[rbp-8]; pop rbx; pop rbp
        let hex = "55, 48 89 e5, 53, 48 83 ec 18, e8 00 00 00 00, 48 8d 65 f8, 5b, 5d";
        assert_eq!(along(hex), [8, 8, 16, 40, 40, 16, 8, 0].map(Some));
        // push rbp; mov rbp,rsp; sub rsp,0x80 (32 bits); leave
        let hex = "55, 48 89 e5, 48 81 ec 80 00 00 00, c9";
        assert_eq!(along(hex), [8, 8, 136, 0].map(Some));
        // push rbp; mov rbp,rsp; and rsp,-32; push rax; leave
        let hex = "55, 48 89 e5, 48 83 e4 e0, 50, c9";
        assert_eq!(along(hex), [Some(8), Some(8), None, None, Some(0)]);
        // add rsp,8; push 1; pushfq; sub rsp,rax
        let hex = "48 83 c4 08, 6a 01, 9c, 48 29 c4";
        assert_eq!(along(hex), [Some(-8), Some(0), Some(8), None]);
    }
}
