//! The code around sampled instructions, and what they do with memory.

pub(crate) use profile::code::Code;

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess};

/// Memory that an instruction accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Whether it reads.
    pub reads: bool,
    /// Bytes of its largest access, if they are the same each time.
    pub bytes: Option<u8>,
}

/// The memory accesses of an instruction.
pub(crate) fn memory(instruction: &Instruction, info: &mut InstructionInfoFactory) -> Memory {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    let mut found = Memory::default();
    for one in info.info(instruction).used_memory() {
        found.reads |= matches!(one.access(), Read | CondRead | ReadWrite | ReadCondWrite);
        let bytes = u8::try_from(one.memory_size().size()).ok().filter(|bytes| *bytes > 0);
        found.bytes = found.bytes.max(bytes);
    }
    found
}
