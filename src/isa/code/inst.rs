//! One instruction, with what a measurement needs to know about it.

use crate::names::small;
use iced_x86::{
    Decoder, DecoderOptions, Formatter, Instruction, InstructionInfoFactory, IntelFormatter,
    Mnemonic, OpAccess, OpKind, Register, UsedMemory, UsedRegister,
};

/// One instruction of a block.
#[derive(Debug, Clone)]
pub struct Inst {
    /// Offset from the start of the block, in bytes.
    pub offset: usize,
    /// Its encoding.
    pub bytes: Vec<u8>,
    /// Intel syntax; in a block, whose address is not known, a jump leads to an offset in it.
    pub text: String,
    /// The decoded instruction, at address [`Inst::offset`].
    pub decoded: Instruction,
    /// Registers read or written.
    pub registers: Vec<UsedRegister>,
    /// Memory read or written.
    pub memory: Vec<UsedMemory>,
    /// Offset within the instruction of the displacement of a `[rip+displacement]` operand.
    pub rip_displacement: Option<usize>,
}

/// Whether it is a division or a root, whose time depends on its operands.
pub fn divides(mnemonic: Mnemonic) -> bool {
    let name = small(mnemonic);
    name.contains("div") || name.contains("sqrt")
}

impl Inst {
    /// The flags that it writes whatever its operands are (bits of [`iced_x86::RflagsBits`]).
    pub fn flags_written(&self) -> u32 {
        let decoded = &self.decoded;
        // A shift count of 0 leaves the flags unchanged.
        let counted = (1..decoded.op_count()).any(|i| {
            decoded.op_kind(i) == OpKind::Register && decoded.op_register(i) == Register::CL
        });
        let prefixed = decoded.has_rep_prefix() || decoded.has_repne_prefix();
        let repeated = prefixed && decoded.is_string_instruction();
        if counted || repeated { 0 } else { decoded.rflags_modified() }
    }

    /// The text of a block's instruction where the block starts at `start`: a jump leads to an address.
    pub fn text_at(&self, start: u64) -> String {
        if self.decoded.op0_kind() != OpKind::NearBranch64 {
            return self.text.clone();
        }
        let mut placed = self.decoded;
        placed.set_near_branch64(start.wrapping_add(placed.near_branch64()));
        text(&placed)
    }

    /// Whether `access` reads. A conditional write counts: it may leave the old value in place.
    pub fn reads(access: OpAccess) -> bool {
        matches!(
            access,
            OpAccess::Read
                | OpAccess::CondRead
                | OpAccess::ReadWrite
                | OpAccess::ReadCondWrite
                | OpAccess::CondWrite
        )
    }

    /// Whether `access` writes, always or conditionally.
    pub fn writes(access: OpAccess) -> bool {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    }

    /// Whether it loads or stores.
    pub fn touches_memory(&self) -> bool {
        self.memory.iter().any(|m| Self::reads(m.access()) || Self::writes(m.access()))
    }

    /// Whether it is a hint about a cache line, which never faults.
    pub fn hints(&self) -> bool {
        is_hint(self.decoded.mnemonic())
    }

    /// Whether it stores.
    pub fn writes_memory(&self) -> bool {
        self.memory.iter().any(|m| Self::writes(m.access()))
    }

    /// Whether it is a division or a root, whose time depends on its operands.
    pub fn divides(&self) -> bool {
        divides(self.decoded.mnemonic())
    }

    /// Whether it does SSE or AVX floating-point arithmetic.
    pub fn computes_float(&self) -> bool {
        let name = small(self.decoded.mnemonic());
        let typed = ["ss", "sd", "ps", "pd", "ph", "sh"].iter().any(|suffix| {
            name.ends_with(suffix)
                || name.ends_with(&format!("{suffix}2dq"))
                || name.contains(&format!("{suffix}2"))
        });
        typed
            && self.registers.iter().any(|r| r.register().is_vector_register())
            && !name.contains("mov")
            && !name.starts_with("vbroadcast")
            && !name.contains("shuf")
            && !name.contains("unpck")
    }
}

/// The instruction in Intel syntax.
pub fn text(instruction: &Instruction) -> String {
    written(&mut intel(), instruction)
}

/// The instruction in Intel syntax, in a block whose address is not known.
pub fn text_in_block(instruction: &Instruction) -> String {
    written(&mut in_block(), instruction)
}

