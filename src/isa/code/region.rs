//! Regions of code that an input marks, their extraction from object files, and bytes as hexadecimal text:
//! `4801d8`, `48 01 d8`, `\x48\x01`, `0x48, 0x01`.
//!
//! An object file is not linked, so symbols that it refers to have no addresses yet. Each such
//! section or symbol gets a placeholder address here, so that different variables do not overlap.

use object::elf::RelocationType;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, Section,
    SectionIndex,
};
use std::collections::BTreeMap;
use std::ops::Range;
use tma::error::nearest;
use tma::text::numbered;
use tma::{Error, Result};

/// A region of code that an input marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its name, where the input gives one.
    pub name: Option<String>,
    /// Its code.
    pub bytes: Vec<u8>,
}

impl Region {
    /// Selects the region by its name, else by its number, from 0.
    ///
    /// # Errors
    /// No region has that name or number.
    pub fn choose(all: Vec<Self>, name: &str) -> Result<Self> {
        let named = all.iter().position(|r| r.name.as_deref() == Some(name));
        let by_number = || name.parse().ok().filter(|n: &usize| *n < all.len());
        if let Some(index) = named.or_else(by_number) {
            return all.into_iter().nth(index).ok_or_else(|| Error::failed("no region"));
        }
        let names: Vec<&str> = all.iter().filter_map(|r| r.name.as_deref()).collect();
        let error = Error::usage(format!("no region `{name}`"))
            .because(format!("the input has {}", numbered(all.len(), "region")));
        Err(match (nearest(name, names.iter().copied()), names.is_empty()) {
            (Some(near), _) => error.hint(format!("did you mean `{near}`?")),
            (None, false) => error.hint(format!("their names: {}", names.join(", "))),
            (None, true) => error.hint("the regions have no names; give a number"),
        })
    }
}

/// First placeholder address, above the lowest address that may be mapped.
const FIRST: i64 = 0x1000_0000;
/// Distance between placeholder addresses: sixteen of them fit without overlap into the memory that
/// the sandbox maps for `[rip+x]`.
const SPACING: i64 = 0x1_0000;

/// Placeholder addresses: one for each section and for each symbol without a section.
#[derive(Default)]
pub(crate) struct Placeholders(BTreeMap<(bool, usize), i64>);

impl Placeholders {
    fn of(&mut self, key: (bool, usize)) -> i64 {
        let next = self.0.len() as i64 + 1;
        *self.0.entry(key).or_insert(next)
    }

    /// Ordinal and address of a relocation's target.
    fn target(&mut self, file: &object::File<'_>, target: RelocationTarget) -> Option<(i64, i64)> {
        let section =
            |placeholders: &mut Self, index: SectionIndex| placeholders.of((true, index.0));
        let (ordinal, within) = match target {
            RelocationTarget::Section(index) => (section(self, index), 0),
            RelocationTarget::Symbol(index) => {
                let symbol = file.symbol_by_index(index).ok()?;
                match symbol.section_index() {
                    Some(home) => (section(self, home), symbol.address() as i64),
                    None => (self.of((false, index.0)), 0),
                }
            }
            // `call 0x100`: the number is the address.
            RelocationTarget::Absolute => return Some((0, 0)),
            _ => return None,
        };
        Some((ordinal, FIRST + ordinal * SPACING + within))
    }
}

/// The bytes `start..end` of `section` (offsets), relocated to placeholder addresses as if the first
/// byte were at address 0.
pub fn cut(
    file: &object::File<'_>,
    section: &Section<'_, '_>,
    start: usize,
    end: usize,
) -> Result<Vec<u8>> {
    cut_among(file, section, start..end, 0, &mut Placeholders::default())
}

/// Cuts a region with its first byte at address `home`; several pieces share `placeholders`.
pub(crate) fn cut_among(
    file: &object::File<'_>,
    section: &Section<'_, '_>,
    Range { start, end }: Range<usize>,
    home: i64,
    placeholders: &mut Placeholders,
) -> Result<Vec<u8>> {
    let failed = |cause: String| Error::failed("cannot extract the region").because(cause);
    if end.saturating_sub(start) > MAX_BLOCK_BYTES {
        return Err(failed(format!(
            "it has {} bytes; the limit is {MAX_BLOCK_BYTES}",
            end - start
        )));
    }
    let data = section.data().map_err(|e| failed(e.to_string()))?;
    let mut bytes = match data.get(start..end) {
        Some([]) | None => return Err(failed("it is empty".to_owned())),
        Some(bytes) => bytes.to_vec(),
    };
    for (offset, relocation) in section.relocations() {
        let Some(offset) = usize::try_from(offset).ok().filter(|o| (start..end).contains(o)) else {
            continue;
        };
        let at = offset - start;
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let (ordinal, address) = placeholders
            .target(file, relocation.target())
            .ok_or_else(|| failed("it has an invalid relocation".to_owned()))?;
        let sum = address.wrapping_add(relocation.addend());
        let value = match Kind::of(r_type) {
            Some(Kind::Absolute | Kind::Wide) => sum,
            Some(Kind::Relative) => sum.wrapping_sub(home.wrapping_add(at as i64)),
            Some(Kind::Thread) => (ordinal * 64).wrapping_add(relocation.addend()),
            None => {
                return Err(failed(format!(
                    "it has a relocation of the unsupported type {}",
                    r_type.0
                )));
            }
        };
        let size = if Kind::of(r_type) == Some(Kind::Wide) { 8 } else { 4 };
        match bytes.get_mut(at..at + size) {
            Some(place) => place.copy_from_slice(&value.to_le_bytes()[..size]),
            None => return Err(failed("it ends in the middle of an address".to_owned())),
        }
    }
    Ok(bytes)
}

