//! Blocks of ELF files: `FILE:START..END`, `FILE:0xADDRESS` (the basic block that contains the
//! address), `FILE:FUNCTION[+N]`, and the first block of the loop `FILE:FUNCTION@N`.
//!
//! Addresses are p_vaddr and END is exclusive. `+N` is the N-th basic block of a function, `@N` its
//! N-th loop, from 0, as [`flow`] finds them.

use super::places::{self, Function, Location, LoopName, Names};
use crate::code::{MAX_BLOCK_BYTES, Placeholders, cut, cut_among};
use crate::flow;
use object::{Object as _, ObjectKind, ObjectSection as _, SectionIndex};
use std::ops::Range;
use tma::text::{numbered, several};
use tma::{Error, Result};

/// A block with its address in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Located {
    /// Its start address (p_vaddr).
    pub start: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The function and block number, for display, if the location gave a function or an address.
    pub name: Option<String>,
    /// Number of basic blocks of that function.
    pub of: Option<usize>,
    /// Number of blocks of the loop, if the location named one.
    pub loop_blocks: Option<usize>,
    /// Warnings about the block.
    pub notes: Vec<String>,
}

/// Longest first block of a loop that is named as such: compilers and cryptographic libraries unroll whole rounds.
const MAX_LOOP_BYTES: usize = 4 * MAX_BLOCK_BYTES;

/// The remedy for other files.
const OF_X86_64: &str =
    "give an x86-64 ELF file (a program or a shared library), as FILE:FUNCTION[+N]";

/// The block at `location` of the ELF file `data`.
///
/// # Errors
/// `data` is not an x86-64 ELF file, has no such function or block, or no code at the addresses.
pub fn read_location(data: &[u8], location: &Location) -> Result<Located> {
    read(data, Names::default(), location, None)
}

/// Like [`read_location`], with names of functions that the file itself lacks.
pub fn read_named(data: &[u8], names: Names<'_>, location: &Location) -> Result<Located> {
    read(data, names, location, None)
}

/// The blocks at `locations` of one file, each at its own address. In an object file, all blocks
/// see the same placeholder address for a variable.
pub fn read_path(data: &[u8], names: Names<'_>, locations: &[Location]) -> Result<Vec<Located>> {
    let mut placeholders = Placeholders::default();
    locations.iter().map(|location| read(data, names, location, Some(&mut placeholders))).collect()
}

/// The block at a location. With `among`, relocations resolve relative to its address and share
/// the placeholder addresses of other blocks; without, as if it were at address 0.
fn read(
    data: &[u8],
    names: Names<'_>,
    location: &Location,
    among: Option<&mut Placeholders>,
) -> Result<Located> {
    let program = Program::open(&data)?.with(names);
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
                    let name = program.shown(&function);
                    Error::failed(format!("no basic block of {name} contains {address:#x}"))
                        .because("the bytes at that address are not instructions")
                })
            })?;
            (function.section, start, end)
        }
        Location::Function(name, number) => {
            let function = program.function(name)?;
            let (start, end) = program.block(&function, &mut found, |all| {
                (*number < all.len()).then_some(*number).ok_or_else(|| {
                    let name = program.shown(&function);
                    Error::usage(format!("{name} has no basic block +{number}"))
                        .because(format!("it has {}", numbered(all.len(), "basic block")))
                })
            })?;
            (function.section, start, end)
        }
        Location::Loop(named) => {
            let function = match named {
                LoopName::Number(name, _) => program.function(name)?,
                LoopName::At(address) => program.around(*address)?,
            };
            let (start, end) = program.head(&function, named, &mut found)?;
            (function.section, start, end)
        }
    };
    let most = match location {
        Location::Loop(_) => MAX_LOOP_BYTES,
        _ => MAX_BLOCK_BYTES,
    };
    if end <= start || end - start > most as u64 {
        return Err(Error::usage(format!("{start:#x}..{end:#x} is not a valid block"))
            .because(format!("a block has 1 to {most} bytes, and END is exclusive")));
    }
    Ok(Located { start, bytes: program.bytes(start..end, section, among)?, ..found })
}

/// The bytes of ranges of addresses (p_vaddr) of the ELF file `data`, however long, each with its address.
///
/// # Errors
/// `data` is not an x86-64 ELF file, or has no code there.
pub fn read_ranges(data: &[u8], ranges: &[Range<u64>]) -> Result<Vec<(u64, Vec<u8>)>> {
    let program = Program::open(&data)?;
    ranges.iter().map(|r| Ok((r.start, program.bytes(r.clone(), None, None)?))).collect()
}

/// Name and addresses of the function of the ELF file `data` that contains `address`, if its
/// symbols include one.
pub fn function_around(data: &[u8], address: u64) -> Option<(String, Range<u64>)> {
    let function = Program::open(&data).ok()?.around(address).ok()?;
    Some((function.name, function.start..function.start.saturating_add(function.size)))
}

/// An ELF file whose code is read.
pub(super) struct Program<'a> {
    file: object::File<'a>,
    names: Names<'a>,
    pub image: flow::Image<&'a &'a [u8]>,
}

