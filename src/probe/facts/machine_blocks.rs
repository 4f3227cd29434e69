//! The blocks of LLVM's code generator, by which it places code again: section `.llvm_bb_addr_map` (LLVM, Extensions,
//! SHT_LLVM_BB_ADDR_MAP).

use super::no_code::{NoCode, foreign};
use object::{Object as _, ObjectSection as _};
use std::ops::Range;
use std::path::Path;

/// Latest version that is known.
const VERSION: u8 = 5;
/// Features: further data of functions, of blocks, and of the edges between blocks; functions in several parts; no blocks.
const ENTRIES: u16 = 1;
const FREQUENCIES: u16 = 1 << 1;
const PROBABILITIES: u16 = 1 << 2;
const PARTS: u16 = 1 << 3;
const NO_BLOCKS: u16 = 1 << 4;
/// Since versions 3, 4 and 5: the ends of calls in a block; its hash; frequencies after linking.
const CALLS: u16 = 1 << 5;
const HASHES: u16 = 1 << 6;
const LINKED: u16 = 1 << 7;

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
        let version = self.byte().filter(|version| *version <= VERSION)?;
        let low = self.byte()?;
        let high = if version >= 5 { self.byte()? } else { 0 };
        let features = u16::from_le_bytes([low, high]);
        // Each version from 3 on has one more.
        let known = (1 << (version.max(2) + 3)) - 1;
        if features & !known != 0 {
            return None;
        }
        let has = |feature: u16| features & feature != 0;
        let parts = if has(PARTS) { self.number()? } else { 1 };
        let mut blocks = Vec::new();
        for _ in 0..parts {
            let address = self.word()?;
            let mut end = address;
            let number = self.number()?;
            let number = if has(NO_BLOCKS) { 0 } else { number };
            for index in 0..number {
                let number = if version >= 2 { self.number()? } else { index };
                // In the oldest version the offset is that in the function.
                let start = match version {
                    0 => address.checked_add(self.number()?)?,
                    _ => end.checked_add(self.number()?)?,
                };
                end = start;
                // Each call ends so far from the one before, and the block from the last.
                let calls = if has(CALLS) { self.number()? } else { 0 };
                for _ in 0..calls {
                    end = end.checked_add(self.number()?)?;
                }
                end = end.checked_add(self.number()?)?;
                let _properties = self.number()?;
                if has(HASHES) {
                    self.word()?;
                }
                blocks.push(MachineBlock { number, range: start..end });
            }
        }
        if has(ENTRIES) {
            self.number()?;
        }
        let data = if has(FREQUENCIES) || has(PROBABILITIES) { blocks.len() } else { 0 };
        for _ in 0..data {
            self.numbers(u8::from(has(FREQUENCIES)) + u8::from(has(LINKED)))?;
            let edges = if has(PROBABILITIES) { self.number()? } else { 0 };
            for _ in 0..edges {
                self.numbers(2 + u8::from(has(LINKED)))?;
            }
        }
        Some(blocks)
    }

    fn numbers(&mut self, many: u8) -> Option<()> {
        (0..many).try_for_each(|_| self.number().map(drop))
    }

    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.data.split_first_chunk()?;
        self.data = rest;
        Some(u64::from_le_bytes(*word))
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

    /// By LLVM's decoder: a part each at 0x1150 and 0x1000; the second block has two calls. Then in version 5 hashes, and
    /// frequencies after linking, too.
    #[test]
    fn newer_versions_have_calls_and_hashes() {
        let part = |at: u64| [&at.to_le_bytes()[..], &[1]].concat();
        let hash = [9; 8];
        let three = [
            &[3, 0x28, 2][..],
            &part(0x1150),
            &[0, 0, 0, 0x14, 8],
            &part(0x1000),
            &[4, 0, 2, 5, 7, 4, 1],
        ];
        let five = [
            &[5, 0xef, 0, 2][..],
            &part(0x1150),
            &[0, 0, 0, 0x14, 8],
            &hash,
            &part(0x1000),
            &[4, 0, 2, 5, 7, 4, 1],
            &hash,
            // Entries; of each block frequencies, and edges.
            &[100, 50, 51, 1, 4, 60, 61, 70, 71, 0],
        ];
        let block = |number, range| MachineBlock { number, range };
        let expected = [block(0, 0x1150..0x1164), block(4, 0x1000..0x1010)];
        for data in [three.concat(), five.concat()] {
            let mut reader = Reader { data: &data };
            assert_eq!(reader.function().as_deref(), Some(&expected[..]));
            assert!(reader.data.is_empty());
            // The version before has one feature less.
            let older = [&[data[0] - 1], &data[1..]].concat();
            assert_eq!(Reader { data: &older }.function(), None);
        }
    }
}
