//! A block whose loads are all from one address: what it takes where none of them misses a cache.

use super::decode::Block;
use super::inst::Inst;
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Instruction, InstructionBlock, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};
use tma::{Error, Result};

/// The block with every operand that is only read from memory at `address`. Operands relative to the instruction
/// pointer, those of strings and of the stack, and gathers stay as they are. What the loaded values depend on is lost.
///
/// # Errors
/// There is no such operand, or the code cannot be encoded.
///
/// ```
/// use isa::code::{Block, loads_at, parse_hex};
///
/// // add rdx, [rdi+rcx*8]; add rcx, 512; jne back
/// let block = Block::decode(&parse_hex("480314cf 4881c100020000 75f3")?)?;
/// let made = Block::decode(&loads_at(&block, 0x3000_0000)?)?;
/// let texts: Vec<&str> = made.instructions.iter().map(|one| one.text.as_str()).collect();
/// assert_eq!(texts, ["add rdx,[0x30000000]", "add rcx,0x200", "jne short 0"]);
/// # Ok::<(), tma::Error>(())
/// ```
pub fn loads_at(block: &Block, address: u32) -> Result<Vec<u8>> {
    let mut facts = InstructionInfoFactory::new();
    let mut changed = false;
    let mut at = |inst: &Inst| {
        let mut made = inst.decoded;
        if is_plain_load(&made, &mut facts) {
            made.set_memory_base(Register::None);
            made.set_memory_index(Register::None);
            made.set_memory_index_scale(1);
            made.set_memory_displacement64(address.into());
            made.set_memory_displ_size(8);
            changed = true;
        }
        made
    };
    let all: Vec<Instruction> = block.instructions.iter().map(&mut at).collect();
    if !changed {
        return Err(Error::failed("the block has no load whose address could be another"));
    }
    let block = InstructionBlock::new(&all, 0);
    BlockEncoder::encode(64, block, BlockEncoderOptions::NONE)
        .map(|made| made.code_buffer)
        .map_err(|e| Error::failed("the block cannot be encoded").because(e))
}

fn is_plain_load(instruction: &Instruction, facts: &mut InstructionInfoFactory) -> bool {
    let has_operand =
        (0..instruction.op_count()).any(|number| instruction.op_kind(number) == OpKind::Memory);
    let is_plain = has_operand
        && !instruction.is_ip_rel_memory_operand()
        && !instruction.is_vsib()
        && !instruction.is_stack_instruction()
        && instruction.mnemonic() != Mnemonic::Lea;
    let memory = facts.info(instruction).used_memory();
    is_plain
        && !memory.is_empty()
        && memory.iter().all(|one| matches!(one.access(), OpAccess::Read | OpAccess::CondRead))
}
