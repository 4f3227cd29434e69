//! The blocks of LLVM's code generator, by which it places code again: section `.llvm_bb_addr_map` (LLVM, Extensions,
//! SHT_LLVM_BB_ADDR_MAP).

use super::no_code::{NoCode, foreign};
use object::{Object as _, ObjectSection as _};
use std::ops::Range;
use std::path::Path;

/// Latest version that is known.
const VERSION: u8 = 2;
/// Features: further data of functions, of blocks, and of the edges between blocks; functions in several parts; no blocks.
const ENTRIES: u8 = 1;
const FREQUENCIES: u8 = 1 << 1;
const PROBABILITIES: u8 = 1 << 2;
const PARTS: u8 = 1 << 3;
const NO_BLOCKS: u8 = 1 << 4;

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineBlock {
    /// Its number in the function.
    pub number: u64,
    /// Its addresses; it may be empty.
    pub range: Range<u64>,
}

/// The blocks of each function in order of address, its first one first; `None` if the file has no map of them.
///
/// # Errors
/// The file or the map cannot be read.
pub fn machine_blocks(path: &Path) -> Result<Option<Vec<Vec<MachineBlock>>>, NoCode> {
    let data = super::names::contents(path)?;
    if let Some(why) = foreign(&data) {
        return Err(why);
    }
    let file = object::File::parse(&*data).map_err(NoCode::Damaged)?;
    let mut found = None;
    for section in file.sections().filter(|one| one.name() == Ok(".llvm_bb_addr_map")) {
        let data = section.uncompressed_data().map_err(NoCode::Section)?;
        let functions = found.get_or_insert_with(Vec::new);
        let mut reader = Reader { data: &data };
        while !reader.data.is_empty() {
            match reader.function() {
                Some(blocks) => functions.push(blocks),
                None => return Err(NoCode::MachineBlocks),
            }
        }
    }
    Ok(found)
}

struct Reader<'d> {
    data: &'d [u8],
}

impl Reader<'_> {
    fn function(&mut self) -> Option<Vec<MachineBlock>> {
        let (version, features) = (self.byte()?, self.byte()?);
        let known = ENTRIES | FREQUENCIES | PROBABILITIES | PARTS | NO_BLOCKS;
        if version > VERSION || features & !known != 0 {
            return None;
        }
        let parts = if features & PARTS != 0 { self.number()? } else { 1 };
        let mut blocks = Vec::new();
        for _ in 0..parts {
            let (address, rest) = self.data.split_first_chunk()?;
            self.data = rest;
            let mut end = u64::from_le_bytes(*address);
            let number = self.number()?;
            let number = if features & NO_BLOCKS != 0 { 0 } else { number };
            for index in 0..number {
                let number = if version >= 2 { self.number()? } else { index };
                // In the oldest version the offset is that in the function.
                let start = match version {
                    0 => u64::from_le_bytes(*address).checked_add(self.number()?)?,
                    _ => end.checked_add(self.number()?)?,
                };
                end = start.checked_add(self.number()?)?;
                let _properties = self.number()?;
                blocks.push(MachineBlock { number, range: start..end });
            }
        }
        if features & ENTRIES != 0 {
            self.number()?;
        }
        for _ in 0..blocks.len() {
            if features & FREQUENCIES != 0 {
                self.number()?;
            }
            let edges = if features & PROBABILITIES != 0 { self.number()? } else { 0 };
            for _ in 0..edges {
                self.number()?;
                self.number()?;
            }
        }
        Some(blocks)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.data.split_first()?;
        self.data = rest;
        Some(*byte)
    }

    /// A number in LEB128.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the specification: version 2, a function at 0x1150 with two blocks; offsets begin where the one before ends.
    #[test]
    fn blocks_have_their_numbers_and_addresses() {
        let mut data = vec![2, 0];
        data.extend(0x1150_u64.to_le_bytes());
        data.extend([2, 0, 0, 0x14, 8, 4, 0, 0x86, 0x01, 1]);
        let mut reader = Reader { data: &data };
        let block = |number, range| MachineBlock { number, range };
        let expected = vec![block(0, 0x1150..0x1164), block(4, 0x1164..0x11ea)];
        assert_eq!(reader.function(), Some(expected));
        assert!(reader.data.is_empty());
        for length in 0..data.len() {
            assert_eq!(Reader { data: &data[..length] }.function(), None);
        }
        data[0] = VERSION + 1;
        assert_eq!(Reader { data: &data }.function(), None);
    }
}
