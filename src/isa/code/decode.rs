//! Decodes bytes into the instructions of a block and its live-in registers; gives the block without the branch
//! that ends it, and with all its loads from one address.

use super::inst::{Inst, InstBuilder};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use std::fmt;
use tma::{Error, Result};

/// A decoded block of at least one instruction, all of them valid.
///
/// ```
/// use isa::code::{Block, parse_hex};
///
/// let block = Block::decode(&parse_hex("48 01 d8, 48 83 e9 01, 75 f7")?)?;
/// let text: Vec<&str> = block.instructions.iter().map(|inst| inst.text.as_str()).collect();
/// assert_eq!(text, ["add rax,rbx", "sub rcx,1", "jne short 0"]);
/// assert_eq!(block.final_branch().map(|jump| jump.offset), Some(7));
/// assert!(block.refusal().is_none(), "nothing in it is unsafe to run");
///
/// // The displacement of this `lea rax, [rip+…]` has four bytes, not two.
/// assert!(Block::decode(&parse_hex("48 8d 05 00 10")?).is_err());
/// # Ok::<(), tma::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Block {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// All instructions, in order.
    pub instructions: Vec<Inst>,
}

impl Block {
    /// Decodes all of `bytes` as 64-bit code.
    ///
    /// # Errors
    /// There are no bytes, an instruction is invalid, or the last one is truncated: bytes that
    /// follow the block in memory would complete it.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        let mut builder = InstBuilder::in_block();
        let mut instructions = Vec::new();
        while decoder.can_decode() {
            let start = decoder.position();
            let decoded = decoder.decode();
            if decoded.is_invalid() {
                let cause = if is_truncated(&bytes[start..]) {
                    "the last instruction is truncated"
                } else {
                    "the bytes are not a valid instruction in 64-bit mode"
                };
                return Err(Error::failed(format!("invalid code at offset {start:#x}"))
                    .because(cause)
                    .hint("give complete x86-64 instructions"));
            }
            instructions.push(builder.inst(decoded, &bytes[start..decoder.position()], start));
        }
        if instructions.is_empty() {
            return Err(Error::failed("the block is empty"));
        }
        Ok(Self { bytes: bytes.to_vec(), instructions })
    }

    /// The bytes as lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        self.bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The jump at its end, if it ends in one.
    pub fn final_branch(&self) -> Option<&Inst> {
        self.instructions
            .last()
            .filter(|i| i.decoded.is_jcc_short_or_near() || i.decoded.is_jmp_short_or_near())
    }

    /// Whether it is the body of a loop: its final conditional jump goes to its first instruction.
    pub fn is_loop_body(&self) -> bool {
        self.final_branch().is_some_and(|inst| {
            inst.decoded.is_jcc_short_or_near() && inst.decoded.near_branch_target() == 0
        })
    }

    /// The live-in general-purpose registers (64-bit names): those read before they are written, so
    /// that their initial value matters. A partial write reads the rest of the register.
    pub fn inputs(&self) -> Vec<Register> {
        let mut written = Vec::new();
        let mut inputs = Vec::new();
        for inst in &self.instructions {
            for used in &inst.registers {
                let full = used.register().full_register();
                let partial = Inst::writes(used.access()) && used.register().size() < 4;
                if full.is_gpr()
                    && (Inst::reads(used.access()) || partial)
                    && !written.contains(&full)
                    && !inputs.contains(&full)
                {
                    inputs.push(full);
                }
            }
            for used in &inst.registers {
                let full = used.register().full_register();
                if used.access() == OpAccess::Write && used.register().size() >= 4 {
                    written.push(full);
                }
            }
        }
        inputs
    }

    /// The live-in arithmetic flags (bits of [`iced_x86::RflagsBits`]): those read before they are
    /// unconditionally written, so that their values carry over from the previous iteration.
    pub fn flags_live_in(&self) -> u32 {
        use iced_x86::RflagsBits as Flag;
        let arithmetic = Flag::OF | Flag::SF | Flag::ZF | Flag::AF | Flag::CF | Flag::PF;
        let (mut live, mut written) = (0, 0);
        for inst in &self.instructions {
            live |= inst.decoded.rflags_read() & !written;
            written |= inst.flags_written();
        }
        live & arithmetic
    }

    /// Whether any instruction uses a register that `wanted` accepts.
    pub fn uses(&self, wanted: impl Fn(Register) -> bool) -> bool {
        self.instructions.iter().flat_map(|i| &i.registers).any(|r| wanted(r.register()))
    }
}

/// Whether the bytes are the start of a longer valid instruction.
fn is_truncated(bytes: &[u8]) -> bool {
    let mut padded = bytes.to_vec();
    padded.extend([0; 16]);
    let decoded = Decoder::with_ip(64, &padded, 0, DecoderOptions::NONE).decode();
    !decoded.is_invalid() && decoded.len() > bytes.len()
}

