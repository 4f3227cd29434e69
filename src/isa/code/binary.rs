//! Bytes as they come: machine code, a program, or hexadecimal text in disguise.

use super::hex::{LONGEST, parse_hex};
use super::listing::marked_code;
use super::markers;
use super::region::Region;
use object::Object as _;
use tma::{Error, Result};

/// The blocks of `data`: what IACA's markers enclose; without markers all of it, if it is no
/// program. Text of hexadecimal digits is what it says: as code it would make no sense.
///
/// # Errors
/// Nothing, too much, markers that do not pair, or a program without markers.
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

fn one(bytes: &[u8]) -> Result<&[u8]> {
    match bytes.len() {
        0 => Err(Error::failed("the block is empty")
            .hint("give its machine code, raw or as hexadecimal digits")),
        n if n > LONGEST => Err(Error::failed("the block is too long")
            .because(format!("{n} bytes; at most {LONGEST} are taken"))),
        _ => Ok(bytes),
    }
}

fn program(data: &[u8]) -> Result<Vec<Region>> {
    let file = object::File::parse(data)
        .map_err(|e| Error::failed("cannot read the program file").because(e))?;
    if file.architecture() != object::Architecture::X86_64 {
        return Err(Error::failed("cannot take blocks from this program")
            .because(format!("it is for {:?}, not x86-64", file.architecture())));
    }
    let found = marked_code(&file)?;
    if found.is_empty() {
        return Err(Error::usage("the program has no IACA markers")
            .hint("give FILE:FUNCTION, FILE:FUNCTION+N or FILE:START..END"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_code_and_its_digits_are_the_same_block() {
        let code = [0x48, 0x01, 0xd8];
        assert_eq!(read_binary(&code).unwrap()[0].bytes, code);
        assert_eq!(read_binary(b"48 01 d8\n").unwrap()[0].bytes, code);
    }

    #[test]
    fn nothing_too_much_and_broken_programs_are_errors() {
        assert!(read_binary(b"").is_err());
        assert!(read_binary(&[0x90; LONGEST + 1]).is_err());
        assert!(read_binary(b"\x7fELF").is_err());
    }
}
