//! Reading and decoding machine code outside of programs, and finding instructions that are unsafe to run there.
//!
//! | file | concern |
//! |---|---|
//! | `assemble`, `pasted` | Intel and AT&T syntax, listings too, through the system's assembler |
//! | `listing`, `directives` | assembly files: their marked regions and the directives accepted in them |
//! | `markers`, `region` | region markers; extracting a region from an object file; hexadecimal text |
//! | `inst`, `decode` | one instruction; bytes → [`Block`] |
//! | `refusal` | instructions that are refused, with the reason |
//!
//! The only program that this module runs is the assembler.

mod assemble;
mod decode;
mod directives;
mod inst;
mod listing;
mod markers;
mod pasted;
mod refusal;
mod region;

use crate::names::name;
use listing::marked_code;
use object::Object as _;
use tma::{Error, Result};

pub use assemble::{Syntax, assemble};
pub use decode::{Block, NothingLeft, loads_at};
pub use directives::check as check_directives;
pub(crate) use inst::InstBuilder;
pub use inst::{Inst, divides, is_hint, text, text_in_block};
pub use listing::{MAX_LISTING_BYTES, listing_syntax, read_listing};
pub use markers::{Marked, marked};
pub use refusal::Refusal;
pub(crate) use region::{MAX_BLOCK_BYTES, Placeholders, cut, cut_among};
pub use region::{Region, parse_hex};

/// The blocks of `data`: the code between IACA markers, or all of it if it has none and is not an
/// ELF file. A file of hexadecimal digits is read as the bytes that they denote.
///
/// # Errors
/// The input is empty or too long, markers do not pair, or an ELF file has no markers.
pub fn read_binary(data: &[u8]) -> Result<Vec<Region>> {
    if data.starts_with(b"\x7fELF") {
        return program(data);
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(bytes) = parse_hex(text)
    {
        return Ok(vec![Region { name: None, bytes }]);
    }
    let marked = markers::iaca(data)?;
    if marked.is_empty() {
        return Ok(vec![Region { name: None, bytes: one(data)?.to_vec() }]);
    }
    let cut = |range| Ok(Region { name: None, bytes: one(&data[range])?.to_vec() });
    marked.into_iter().map(cut).collect()
}

/// Files that gzip made begin with this: its name, and deflate as the method (RFC 1952).
const GZIP: &[u8] = b"\x1f\x8b\x08";

fn one(bytes: &[u8]) -> Result<&[u8]> {
    match bytes.len() {
        0 => Err(Error::failed("the block is empty")
            .hint("give its machine code, raw or as hexadecimal digits")),
        _ if bytes.starts_with(GZIP) => Err(Error::failed("cannot read blocks from this file")
            .because("it is compressed (gzip)")
            .hint("unpack it first: `gunzip -k FILE`")),
        n if n > MAX_BLOCK_BYTES => Err(Error::failed("the block is too long")
            .because(format!("it has {n} bytes; the limit is {MAX_BLOCK_BYTES}"))
            .hint("mark a region of it, or give FILE:START..END of a program")),
        _ => Ok(bytes),
    }
}

fn program(data: &[u8]) -> Result<Vec<Region>> {
    let file = object::File::parse(data)
        .map_err(|e| Error::failed("cannot read the program file").because(e))?;
    if file.architecture() != object::Architecture::X86_64 {
        let why = match file.architecture() {
            object::Architecture::I386 => {
                "it is a 32-bit program, and only code of x86-64 is analysed".to_owned()
            }
            other => format!("its architecture is {}, not x86-64", name(other)),
        };
        return Err(Error::failed("cannot read blocks from this program")
            .because(why)
            .hint("give an x86-64 program, or build this one for x86-64: gcc -m64"));
    }
    let found = marked_code(&file)?;
    if found.is_empty() {
        return Err(Error::usage("a program needs a function, or IACA markers around a region").hint(
            "give FILE:FUNCTION, FILE:FUNCTION+N or FILE:START..END; `tdtool block --list FILE:FUNCTION` \
             lists blocks and loops, `tdtool report -- PROGRAM` finds hot ones",
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_bytes_and_hexadecimal_digits_give_the_same_block() {
        let code = [0x48, 0x01, 0xd8];
        assert_eq!(read_binary(&code).unwrap()[0].bytes, code);
        assert_eq!(read_binary(b"48 01 d8\n").unwrap()[0].bytes, code);
    }

    #[test]
    fn empty_oversized_and_malformed_inputs_are_errors() {
        assert!(read_binary(b"").is_err());
        assert!(read_binary(&[0x90; MAX_BLOCK_BYTES + 1]).is_err());
        assert!(read_binary(b"\x7fELF").is_err());
    }
}
