//! Blocks out of ELF files: `FILE:START..END`, `FILE:0xADDRESS` (the block that holds it) and
//! `FILE:FUNCTION[+N]`.
//!
//! Addresses are p_vaddr, END is exclusive. `+N` names the N-th basic block of a function, from 0,
//! as [`flow`] cuts it.

use super::flow;
use super::hex::LONGEST;
use super::region::{Places, cut, cut_among};
use crate::error::nearest;
use crate::{Error, Result};
use object::{
    Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _, SectionIndex, SymbolKind,
};

/// Where in an ELF file a block lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// From the first address up to the second, exclusive.
    Range(u64, u64),
    /// The basic block that holds the address.
    At(u64),
    /// The N-th basic block of a function.
    Function(String, usize),
}

impl Location {
    /// Splits `FILE:WHERE`; `None` if there is no `:` or nothing after it.
    pub fn parse(text: &str) -> Option<(&str, Self)> {
        let (file, place) = text.rsplit_once(':')?;
        if let Some((start, end)) = place.split_once("..") {
            return Some((file, Self::Range(address(start)?, address(end)?)));
        }
        if let Some(at) = place.strip_prefix("0x") {
            return (!file.is_empty()).then_some((file, Self::At(address(at)?)));
        }
        let (name, number) = match place.rsplit_once('+') {
            Some((name, number)) => (name, number.parse().ok()?),
            None => (place, 0),
        };
        (!name.is_empty() && !file.is_empty())
            .then(|| (file, Self::Function(name.to_owned(), number)))
    }
}

/// Addresses are hexadecimal, `0x` or not.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// A block as it lies in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Its address (p_vaddr).
    pub start: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Which block of which function it is, for people, where it was named by that.
    pub name: Option<String>,
}

/// The block at `location` of the ELF file `data`.
///
/// # Errors
/// Not an x86-64 ELF file, no such function or block, or addresses outside its code.
pub fn read_location(data: &[u8], location: &Location) -> Result<Located> {
    read(data, location, None)
}

/// The blocks at `locations` of one file, which run at their addresses: a variable of an object
/// file has one address for all of them.
///
/// # Errors
/// As [`read_location`].
pub fn read_path(data: &[u8], locations: &[Location]) -> Result<Vec<Located>> {
    let mut places = Places::default();
    locations.iter().map(|location| read(data, location, Some(&mut places))).collect()
}

/// The block at a location, said to lie at 0, or at its address and among others.
fn read(data: &[u8], location: &Location, among: Option<&mut Places>) -> Result<Located> {
    let refused = || Error::failed("cannot take blocks from this file");
    let file = object::File::parse(data).map_err(|e| {
        refused()
            .because(format!("it is no program: {e}"))
            .hint("give an x86-64 ELF file (a program or a shared library), as FILE:FUNCTION[+N]")
    })?;
    let image = flow::Image::new(&data).map_err(|why| refused().because(why))?;
    let mut section = None;
    let ((start, end), name) = match location {
        Location::Range(start, end) => ((*start, *end), None),
        Location::At(address) => {
            let (name, start, size, home) = around(&file, *address)?;
            section = home;
            let code = bytes(&file, &image, start..start.saturating_add(size), section, None)?;
            let blocks = flow::blocks(&code, start, &[], &image);
            let holds = |b: &flow::BasicBlock| (b.start..b.end).contains(address);
            let number = blocks.iter().position(holds).ok_or_else(|| {
                Error::failed(format!("no basic block of {name} holds {address:#x}"))
                    .because("the bytes there are no instructions")
            })?;
            let (start, end) = (blocks[number].start, blocks[number].end);
            let of = blocks.len();
            let name = format!("{name}+{number} of {of} blocks, {start:#x}..{end:#x}");
            ((start, end), Some(name))
        }
        Location::Function(name, number) => {
            let (start, size, home) = function(&file, name)?;
            section = home;
            let code = bytes(&file, &image, start..start.saturating_add(size), section, None)?;
            let blocks = flow::blocks(&code, start, &[], &image);
            let (start, end) = blocks.get(*number).map(|b| (b.start, b.end)).ok_or_else(|| {
                Error::usage(format!("{name} has no basic block +{number}"))
                    .because(format!("it has {}, counted from 0", blocks.len()))
            })?;
            let of = blocks.len();
            let name = format!("{name}+{number} of {of} blocks, {start:#x}..{end:#x}");
            ((start, end), Some(name))
        }
    };
    if end <= start || end - start > LONGEST as u64 {
        return Err(Error::usage(format!("{start:#x}..{end:#x} is no block"))
            .because(format!("a block has between 1 and {LONGEST} bytes, END exclusive")));
    }
    Ok(Located { start, bytes: bytes(&file, &image, start..end, section, among)?, name })
}

