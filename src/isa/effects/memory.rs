//! Memory operands; gathers and scatters lane by lane.

use super::model::{Access, Effects};
use iced_x86::{
    CodeSize, Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

/// Adds the memory accesses of `instruction`.
pub(super) fn add(effects: &mut Effects, instruction: &Instruction, facts: &InstructionInfo) {
    let masked = is_masked(instruction);
    for used in facts.used_memory() {
        let access = access(instruction, used, masked);
        if !used.index().is_vector_register() {
            effects.memory.push(access);
            continue;
        }
        let lanes = lanes(instruction, used.index(), access.bytes);
        effects.memory.extend((0..lanes).map(|lane| Access { lane: Some(lane), ..access }));
    }
}

fn access(instruction: &Instruction, used: &UsedMemory, masked: bool) -> Access {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
    let kind = used.access();
    let segment = used.segment();
    let by_bits = is_bit_string(instruction);
    let bytes = used.memory_size().size();
    Access {
        segment: match segment {
            Register::FS | Register::GS => segment,
            _ => Register::None,
        },
        base: used.base().full_register(),
        index: match used.index() {
            vector if vector.is_vector_register() => vector,
            index => index.full_register(),
        },
        scale: u8::try_from(used.scale()).unwrap_or(1).max(1),
        displacement: used.displacement() as i64,
        bytes: if by_bits { 0 } else { u32::try_from(bytes).unwrap_or(0) },
        wide: used.address_size() != CodeSize::Code32,
        load: matches!(kind, Read | CondRead | ReadWrite | ReadCondWrite),
        store: matches!(kind, Write | CondWrite | ReadWrite | ReadCondWrite),
        conditional: masked || matches!(kind, CondRead | CondWrite),
        lane: None,
    }
}

/// Whether a mask may suppress elements of its memory operand.
fn is_masked(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    instruction.has_op_mask()
        || matches!(
            instruction.mnemonic(),
            M::Vmaskmovps
                | M::Vmaskmovpd
                | M::Vpmaskmovd
                | M::Vpmaskmovq
                | M::Maskmovq
                | M::Maskmovdqu
                | M::Vmaskmovdqu
        )
        || instruction.is_vsib()
}

/// Number of elements of a gather or scatter: as many as fit both the index register and the data
/// register. `element` is the size of one in memory, in bytes.
fn lanes(instruction: &Instruction, index: Register, element: u32) -> u8 {
    let index_bytes = if instruction.is_vsib64() { 8 } else { 4 };
    let indices = index.size() / index_bytes;
    let data = [instruction.op0_register(), instruction.op1_register()]
        .into_iter()
        .find(|r| r.is_vector_register());
    let held = match (data, usize::try_from(element)) {
        (Some(data), Ok(element)) if element > 0 => data.size() / element,
        _ => indices,
    };
    u8::try_from(indices.min(held)).unwrap_or(0)
}

/// Whether it is `bt`, `bts`, `btr` or `btc` on memory with the bit offset in a register, whose upper
/// bits are added to the address.
pub(super) fn is_bit_string(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
}
