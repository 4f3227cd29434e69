//! Blocks out of ELF files: `FILE:START..END`, `FILE:0xADDRESS` (the block that holds it) and
//! `FILE:FUNCTION[+N]`.
//!
//! Addresses are p_vaddr, END is exclusive. `+N` names the N-th basic block of a function, from 0,
//! as [`flow`] cuts it.

use super::hex::LONGEST;
use super::region::{Places, cut, cut_among};
use crate::flow;
use object::{
    Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _, SectionIndex, SymbolKind,
};
use std::ops::Range;
use tma::error::nearest;
use tma::{Error, Result};

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Located {
    /// Its address (p_vaddr).
    pub start: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Which block of which function it is, for people, where it was named by that.
    pub name: Option<String>,
    /// How many blocks that function has.
    pub of: Option<usize>,
    /// What must be known about it.
    pub notes: Vec<String>,
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
    let program = Program::open(&data)?;
    let mut found = Located::default();
    let (section, start, end) = match location {
        Location::Range(start, end) => {
            found.notes.extend(program.inside_an_instruction(*start));
            (None, *start, *end)
        }
        Location::At(address) => {
            let function = program.around(*address)?;
            let holds = |b: &flow::BasicBlock| (b.start..b.end).contains(address);
            let (start, end) = program.block(&function, &mut found, |all| {
                all.iter().position(holds).ok_or_else(|| {
                    let name = &function.name;
                    Error::failed(format!("no basic block of {name} holds {address:#x}"))
                        .because("the bytes there are no instructions")
                })
            })?;
            (function.section, start, end)
        }
        Location::Function(name, number) => {
            let function = program.function(name)?;
            let (start, end) = program.block(&function, &mut found, |all| {
                (*number < all.len()).then_some(*number).ok_or_else(|| {
                    Error::usage(format!("{name} has no basic block +{number}"))
                        .because(format!("it has {}, counted from 0", all.len()))
                        .hint(format!("tdtool block --list FILE:{name} lists them"))
                })
            })?;
            (function.section, start, end)
        }
    };
    if end <= start || end - start > LONGEST as u64 {
        return Err(Error::usage(format!("{start:#x}..{end:#x} is no block"))
            .because(format!("a block has between 1 and {LONGEST} bytes, END exclusive")));
    }
    Ok(Located { start, bytes: program.bytes(start..end, section, among)?, ..found })
}

/// Name and addresses of the function of the ELF file `data` that holds `address`, if its symbols
/// tell.
pub fn function_around(data: &[u8], address: u64) -> Option<(String, Range<u64>)> {
    let function = Program::open(&data).ok()?.around(address).ok()?;
    Some((function.name, function.start..function.start.saturating_add(function.size)))
}

/// A function as the symbols have it.
pub(super) struct Function {
    pub name: String,
    pub start: u64,
    size: u64,
    section: Option<SectionIndex>,
}

/// An ELF file whose code is looked at.
pub(super) struct Program<'a> {
    file: object::File<'a>,
    pub image: flow::Image<&'a &'a [u8]>,
}

impl<'a> Program<'a> {
    pub fn open(data: &'a &'a [u8]) -> Result<Self> {
        let refused = || Error::failed("cannot take blocks from this file");
        let file = object::File::parse(*data).map_err(|e| {
            refused().because(format!("it is no program: {e}")).hint(
                "give an x86-64 ELF file (a program or a shared library), as FILE:FUNCTION[+N]",
            )
        })?;
        let image = flow::Image::new(data).map_err(|why| refused().because(why))?;
        Ok(Self { file, image })
    }

    /// The block of `function` that `choose` chooses, and its name.
    fn block(
        &self,
        function: &Function,
        found: &mut Located,
        choose: impl Fn(&[flow::BasicBlock]) -> Result<usize>,
    ) -> Result<(u64, u64)> {
        let code = self.code(function)?;
        let blocks = flow::blocks(&code, function.start, &[], &self.image);
        let number = choose(&blocks)?;
        let (start, end, of) = (blocks[number].start, blocks[number].end, blocks.len());
        let name = &function.name;
        found.name = Some(format!("{name}+{number} of {of} blocks, {start:#x}..{end:#x}"));
        found.of = Some(of);
        Ok((start, end))
    }

    /// What is to be said of a start that is not where an instruction of its function begins.
    fn inside_an_instruction(&self, start: u64) -> Option<String> {
        if self.file.kind() == ObjectKind::Relocatable {
            // Functions of different sections share their addresses there.
            return None;
        }
        let function = self.around(start).ok()?;
        let flow = flow::flow(&self.code(&function).ok()?, function.start, &[], &self.image);
        let after = flow.instructions.partition_point(|(at, _)| *at <= start);
        let (at, inst) = flow.instructions.get(after.checked_sub(1)?)?;
        let behind = at + inst.bytes.len() as u64;
        (*at < start && start < behind).then(|| {
            let (text, name) = (&inst.text, &function.name);
            format!(
                "{start:#x} lies inside of `{text}` of {name} ({at:#x}..{behind:#x}): what is \
                 decoded from there on is not what the program runs"
            )
        })
    }

    /// All bytes of a function.
    pub fn code(&self, function: &Function) -> Result<Vec<u8>> {
        let end = function.start.saturating_add(function.size);
        self.bytes(function.start..end, function.section, None)
    }

    /// Bytes of a segment that is loaded as code; of an object file, of its `section` or of `.text`.
    fn bytes(
        &self,
        range: Range<u64>,
        section: Option<SectionIndex>,
        among: Option<&mut Places>,
    ) -> Result<Vec<u8>> {
        if self.file.kind() == ObjectKind::Relocatable {
            return object_code(&self.file, range.start, range.end, section, among);
        }
        self.image.code(range.start, range.end).map(<[u8]>::to_vec).ok_or_else(|| {
            Error::failed(format!("no code at {:#x}..{:#x}", range.start, range.end))
                .because("no segment that is loaded as code holds these addresses")
                .hint("addresses are the file's own (p_vaddr), as objdump prints them")
        })
    }

    /// The function that holds an address.
    pub fn around(&self, address: u64) -> Result<Function> {
        let holds = |s: &object::Symbol<'_, '_>| {
            s.kind() == SymbolKind::Text
                && s.address() <= address
                && address - s.address() < s.size()
        };
        let found = self.file.symbols().chain(self.file.dynamic_symbols()).find(holds);
        found.and_then(|s| Function::of(&s)).ok_or_else(|| {
            Error::failed(format!("no function with a size holds {address:#x}"))
                .hint("give FILE:START..END, as objdump prints the addresses")
        })
    }

    /// The function `name`.
    pub fn function(&self, name: &str) -> Result<Function> {
        let symbols: Vec<_> = self
            .file
            .symbols()
            .chain(self.file.dynamic_symbols())
            .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
            .collect();
        let found = symbols.iter().find(|s| s.name() == Ok(name));
        found.and_then(Function::of).ok_or_else(|| {
            let error = Error::failed(format!("no function `{name}` with a size in the file"));
            match nearest(name, symbols.iter().filter_map(|s| s.name().ok())) {
                Some(other) => error.hint(format!("did you mean `{other}`?")),
                None => error.hint("give FILE:START..END, as objdump prints the addresses"),
            }
        })
    }
}

impl Function {
    fn of(symbol: &object::Symbol<'_, '_>) -> Option<Self> {
        Some(Self {
            name: symbol.name().ok()?.to_owned(),
            start: symbol.address(),
            size: symbol.size(),
            section: symbol.section_index(),
        })
    }
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