impl<'a> Program<'a> {
    pub fn open(data: &'a &'a [u8]) -> Result<Self> {
        let refused = || Error::failed("cannot read blocks from this file");
        let file = object::File::parse(*data).map_err(|e| {
            refused().because(format!("it is not an ELF file: {e}")).hint(OF_X86_64)
        })?;
        let image = flow::Image::new(data).map_err(|why| refused().because(why).hint(OF_X86_64))?;
        Ok(Self { file, names: Names::default(), image })
    }

    /// With names of functions that the file itself lacks.
    pub fn with(self, names: Names<'a>) -> Self {
        Self { names, ..self }
    }

    /// The name of a function as people read it.
    pub fn shown(&self, function: &Function) -> String {
        (self.names.shown)(&function.name)
    }

    /// The addresses of the block of `function` that `choose` selects; sets its name in `found`.
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
        let name = self.shown(function);
        let all = several(of, "block");
        found.name = Some(format!("{name}+{number} of {all}, {start:#x}..{end:#x}"));
        found.of = Some(of);
        Ok((start, end))
    }

    /// The addresses of the first block of a loop of `function`; sets its name in `found`.
    fn head(
        &self,
        function: &Function,
        named: &LoopName,
        found: &mut Located,
    ) -> Result<(u64, u64)> {
        let flow = flow::flow(&self.code(function)?, function.start, &[], &self.image);
        let number = match named {
            LoopName::Number(_, number) => (*number < flow.loops.len()).then_some(*number),
            LoopName::At(address) => flow.block_at(*address).and_then(|b| flow.blocks[b].innermost),
        };
        let name = self.shown(function);
        let number = number.ok_or_else(|| {
            let what = match named {
                LoopName::Number(_, number) => format!("{name} has no loop @{number}"),
                LoopName::At(address) => format!("{address:#x} is in no loop of {name}"),
            };
            Error::usage(what).because(format!("it has {}", numbered(flow.loops.len(), "loop")))
        })?;
        let (one, of) = (&flow.loops[number], flow.blocks.len());
        let (start, end) = (flow.blocks[one.head].start, flow.blocks[one.head].end);
        let blocks = several(one.blocks.len(), "block");
        found.name = Some(format!("{name}@{number}, a loop of {blocks} from {start:#x}"));
        found.of = Some(of);
        found.loop_blocks = Some(one.blocks.len());
        Ok((start, end))
    }

    /// A warning if `start` is not at an instruction boundary of its function.
    fn inside_an_instruction(&self, start: u64) -> Option<String> {
        if self.file.kind() == ObjectKind::Relocatable {
            // In object files, functions of different sections have overlapping addresses.
            return None;
        }
        let function = self.around(start).ok()?;
        let flow = flow::flow(&self.code(&function).ok()?, function.start, &[], &self.image);
        let after = flow.instructions.partition_point(|(at, _)| *at <= start);
        let (at, inst) = flow.instructions.get(after.checked_sub(1)?)?;
        let end = at + inst.bytes.len() as u64;
        (*at < start && start < end).then(|| {
            let (text, name) = (&inst.text, self.shown(&function));
            format!(
                "{start:#x} is inside the instruction `{text}` of {name} ({at:#x}..{end:#x}), so \
                 the decoded instructions are not those that the program executes"
            )
        })
    }

    /// All bytes of a function.
    pub fn code(&self, function: &Function) -> Result<Vec<u8>> {
        let end = function.start.saturating_add(function.size);
        self.bytes(function.start..end, function.section, None)
    }

    /// Bytes of an executable segment; in an object file, of `section` or else of `.text`.
    fn bytes(
        &self,
        range: Range<u64>,
        section: Option<SectionIndex>,
        among: Option<&mut Placeholders>,
    ) -> Result<Vec<u8>> {
        if self.file.kind() == ObjectKind::Relocatable {
            return object_code(&self.file, range.start, range.end, section, among);
        }
        self.image.code(range.start, range.end).map(<[u8]>::to_vec).ok_or_else(|| {
            Error::failed(format!("no code at {:#x}..{:#x}", range.start, range.end))
                .because("no executable segment contains these addresses")
                .hint("give the file's virtual addresses (p_vaddr), as objdump prints them")
        })
    }

    /// The function that contains an address.
    pub fn around(&self, address: u64) -> Result<Function> {
        places::around(&self.file, self.names.known, address)
    }

    /// The function `name`.
    pub fn function(&self, name: &str) -> Result<Function> {
        places::named(&self.file, self.names.known, name)
    }
}

/// Code of an object file: addresses are offsets in its section.
fn object_code(
    file: &object::File<'_>,
    start: u64,
    end: u64,
    section: Option<SectionIndex>,
    among: Option<&mut Placeholders>,
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
            Some(placeholders) => cut_among(file, &section, from..to, start as i64, placeholders),
            None => cut(file, &section, from, to),
        },
        _ => Err(Error::failed(format!("no code at {start:#x}..{end:#x}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_selects_the_block_that_contains_it() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let named = Location::Function("main".into(), 1);
        // A Rust test program has a C `main`, but the compiler decides how many blocks it has.
        let Ok(named) = read_location(&own, &named) else { return };
        let inside = named.start + named.bytes.len() as u64 - 1;
        assert_eq!(read_location(&own, &Location::At(inside)).unwrap(), named);
    }

    #[test]
    fn garbage_is_an_error() {
        assert!(read_location(b"\x7fELF garbage", &Location::Range(0, 4)).is_err());
    }
}