/// Encoding of an address by a relocation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 32 bits, absolute.
    Absolute,
    /// 64 bits, absolute.
    Wide,
    /// 32 bits, relative to the relocated field.
    Relative,
    /// 32 bits, relative to the thread pointer.
    Thread,
}

impl Kind {
    /// By the relocation's number in the x86-64 ABI (table 4.9); only those used in code.
    fn of(number: RelocationType) -> Option<Self> {
        Some(match number.0 {
            10 | 11 => Self::Absolute,
            1 => Self::Wide,
            // PC32, PLT32, GOTPCREL, TLSGD, TLSLD, GOTTPOFF, GOTPCRELX with and without REX
            2 | 4 | 9 | 19 | 20 | 22 | 41 | 42 => Self::Relative,
            21 | 23 => Self::Thread,
            _ => return None,
        })
    }
}

/// Largest accepted block, in bytes: far more than fits into the µop cache.
pub const MAX_BLOCK_BYTES: usize = 4096;

/// Parses hexadecimal bytes. White space, commas, quotes, `\x` and `0x` may separate them.
///
/// # Errors
/// The number of digits is odd, a character is not a digit, or there are no bytes or more than
/// 4096.
pub fn parse_hex(text: &str) -> Result<Vec<u8>> {
    let bad = |cause: String| {
        Error::failed("cannot read the block's bytes")
            .because(cause)
            .hint("write them as 4801d8, `48 01 d8`, \\x48\\x01\\xd8 or 0x48,0x01,0xd8")
    };
    let mut bytes = Vec::new();
    for word in words(text) {
        if !word.len().is_multiple_of(2) {
            return Err(bad(format!("`{word}` has an odd number of digits")));
        }
        for pair in word.as_bytes().chunks(2) {
            let digit = |c: u8| (c as char).to_digit(16);
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                _ => {
                    let pair = String::from_utf8_lossy(pair);
                    return Err(bad(format!("`{pair}` is not a hexadecimal byte")));
                }
            }
        }
    }
    match bytes.len() {
        0 => Err(bad("the input is empty".to_owned())),
        n if n > MAX_BLOCK_BYTES => {
            Err(bad(format!("it has {n} bytes; the limit is {MAX_BLOCK_BYTES}")))
        }
        _ => Ok(bytes),
    }
}

/// Runs of digits between separators and prefixes.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\''))
        .flat_map(|word| word.split("\\x"))
        .map(|word| word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_selected_by_name_or_number() {
        let region =
            |name: Option<&str>, byte| Region { name: name.map(str::to_owned), bytes: vec![byte] };
        let all = vec![region(None, 1), region(Some("inner"), 2), region(Some("0"), 3)];
        let chosen = |name: &str| Region::choose(all.clone(), name).map(|r| r.bytes[0]);
        assert_eq!(chosen("inner").unwrap(), 2);
        assert_eq!(chosen("0").unwrap(), 3, "a name takes precedence over a number");
        assert_eq!(chosen("2").unwrap(), 3);
        assert!(chosen("inne").unwrap_err().remedy().unwrap().contains("`inner`"));
        assert!(chosen("3").is_err());
    }

    #[test]
    fn all_common_notations_give_the_same_bytes() {
        for text in
            ["4801d8", "48 01 D8", "\\x48\\x01\\xd8", "0x48, 0x01,0xd8", "0x4801d8", "\"4801d8\"\n"]
        {
            assert_eq!(parse_hex(text).unwrap(), [0x48, 0x01, 0xd8], "{text}");
        }
    }

    #[test]
    fn invalid_input_is_an_error_that_quotes_it() {
        for (text, named) in [("480", "480"), ("48zz", "zz"), ("", "empty"), ("äé", "not a hex")]
        {
            let error = parse_hex(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
