//! Blocks out of ELF files: `FILE:START..END` and `FILE:FUNCTION[+N]`.
//!
//! Addresses are p_vaddr, END is exclusive. A function is cut into basic blocks at its direct
//! jumps, their targets and whatever else ends a block; `+N` names the N-th of them, from 0.

use super::hex::LONGEST;
use crate::error::nearest;
use crate::{Error, Result};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SegmentFlags, SymbolKind};
use std::collections::BTreeSet;

/// Where in an ELF file a block lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// From the first address up to the second, exclusive.
    Range(u64, u64),
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

/// The bytes at `location` of the ELF file `data`, and their address.
///
/// # Errors
/// Not an x86-64 ELF file, no such function or block, or addresses outside its code.
pub fn read_location(data: &[u8], location: &Location) -> Result<(u64, Vec<u8>)> {
    let file = object::File::parse(data)
        .map_err(|e| Error::failed("cannot read the program file").because(e))?;
    if file.architecture() != object::Architecture::X86_64 {
        return Err(Error::failed("cannot take blocks from this program")
            .because(format!("it is for {:?}, not x86-64", file.architecture())));
    }
    let (start, end) = match location {
        Location::Range(start, end) => (*start, *end),
        Location::Function(name, number) => {
            let (start, size) = function(&file, name)?;
            let code = bytes(&file, start, start.saturating_add(size))?;
            let blocks = basic_blocks(&code, start);
            *blocks.get(*number).ok_or_else(|| {
                Error::usage(format!("{name} has no basic block +{number}"))
                    .because(format!("it has {}, counted from 0", blocks.len()))
            })?
        }
    };
    if end <= start || end - start > LONGEST as u64 {
        return Err(Error::usage(format!("{start:#x}..{end:#x} is no block"))
            .because(format!("a block has between 1 and {LONGEST} bytes, END exclusive")));
    }
    Ok((start, bytes(&file, start, end)?))
}

/// Bytes of a segment that is loaded as code.
fn bytes(file: &object::File<'_>, start: u64, end: u64) -> Result<Vec<u8>> {
    let size = end.saturating_sub(start);
    let code = |s: &object::Segment<'_, '_>| matches!(s.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
    let found = file.segments().filter(code).find_map(|s| s.data_range(start, size).ok().flatten());
    found.map(<[u8]>::to_vec).ok_or_else(|| {
        Error::failed(format!("no code at {start:#x}..{end:#x}"))
            .because("no segment that is loaded as code holds these addresses")
            .hint("addresses are the file's own (p_vaddr), as objdump prints them")
    })
}

/// Start and size of the function `name`.
fn function(file: &object::File<'_>, name: &str) -> Result<(u64, u64)> {
    let symbols: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
        .collect();
    let found = symbols.iter().find(|s| s.name() == Ok(name));
    found.map(|s| (s.address(), s.size())).ok_or_else(|| {
        let error = Error::failed(format!("no function `{name}` with a size in the file"));
        match nearest(name, symbols.iter().filter_map(|s| s.name().ok())) {
            Some(other) => error.hint(format!("did you mean `{other}`?")),
            None => error.hint("give FILE:START..END, as objdump prints the addresses"),
        }
    })
}

/// The basic blocks of straight code at `start`: (start, end) each.
fn basic_blocks(code: &[u8], start: u64) -> Vec<(u64, u64)> {
    let end = start + code.len() as u64;
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut leaders = BTreeSet::from([start, end]);
    for inst in decoder {
        if inst.is_invalid() {
            break;
        }
        if let Some(target) = target(&inst).filter(|t| (start..end).contains(t)) {
            leaders.insert(target);
        }
        if inst.flow_control() != FlowControl::Next {
            leaders.insert(inst.next_ip().min(end));
        }
    }
    let leaders: Vec<u64> = leaders.into_iter().collect();
    leaders.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// The target of a direct jump.
fn target(inst: &Instruction) -> Option<u64> {
    matches!(inst.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
        .then(|| inst.near_branch_target())
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
    }

    #[test]
    fn a_loop_is_cut_at_its_head_and_behind_its_branch() {
        // 0: xor eax,eax; 2: inc eax; 4: cmp eax,edi; 6: jb 2; 8: ret
        let code = [0x31, 0xc0, 0xff, 0xc0, 0x39, 0xf8, 0x72, 0xfa, 0xc3];
        assert_eq!(basic_blocks(&code, 0), [(0, 2), (2, 8), (8, 9)]);
    }

    #[test]
    fn garbage_is_an_error() {
        assert!(read_location(b"\x7fELF garbage", &Location::Range(0, 4)).is_err());
    }
}
