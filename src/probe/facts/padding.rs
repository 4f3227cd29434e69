//! Padding that nothing executes: compilers fill up to the next function or jump target.

use super::block::Block;
use super::module::Module;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

/// Functions begin at multiples of this.
const ALIGNMENT: u64 = 16;

impl Module {
    /// The end of the padding after a function that ends at `end`: the next known or aligned
    /// address.
    pub(super) fn padding_end(&self, end: u64) -> u64 {
        let range = end..end.next_multiple_of(ALIGNMENT);
        let next = self.functions.partition_point(|function| function.start < end);
        let function = self.functions.get(next).map(|function| function.start);
        let others = [&self.named, &self.pads].map(|all| all.within(&range).first().copied());
        [function, others[0], others[1]].into_iter().flatten().fold(range.end, u64::min)
    }
}

/// Whether control never passes to the address after a block.
pub(super) fn leaves(block: &Block) -> bool {
    let last = block.instructions.last().map(Instruction::flow_control);
    matches!(
        last,
        Some(FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch)
    )
}

/// The number of first bytes of `code`, at `start`, that are padding.
pub(super) fn padding(code: &[u8], start: u64) -> u64 {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let all = decoder.into_iter().take_while(is_padding);
    all.map(|instruction| instruction.len() as u64).sum()
}

pub(super) fn is_padding(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop || instruction.code() == Code::Int3
}
