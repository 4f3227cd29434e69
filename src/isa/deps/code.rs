//! The code that is looked at: a block, or several of them one behind the other.

use crate::code::Located;
use crate::effects::{Effects, Finder};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use tma::tables::Facts;
use tma::{Error, Result};

/// Most instructions of a region. With three of them more than the widest window holds, steps of a
/// run fit 16 bits.
pub const MOST_INSTRUCTIONS: usize = 1 << 13;

/// Instructions in the order in which they run, over and over.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// Decoded at their addresses.
    pub instructions: Vec<Instruction>,
    /// What each of them does.
    pub effects: Vec<Effects>,
}

impl Code {
    /// Decodes the pieces of a path, each at its address, for a core of which `core` is known.
    ///
    /// # Errors
    /// No bytes, too many instructions, or bytes that are no code.
    pub fn of(pieces: &[Located], core: &Facts) -> Result<Self> {
        let mut code = Self::default();
        for piece in pieces {
            code.add(&piece.bytes, piece.start, core)?;
        }
        match code.instructions.len() {
            0 => Err(Error::failed("the block is empty")),
            n if n > MOST_INSTRUCTIONS => Err(Error::failed("the path is too long")
                .because(format!("{n} instructions; at most {MOST_INSTRUCTIONS} are taken"))),
            _ => Ok(code),
        }
    }

    /// One block at address 0.
    ///
    /// # Errors
    /// As [`Code::of`].
    pub fn of_bytes(bytes: &[u8], core: &Facts) -> Result<Self> {
        let mut code = Self::default();
        code.add(bytes, 0, core)?;
        if code.instructions.is_empty() {
            return Err(Error::failed("the block is empty"));
        }
        Ok(code)
    }

    fn add(&mut self, bytes: &[u8], start: u64, core: &Facts) -> Result<()> {
        let mut finder = Finder::new(core);
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let at = decoder.ip();
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return Err(Error::failed(format!("invalid code at {at:#x}"))
                    .because("no valid instruction in 64-bit mode, or the last one is cut off")
                    .hint("give whole instructions of x86-64 code"));
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

    /// Intel syntax.
    pub fn text(&self, index: usize) -> String {
        self.instructions.get(index).map(crate::code::text).unwrap_or_default()
    }

    /// The memory operand of an access, as the instruction's text has it, else as it is computed.
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
        let base = format!("{:?}", access.base).to_lowercase();
        match access.displacement {
            0 => format!("[{base}]"),
            below if below < 0 => format!("[{base}-{}]", below.unsigned_abs()),
            above => format!("[{base}+{above}]"),
        }
    }
}
