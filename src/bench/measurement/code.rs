//! The block itself, and a place in it.

use isa::code::Inst;
use serde::Serialize;

/// One instruction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Line {
    /// Offset in the block, `0x…`.
    pub offset: String,
    /// Address in the program's file (p_vaddr), `0x…`, where that is known; jumps in `text` then lead to such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its bytes, hexadecimal.
    pub bytes: String,
    /// Intel syntax.
    pub text: String,
}

impl Line {
    /// An instruction of a block that starts at `start` in its program, if that is known.
    pub(crate) fn of(inst: &Inst, start: Option<u64>) -> Self {
        Self {
            offset: format!("{:#x}", inst.offset),
            address: start.map(|start| format!("{:#x}", start.wrapping_add(inst.offset as u64))),
            bytes: inst.bytes.iter().map(|b| format!("{b:02x}")).collect(),
            text: start.map_or_else(|| inst.text.clone(), |start| inst.text_at(start)),
        }
    }
}

/// The block itself.
#[derive(Debug, Clone, Serialize)]
pub struct Code {
    /// Its name, where the input gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All bytes, hexadecimal.
    pub hex: String,
    /// All instructions.
    pub instructions: Vec<Line>,
}

/// Where a block failed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FaultLocation {
    /// Copy, from 0.
    pub copy: Option<usize>,
    /// Instruction, from 0.
    pub instruction: Option<usize>,
    /// The address touched, `0x…`.
    pub address: Option<String>,
}

impl FaultLocation {
    /// As text: `instruction 3, copy 0, address 0x10`; empty if nothing is known.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.instruction.map(|i| format!("instruction {i}")));
        parts.extend(self.copy.map(|c| format!("copy {c}")));
        parts.extend(self.address.as_ref().map(|a| format!("address {a}")));
        parts.join(", ")
    }
}
