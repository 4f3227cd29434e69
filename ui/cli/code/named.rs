//! Blocks named on the command line: bytes, assembly, a place in a program, or a file with markers.

use super::program::{self, one_block, without_exit};
use super::read::{bytes, file, text};
use crate::message;
use isa::code::{
    Block, MAX_LISTING_BYTES, Region, Syntax, assemble, listing_syntax, parse_hex, read_binary,
    read_listing,
};
use isa::program::{Located, Location};
use std::path::Path;
use tma::{Error, Result};

/// Most bytes of machine code on standard input, which may be a small program.
const LONGEST_STREAM: usize = 64 << 20;

/// The arguments that name blocks.
#[derive(Default)]
pub struct Named<'a> {
    /// Hexadecimal digits, a place in a program, a file, or `-`.
    pub block: Option<&'a str>,
    /// Assembly.
    pub asm: Option<&'a str>,
    /// A file of assembly.
    pub asm_file: Option<&'a Path>,
    /// Whether the assembly is in AT&T syntax.
    pub att: bool,
}

/// The blocks, at their addresses in ELF files, at 0 otherwise.
pub fn located(named: &Named) -> Result<Vec<Located>> {
    let one = |bytes| vec![Located { bytes, ..Located::default() }];
    if let Some(text) = named.asm {
        return assemble(text, if named.att { Syntax::Att } else { Syntax::Intel }).map(one);
    }
    if let Some(path) = named.asm_file {
        return listing(path, named.att);
    }
    let block = named.block.unwrap_or_default();
    let path = Path::new(block);
    if block == "-" {
        return read_binary(&bytes(path, LONGEST_STREAM)?).map(at_zero);
    }
    if let Some((file, location)) = Location::parse(block) {
        return Ok(vec![program::block(file, &location, block)?]);
    }
    match (parse_hex(block), path.is_file()) {
        (Err(_), true) => read_binary(&file(path)?).map(at_zero),
        (Err(error), false) => Err(neither(block, &error)),
        (Ok(bytes), true) => ambiguous(block, bytes).map(|l| vec![l]),
        (Ok(bytes), false) => Ok(one(bytes)),
    }
}

/// The only block that `given`, the first argument of `tdtool block`, names, as it is measured.
pub fn only(given: &str) -> Result<Block> {
    let mut all = located(&Named { block: Some(given), ..Named::default() })?;
    match (all.pop(), all.is_empty()) {
        (Some(mut located), true) => {
            one_block(&located)?;
            if Location::parse(given).is_some() {
                without_exit(&mut located);
            }
            located.notes.iter().for_each(|note| message::note(note));
            Block::decode(&located.bytes)
        }
        _ => Err(Error::usage(format!("{given} has several blocks, and one is needed"))
            .hint("choose one with FILE:START..END")),
    }
}

/// The region that `--region` names; all of them without it.
pub fn chosen(mut all: Vec<Located>, name: Option<&str>) -> Result<Vec<Located>> {
    if let Some(name) = name {
        let region = |l: &Located| Region { name: l.name.clone(), bytes: l.bytes.clone() };
        let wanted = Region::choose(all.iter().map(region).collect(), name)?;
        all.retain(|l| region(l) == wanted);
        all.truncate(1);
    }
    Ok(all)
}

fn at_zero(regions: Vec<Region>) -> Vec<Located> {
    let located = |r: Region| Located { bytes: r.bytes, name: r.name, ..Located::default() };
    regions.into_iter().map(located).collect()
}

/// The regions of a file of assembly; its syntax is detected unless --att is given.
fn listing(path: &Path, att: bool) -> Result<Vec<Located>> {
    let content = text(path, MAX_LISTING_BYTES)?;
    let (syntax, how) = match att {
        true => (Syntax::Att, None),
        false => listing_syntax(&content),
    };
    let note = how.map(|how| format!("read as AT&T syntax: {how}"));
    let with_note = |region| Located { notes: note.iter().cloned().collect(), ..region };
    Ok(at_zero(read_listing(&content, syntax)?).into_iter().map(with_note).collect())
}

/// Digits that are also the name of a file: machine code, if they decode.
fn ambiguous(given: &str, bytes: Vec<u8>) -> Result<Located> {
    Block::decode(&bytes).map_err(|e| {
        Error::usage(format!("`{given}` is read as hexadecimal digits although a file has that name"))
            .because(e)
            .hint(format!("for the file: {given}:FUNCTION, {given}:START..END, or ./{given} for its marked regions"))
    })?;
    let note = format!("`{given}` is read as hexadecimal digits; for the file write ./{given}");
    Ok(Located { bytes, notes: vec![note], ..Located::default() })
}

/// Text that is neither digits nor the name of a file.
fn neither(given: &str, error: &Error) -> Error {
    let is_hex = |c: char| c.is_ascii_hexdigit() || " ,x\\\"'\t\n".contains(c);
    let looks_like_hex = given.chars().all(is_hex);
    let cause = error.cause().unwrap_or_default();
    if looks_like_hex || given.is_empty() {
        let bare = Error::failed(error.what()).because(cause);
        return bare.hint(error.remedy().unwrap_or_default());
    }
    Error::failed(format!("`{given}` is neither machine code nor a file"))
        .because(format!("{cause}, and there is no file of that name"))
        .hint(
            "`tdtool block 4801d8`, `tdtool block PROGRAM:FUNCTION` or `tdtool block --asm 'add rax, rbx'`",
        )
}