fn written(formatter: &mut IntelFormatter, instruction: &Instruction) -> String {
    let mut text = String::new();
    let target = instruction.near_branch64().cast_signed();
    let is_before = instruction.op0_kind() == OpKind::NearBranch64 && target < 0;
    if !is_before || !formatter.options().rip_relative_addresses() {
        formatter.format(instruction, &mut text);
        return text;
    }
    let mut mirrored = *instruction;
    mirrored.set_near_branch64(target.unsigned_abs());
    formatter.format(&mirrored, &mut text);
    text.insert(text.rfind(' ').map_or(0, |at| at + 1), '-');
    text
}

/// Builds [`Inst`]s; reuses iced-x86's formatter and buffers.
pub(crate) struct InstBuilder {
    formatter: IntelFormatter,
    facts: InstructionInfoFactory,
}

impl Default for InstBuilder {
    fn default() -> Self {
        Self { formatter: intel(), facts: InstructionInfoFactory::new() }
    }
}

impl InstBuilder {
    /// For blocks whose addresses are not known.
    pub fn in_block() -> Self {
        Self { formatter: in_block(), ..Self::default() }
    }

    /// The instruction `decoded` from `bytes`, which are at `offset` of its block.
    pub fn inst(&mut self, decoded: Instruction, bytes: &[u8], offset: usize) -> Inst {
        let info = self.facts.info(&decoded);
        Inst {
            offset,
            bytes: bytes.to_vec(),
            text: written(&mut self.formatter, &decoded),
            decoded,
            registers: info.used_registers().to_vec(),
            memory: if is_hint(decoded.mnemonic()) {
                vec![hinted(&decoded)]
            } else {
                info.used_memory().to_vec()
            },
            rip_displacement: rip_displacement(bytes, &decoded),
        }
    }
}

/// The place that a hint names, which iced-x86 does not count as used.
fn hinted(decoded: &Instruction) -> UsedMemory {
    let base = match decoded.is_ip_rel_memory_operand() {
        true => Register::None,
        false => decoded.memory_base(),
    };
    UsedMemory::new(
        decoded.memory_segment(),
        base,
        decoded.memory_index(),
        decoded.memory_index_scale(),
        decoded.memory_displacement64(),
        decoded.memory_size(),
        OpAccess::NoMemAccess,
    )
}

/// Offset of the displacement of a `[rip+displacement]` operand. iced-x86 gives it only right after
/// decoding.
fn rip_displacement(bytes: &[u8], decoded: &Instruction) -> Option<usize> {
    decoded.is_ip_rel_memory_operand().then(|| {
        let mut decoder = Decoder::with_ip(64, bytes, decoded.ip(), DecoderOptions::NONE);
        let decoded = decoder.decode();
        decoder.get_constant_offsets(&decoded).displacement_offset()
    })
}

/// Whether this is a hint about a cache line: it takes the path of a load and never faults.
pub fn is_hint(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Prefetch
            | M::Prefetchnta
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Prefetchw
            | M::Prefetchwt1
            | M::Cldemote
    )
}

/// Without addresses that are made up: operands relative to the instruction pointer show their displacement.
fn in_block() -> IntelFormatter {
    let mut formatter = intel();
    formatter.options_mut().set_rip_relative_addresses(true);
    formatter
}

fn intel() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_branch_leading_zeros(false);
    formatter
}

#[cfg(test)]
mod tests {
    use crate::code::{Block, parse_hex};

    /// By hand, from Intel's manual: 75 and eb take the distance from their end, in a byte; the displacement of
    /// `mov rax,[rip+…]` is counted from its end, too.
    #[test]
    fn a_jump_leads_to_an_offset_in_its_block_or_to_an_address_of_its_program() {
        for (hex, offset, address) in [
            ("ffc9 75fc", "jne short 0", "jne short 0x401000"),
            ("ffc9 75f5", "jne short -7", "jne short 0x400ff9"),
            ("ffc9 eb80", "jmp short -0x7c", "jmp short 0x400f84"),
            ("ffc9 7412", "je short 0x16", "je short 0x401016"),
            ("488b0500200000", "mov rax,[rip+0x2000]", "mov rax,[rip+0x2000]"),
        ] {
            let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
            let last = block.instructions.last().unwrap();
            assert_eq!((&*last.text, &*last.text_at(0x40_1000)), (offset, address), "{hex}");
        }
    }
}
