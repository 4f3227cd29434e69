//! Finds flags that instructions or other functions read and replace, and those live before each instruction.

use super::function::{Block, Exit, Function, near_target};
use super::module::Module;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, RflagsBits};

/// All arithmetic flags.
pub const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// Most instructions of another function that are analysed.
const MOST: usize = 24;

/// The flags live before an instruction, from those live after it.
pub(super) fn before(instruction: &Instruction, after: u32) -> u32 {
    after & !replaced(instruction) | instruction.rflags_read() & ARITHMETIC
}

/// Whether an instruction may change a flag.
pub(super) fn changes(instruction: &Instruction) -> bool {
    instruction.rflags_modified() & ARITHMETIC != 0
        || matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

/// The flags that an instruction always gives a defined value.
fn replaced(instruction: &Instruction) -> u32 {
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if (repeated && instruction.is_string_instruction()) || may_shift_by_zero(instruction) {
        return 0;
    }
    (instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set())
        & ARITHMETIC
}

/// A shift or rotation by a count that may be 0, which leaves the flags (Intel SDM vol. 2).
fn may_shift_by_zero(instruction: &Instruction) -> bool {
    use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    let count = match instruction.mnemonic() {
        Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shr => 1,
        Shld | Shrd => 2,
        _ => return false,
    };
    match instruction.op_kind(count) {
        OpKind::Immediate8 => instruction.immediate8() & 0x1f == 0,
        kind => kind == OpKind::Register,
    }
}

/// The flags that the code at `address` may read before it replaces them. `code` are its known
/// bytes.
pub(super) fn read_first(code: &[u8], address: u64) -> u32 {
    let (mut open, mut read) = (ARITHMETIC, 0);
    for instruction in Decoder::with_ip(64, code, address, DecoderOptions::NONE).iter().take(MOST) {
        read |= instruction.rflags_read() & open;
        open &= !replaced(&instruction);
        if open == 0 {
            return read;
        }
        match instruction.flow_control() {
            FlowControl::Next => {}
            // No flag is passed beyond these; a stub goes through the loader.
            FlowControl::Return | FlowControl::Call | FlowControl::IndirectCall => return read,
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => return read,
            _ => return read | open,
        }
    }
    read | open
}

/// Most bytes of another function that are analysed.
const MOST_BYTES: u64 = 128;

impl Function {
    /// Finds the live flags of all blocks.
    pub(super) fn find_live(&mut self, module: &Module) {
        let writes = self.blocks.iter().flat_map(|b| &b.instructions).any(changes);
        let out: Vec<u32> = self.blocks.iter().map(|b| self.live_out(module, b, writes)).collect();
        // Flags that a block reads first, and those after it that are live before it.
        let through = |block: &Block, after| {
            block.instructions.iter().rev().fold(after, |live, i| before(i, live))
        };
        let read: Vec<u32> = self.blocks.iter().map(|b| through(b, 0)).collect();
        let passed = self.blocks.iter().map(|b| through(b, ARITHMETIC));
        let passed: Vec<u32> = passed.collect();
        let mut live_in = vec![0; self.blocks.len()];
        let after = |block: &Block, live_in: &[u32], out: u32| {
            block.successors.iter().fold(out, |all, next| all | live_in[*next])
        };
        let mut changed = true;
        while changed {
            changed = false;
            for (number, block) in self.blocks.iter().enumerate().rev() {
                let now = after(block, &live_in, out[number]) & passed[number] | read[number];
                changed |= live_in[number] != now;
                live_in[number] = now;
            }
        }
        for (block, out) in self.blocks.iter_mut().zip(out) {
            let mut now = after(block, &live_in, out);
            block.live = vec![0; block.instructions.len()];
            for (live, instruction) in block.live.iter_mut().zip(&block.instructions).rev() {
                now = before(instruction, now);
                *live = now;
            }
        }
    }

    /// Flags live after a block due to code outside of the function.
    fn live_out(&self, module: &Module, block: &Block, writes: bool) -> u32 {
        let Some(last) = block.instructions.last() else { return ARITHMETIC };
        let beyond = |address: u64| {
            let most = (1..=MOST_BYTES).rev().find_map(|n| module.code(address..address + n));
            read_first(most.unwrap_or_default(), address)
        };
        let target = near_target(last).filter(|t| !self.range.contains(t));
        match last.flow_control() {
            // The caller may know that a function changes no flag.
            FlowControl::Return if writes => 0,
            FlowControl::Return => ARITHMETIC,
            FlowControl::Call => target.map_or(0, beyond),
            FlowControl::IndirectCall => 0,
            // A table may also lead to a part of the function elsewhere.
            FlowControl::IndirectBranch
                if block.exit == Exit::Unknown
                    || (block.exit == Exit::Leaves && !block.successors.is_empty()) =>
            {
                ARITHMETIC
            }
            FlowControl::Exception => 0,
            _ if block.exit == Exit::Unknown => ARITHMETIC,
            _ => match (target, last.next_ip()) {
                (Some(target), _) => beyond(target),
                (None, next) if next == self.range.end && block.successors.is_empty() => {
                    beyond(next)
                }
                _ => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_other_code() {
        // cmove rax, rbx: ZF; all the others may be read after it.
        assert_eq!(read_first(&[0x48, 0x0f, 0x44, 0xc3], 0), ARITHMETIC);
        // mov eax, 1; add eax, 2; adc rcx, 0
        let sum = [0xb8, 1, 0, 0, 0, 0x83, 0xc0, 2, 0x48, 0x83, 0xd1, 0];
        assert_eq!(read_first(&sum, 0), 0);
        // adc rcx, 0 at its start: CF.
        assert_eq!(read_first(&sum[8..], 0), RflagsBits::CF);
        // ret
        assert_eq!(read_first(&[0xc3], 0), 0);
    }

    #[test]
    fn a_shift_by_cl_replaces_nothing() {
        let shift = |bytes: &[u8]| Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        assert_eq!(before(&shift(&[0xd3, 0xe0]), ARITHMETIC), ARITHMETIC);
        // shl eax, 3 leaves AF undefined, and OF, too.
        let left = before(&shift(&[0xc1, 0xe0, 3]), ARITHMETIC);
        assert_eq!(left & (RflagsBits::ZF | RflagsBits::CF), 0);
    }
}
