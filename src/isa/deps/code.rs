//! The analysed code: a block, or a path of several blocks, executed as a loop; which calls it follows; kinds of
//! dependencies; the size of the reorder buffer.

use crate::code::{Block, text, text_in_block};
use crate::effects::{ArchReg, Effects, Finder, x87};
use crate::names::small;
use crate::program::Located;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use tma::tables::Facts;
use tma::{Core, Error, Result};

/// Limit on the instructions of a region. It keeps the steps of a run, the largest window plus up to
/// three iterations, within 16 bits.
const MAX_INSTRUCTIONS: usize = 1 << 13;

/// The instructions of an iteration, in order of execution.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// The instructions, decoded at their addresses.
    pub instructions: Vec<Instruction>,
    /// The effects of each.
    pub effects: Vec<Effects>,
    /// Whether the addresses are a program's.
    is_placed: bool,
}

impl Code {
    /// Decodes the blocks of a path, each at its address, for the core that `core` describes.
    ///
    /// # Errors
    /// There are no bytes or too many instructions, or bytes do not decode.
    pub fn of(pieces: &[Located], core: &Facts) -> Result<Self> {
        // Bare bytes are at 0.
        let is_placed = pieces.iter().any(|piece| piece.start > 0);
        let mut code = Self { is_placed, ..Self::default() };
        for piece in pieces {
            code.add(&piece.bytes, piece.start, core)?;
        }
        x87::resolve(&code.instructions, &mut code.effects);
        match code.instructions.len() {
            0 => Err(Error::failed("the block is empty")),
            n if n > MAX_INSTRUCTIONS => Err(Error::failed("the path is too long")
                .because(format!("it has {n} instructions; the limit is {MAX_INSTRUCTIONS}"))),
            _ => Ok(code),
        }
    }

    /// One block at address 0.
    pub fn of_bytes(bytes: &[u8], core: &Facts) -> Result<Self> {
        let mut code = Self::default();
        code.add(bytes, 0, core)?;
        x87::resolve(&code.instructions, &mut code.effects);
        if code.instructions.is_empty() {
            return Err(Error::failed("the block is empty"));
        }
        Ok(code)
    }

    /// A decoded block at address 0.
    pub fn of_block(block: &Block, core: &Facts) -> Self {
        let mut finder = Finder::new(core);
        let instructions: Vec<_> = block.instructions.iter().map(|inst| inst.decoded).collect();
        let mut effects: Vec<_> = instructions.iter().map(|one| finder.effects(one)).collect();
        x87::resolve(&instructions, &mut effects);
        Self { instructions, effects, is_placed: false }
    }

    fn add(&mut self, bytes: &[u8], start: u64, core: &Facts) -> Result<()> {
        let mut finder = Finder::new(core);
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let at = decoder.ip();
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return Err(Error::failed(format!("invalid code at {at:#x}"))
                    .because(
                        "the bytes are not a valid instruction in 64-bit mode, or are truncated",
                    )
                    .hint("give complete x86-64 instructions"));
            }
            self.effects.push(finder.effects(&instruction));
            self.instructions.push(instruction);
        }
        Ok(())
    }

    /// Address of the instruction at `index`.
    pub fn address(&self, index: usize) -> u64 {
        self.instructions.get(index).map_or(0, Instruction::ip)
    }

    /// The instruction at `index` in Intel syntax.
    pub fn text(&self, index: usize) -> String {
        let text = if self.is_placed { text } else { text_in_block };
        self.instructions.get(index).map(text).unwrap_or_default()
    }

    /// A register as it is displayed: a vector register as these instructions name it, in its widest form.
    pub fn register_name(&self, register: ArchReg, instructions: [usize; 2]) -> String {
        let all = instructions.into_iter().filter_map(|index| self.instructions.get(index));
        let named = all.flat_map(|one| (0..one.op_count()).map(|operand| one.op_register(operand)));
        let same = named.filter(|one| ArchReg::of(*one) == Some(register));
        let widest = same.filter(|_| register.is_vector()).max_by_key(|one| one.size());
        widest.map_or_else(|| register.name(), small)
    }

    /// The memory operand of an access as in the instruction's text, or reconstructed if it is
    /// implicit.
    pub fn memory_text(&self, index: usize, access: usize) -> String {
        let text = self.text(index);
        if let Some((_, rest)) = text.split_once('[')
            && let Some((operand, _)) = rest.split_once(']')
        {
            return format!("[{operand}]");
        }
        let Some(access) = self.effects.get(index).and_then(|e| e.memory.get(access)) else {
            return "[?]".to_owned();
        };
        let base = small(access.base);
        match access.displacement {
            0 => format!("[{base}]"),
            below if below < 0 => format!("[{base}-{}]", below.unsigned_abs()),
            above => format!("[{base}+{above}]"),
        }
    }
}

/// General-purpose registers that a callee may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V
/// ABI for x86-64, 3.2.1), by their encoding numbers.
pub const CALLER_SAVED: u16 = 0b1111_1100_0111;

/// Which calls the region follows into the callee: the next instruction is not the one after the
/// call, or the region contains the return to that one.
pub fn followed(code: &Code) -> Vec<bool> {
    let all = &code.instructions;
    let mut found = vec![false; all.len()];
    let mut open: Vec<usize> = Vec::new();
    for (number, instruction) in all.iter().enumerate() {
        // After the last instruction comes the first one, of the next iteration.
        let next = all.get(number + 1).or(all.first()).map_or(0, Instruction::ip);
        match instruction.mnemonic() {
            Mnemonic::Call => {
                found[number] = number + 1 < all.len() && next != instruction.next_ip();
                open.push(number);
            }
            // A return elsewhere is the region's own, not its last callee's.
            Mnemonic::Ret => {
                let returned = open.iter().rposition(|call| all[*call].next_ip() == next);
                if let Some(at) = returned {
                    found[open[at]] = true;
                    open.truncate(at);
                }
            }
            _ => {}
        }
    }
    found
}

/// The carrier of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A general-purpose, vector, mask or x87 register.
    Register,
    /// A flag group.
    Flag,
    /// Memory.
    Memory,
}

/// Overlap of a load with the store that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// A single store covers the load: the value is forwarded.
    Full,
    /// A single store covers part of the load; the other bytes come from the cache.
    Partial,
    /// Several stores overlap the load: it waits until they have been written to the cache.
    Blocked,
}

/// The size of a reorder buffer, with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Entries (µops); an instruction takes at least one.
    pub entries: u32,
    /// Where the size comes from.
    pub source: String,
}

/// Entries assumed for unknown cores: those of a large core (Golden Cove), so that no dependency is
/// missed.
const DEFAULT_ENTRIES: u32 = 512;

impl Window {
    /// The reorder buffer of `core`, or a large default if it is not known.
    pub fn of(core: &Core) -> Self {
        match core.reorder_buffer() {
            Some(known) => Self { entries: known.entries, source: known.source },
            None => Self {
                entries: DEFAULT_ENTRIES,
                source: "default (Golden Cove), as this processor's is not known".into(),
            },
        }
    }
}