/// Bytes of a segment that is loaded as code; of an object file, of its `section` or of `.text`.
fn bytes(
    file: &object::File<'_>,
    image: &flow::Image<&&[u8]>,
    range: std::ops::Range<u64>,
    section: Option<SectionIndex>,
    among: Option<&mut Places>,
) -> Result<Vec<u8>> {
    if file.kind() == ObjectKind::Relocatable {
        return object_code(file, range.start, range.end, section, among);
    }
    image.code(range.start, range.end).map(<[u8]>::to_vec).ok_or_else(|| {
        Error::failed(format!("no code at {:#x}..{:#x}", range.start, range.end))
            .because("no segment that is loaded as code holds these addresses")
            .hint("addresses are the file's own (p_vaddr), as objdump prints them")
    })
}

/// Code of a file that is not linked: addresses are offsets in its section.
fn object_code(
    file: &object::File<'_>,
    start: u64,
    end: u64,
    section: Option<SectionIndex>,
    among: Option<&mut Places>,
) -> Result<Vec<u8>> {
    let found = match section {
        Some(index) => file.section_by_index(index).ok(),
        None => file.section_by_name(".text").filter(|s| s.size() > 0),
    };
    let section = found.ok_or_else(|| {
        Error::failed("the object file has no code in .text")
            .hint("name the function: FILE:FUNCTION or FILE:FUNCTION+N")
    })?;
    let offset = |address: u64| usize::try_from(address - section.address().min(address));
    match (offset(start), offset(end)) {
        (Ok(from), Ok(to)) => match among {
            Some(places) => cut_among(file, &section, from..to, start as i64, places),
            None => cut(file, &section, from, to),
        },
        _ => Err(Error::failed(format!("no code at {start:#x}..{end:#x}"))),
    }
}

/// Name, start, size and section of a function.
type Around = (String, u64, u64, Option<SectionIndex>);

/// The function that holds an address.
fn around(file: &object::File<'_>, address: u64) -> Result<Around> {
    let holds = |s: &object::Symbol<'_, '_>| {
        s.kind() == SymbolKind::Text && s.address() <= address && address - s.address() < s.size()
    };
    let found = file.symbols().chain(file.dynamic_symbols()).find(holds);
    let named = found
        .and_then(|s| Some((s.name().ok()?.to_owned(), s.address(), s.size(), s.section_index())));
    named.ok_or_else(|| {
        Error::failed(format!("no function with a size holds {address:#x}"))
            .hint("give FILE:START..END, as objdump prints the addresses")
    })
}

/// Start and size of the function `name`, and its section.
fn function(file: &object::File<'_>, name: &str) -> Result<(u64, u64, Option<SectionIndex>)> {
    let symbols: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
        .collect();
    let found = symbols.iter().find(|s| s.name() == Ok(name));
    found.map(|s| (s.address(), s.size(), s.section_index())).ok_or_else(|| {
        let error = Error::failed(format!("no function `{name}` with a size in the file"));
        match nearest(name, symbols.iter().filter_map(|s| s.name().ok())) {
            Some(other) => error.hint(format!("did you mean `{other}`?")),
            None => error.hint("give FILE:START..END, as objdump prints the addresses"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_read_as_documented() {
        let range = Location::Range(0x401000, 0x401010);
        assert_eq!(Location::parse("a.out:0x401000..0x401010"), Some(("a.out", range.clone())));
        assert_eq!(Location::parse("a.out:401000..401010"), Some(("a.out", range)));
        let named = Location::Function("main".into(), 3);
        assert_eq!(Location::parse("./a.out:main+3"), Some(("./a.out", named)));
        assert_eq!(Location::parse("4801d8"), None);
        assert_eq!(Location::parse("a.out:0x401004"), Some(("a.out", Location::At(0x40_1004))));
    }

    #[test]
    fn an_address_names_the_block_that_holds_it() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let named = Location::Function("main".into(), 1);
        // A test program of Rust has a C `main`; what it looks like is the compiler's affair.
        let Ok(named) = read_location(&own, &named) else { return };
        let inside = named.start + named.bytes.len() as u64 - 1;
        assert_eq!(read_location(&own, &Location::At(inside)).unwrap(), named);
    }

    #[test]
    fn garbage_is_an_error() {
        assert!(read_location(b"\x7fELF garbage", &Location::Range(0, 4)).is_err());
    }
}