/// Why nothing is left of a block without the instruction that leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NothingLeft {
    /// The block is empty.
    Empty,
    /// It has only this instruction.
    Only(String),
}

impl fmt::Display for NothingLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Only(text) => write!(f, "its only instruction is `{text}`"),
        }
    }
}

impl Block {
    /// The block without a final instruction that leaves it, and that instruction if there is one.
    ///
    /// # Errors
    /// The block has no other instruction.
    pub fn without_exit(&self) -> std::result::Result<(Self, Option<&Inst>), NothingLeft> {
        let last = self.instructions.last().ok_or(NothingLeft::Empty)?;
        let leaves = matches!(
            last.decoded.flow_control(),
            FlowControl::Call
                | FlowControl::IndirectCall
                | FlowControl::Return
                | FlowControl::IndirectBranch
        );
        if !leaves {
            return Ok((self.clone(), None));
        }
        let rest = &self.bytes[..last.offset];
        let rest = Self::decode(rest).map_err(|_| NothingLeft::Only(last.text.clone()))?;
        Ok((rest, Some(last)))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::parse_hex;

    fn block(hex: &str) -> Block {
        Block::decode(&parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn a_truncated_instruction_is_distinguished_from_an_invalid_one() {
        let cut = Block::decode(&[0x48, 0xb8, 1]).unwrap_err().to_string();
        assert!(cut.contains("truncated"), "{cut}");
        let invalid = Block::decode(&[0x06]).unwrap_err().to_string();
        assert!(invalid.contains("not a valid"), "{invalid}");
    }

    #[test]
    fn inputs_are_the_live_in_registers() {
        // mov rax,[rbx]; add rcx,rax; xor edx,edx; add rdx,rcx
        let inputs = block("488b03 4801c1 31d2 4801ca").inputs();
        assert_eq!(inputs, [Register::RBX, Register::RCX]);
    }

    #[test]
    fn unsafe_instructions_are_refused_with_their_reason() {
        // Encodings from the Intel and AMD manuals' opcode tables.
        for (hex, word) in [
            ("0f05", "kernel"),           // syscall
            ("0f01d9", "hypervisor"),     // vmmcall
            ("0f01c1", "hypervisor"),     // vmcall
            ("cd80", "kernel"),           // int 0x80
            ("cc", "kernel"),             // int3
            ("9d", "trap"),               // popfq
            ("8ee0", "segment"),          // mov fs,eax
            ("f3480faed0", "segment"),    // wrfsbase rax
            ("0fae2b", "state"),          // xrstor [rbx]
            ("0fa2", "hypervisor"),       // cpuid
            ("f4", "privileged"),         // hlt
            ("0f01ef", "memory"),         // wrpkru
            ("c3", "leave"),              // ret
            ("ffe0", "indirect"),         // jmp rax
            ("e80000000090", "leave"),    // call; nop
            ("eb0090", "inside"),         // jmp; nop
            ("0f0b", "invalid"),          // ud2
            ("0f01c8", "waits"),          // monitor
            ("ec", "device"),             // in al,dx
            ("0fc7f0", "every run"),      // rdrand eax
            ("0fae3b", "evicts"),         // clflush [rbx]
            ("e2fe", "plain"),            // loop
            ("660f8400000000", "prefix"), // jz with an operand-size prefix
        ] {
            let refusal = block(hex).refusal().unwrap_or_else(|| panic!("{hex} passed"));
            assert!(refusal.reason.contains(word), "{hex}: {}", refusal.reason);
        }
    }

    #[test]
    fn ordinary_code_and_a_final_jump_are_accepted() {
        for hex in ["4801d8", "f30f58c1", "660f1f440000", "4839cf72f8", "9c58", "f3aa", "d9e8"] {
            assert_eq!(block(hex).refusal(), None, "{hex}");
        }
    }

    #[test]
    fn final_calls_and_returns_are_omitted() {
        let of = |hex: &str| Block::decode(&crate::code::parse_hex(hex).unwrap()).unwrap();
        for (hex, rest, without) in [
            ("4801d8 c3", "4801d8", Some("ret")),
            ("4801d8 ffd0", "4801d8", Some("call rax")),
            ("4801d8 75fb", "4801d875fb", None),
        ] {
            let block = of(hex);
            let (kept, omitted) = block.without_exit().unwrap();
            let omitted = omitted.map(|inst| inst.text.as_str());
            assert_eq!((kept.hex().as_str(), omitted), (rest, without));
        }
        assert_eq!(of("c3").without_exit().unwrap_err(), NothingLeft::Only("ret".to_owned()));
    }
}
