//! Where the blocks come from.

use super::args::BlockArgs;
use crate::commands::seeds::{self, Place};
use bench::{Options, Repeat};
use isa::code::{
    Block, FunctionBlocks, LONGEST_LISTING, Located, Location, Region, Syntax, assemble,
    list_blocks, listing_syntax, parse_hex, read_binary, read_listing, read_location, read_path,
};
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use tma::{Error, Result};

/// Most bytes of a program, and of a file of rows.
const LONGEST_FILE: usize = 2 << 30;
/// Most bytes of machine code on standard input, which may be a small program.
const LONGEST_STREAM: usize = 64 << 20;

/// A block that is asked for.
pub struct Asked {
    pub region: Region,
    /// How to measure it.
    pub options: Options,
    /// What must be known about it.
    pub notes: Vec<String>,
}

/// The blocks that `args` ask for, each with the options to measure it with.
pub fn blocks(args: &BlockArgs, options: &Options) -> Result<Vec<Asked>> {
    if let Some(path) = &args.repeat {
        let all = Repeat::read(&text(path, LONGEST_LISTING)?)?;
        let region = |r: &Repeat| Region { name: r.name.clone(), bytes: r.bytes.clone() };
        let pairs = all.iter().map(|r| Asked {
            region: region(r),
            options: r.over(options.clone()),
            notes: Vec::new(),
        });
        return match &args.region {
            None => Ok(pairs.collect()),
            Some(name) => {
                let wanted = Region::choose(all.iter().map(region).collect(), name)?;
                Ok(pairs.filter(|asked| asked.region == wanted).take(1).collect())
            }
        };
    }
    let given = Given {
        block: args.block.as_deref(),
        asm: args.asm.as_deref(),
        asm_file: args.asm_file.as_deref(),
        att: args.att,
    };
    let all = chosen(located(&given)?, args.region.as_deref())?;
    all.into_iter().map(|located| asked(located, args, options)).collect()
}

/// Those of `all` that `--region` names; all of them without it.
pub fn chosen(mut all: Vec<Located>, name: Option<&str>) -> Result<Vec<Located>> {
    if let Some(name) = name {
        let region = |l: &Located| Region { name: l.name.clone(), bytes: l.bytes.clone() };
        let wanted = Region::choose(all.iter().map(region).collect(), name)?;
        all.retain(|l| region(l) == wanted);
        all.truncate(1);
    }
    Ok(all)
}

/// How a located block is measured.
fn asked(mut located: Located, args: &BlockArgs, options: &Options) -> Result<Asked> {
    let file = args.block.as_deref().and_then(Location::parse).map(|(file, _)| Path::new(file));
    let end = located.start.saturating_add(located.bytes.len() as u64);
    let place = Place { file, range: located.start..end };
    let (mut init, from) = seeds::of_block(args.registers.as_deref(), &place)?;
    if file.is_some() {
        stay(&mut located);
    }
    // What is said by hand comes last: it counts.
    init.extend(options.init.iter().copied());
    let options = Options { init, ..options.clone() };
    let notes = located.notes.into_iter().chain(from).collect();
    let region = Region { name: located.name, bytes: located.bytes };
    Ok(Asked { region, options, notes })
}

/// Leaves out a call, return or indirect jump at the end of a program's block, as the blocks of a
/// report are measured without it; a block of nothing else stays, and is refused with the reason.
pub fn stay(located: &mut Located) {
    let Ok(block) = Block::decode(&located.bytes) else { return };
    let Ok((rest, Some(last))) = block.staying() else { return };
    let end = located.start + rest.bytes.len() as u64;
    located.notes.push(format!(
        "without `{}` at its end, which leaves the block: {:#x}..{end:#x} is measured",
        last.text, located.start
    ));
    located.bytes = rest.bytes;
}

/// What names blocks on the command line.
#[derive(Default)]
pub struct Given<'a> {
    /// Digits, a place in a file, a file, or `-`.
    pub block: Option<&'a str>,
    /// Assembly.
    pub asm: Option<&'a str>,
    /// A file of it.
    pub asm_file: Option<&'a Path>,
    /// Whether that is in AT&T syntax.
    pub att: bool,
}

/// The blocks that are named, at their addresses in ELF files, at 0 otherwise.
pub fn located(given: &Given) -> Result<Vec<Located>> {
    let at_zero = |regions: Vec<Region>| {
        let located = |r: Region| Located { bytes: r.bytes, name: r.name, ..Located::default() };
        regions.into_iter().map(located).collect()
    };
    let one = |bytes| vec![Located { bytes, ..Located::default() }];
    if let Some(text) = given.asm {
        return assemble(text, if given.att { Syntax::Att } else { Syntax::Intel }).map(one);
    }
    if let Some(path) = given.asm_file {
        return listing(path, given.att);
    }
    let block = given.block.unwrap_or_default();
    if block == "-" {
        return read_binary(&bytes(Path::new(block), LONGEST_STREAM)?).map(at_zero);
    }
    match Location::parse(block) {
        Some((file, location)) => {
            let data = program(Path::new(file))?;
            Ok(vec![numbered(read_location(&data, &location)?, block)])
        }
        None => match parse_hex(block) {
            Err(_) if Path::new(block).is_file() => {
                read_binary(&bytes(Path::new(block), LONGEST_FILE)?).map(at_zero)
            }
            Err(error) => Err(neither(block, &error)),
            Ok(bytes) if Path::new(block).is_file() => ambiguous(block, bytes).map(|l| vec![l]),
            Ok(bytes) => Ok(one(bytes)),
        },
    }
}

/// A file of assembly, in the syntax that it is in.
fn listing(path: &Path, att: bool) -> Result<Vec<Located>> {
    let content = text(path, LONGEST_LISTING)?;
    let (syntax, how) = match att {
        true => (Syntax::Att, None),
        false => listing_syntax(&content),
    };
    let note = how.map(|how| format!("read as AT&T syntax: {how}"));
    let located = |r: Region| Located {
        bytes: r.bytes,
        name: r.name,
        notes: note.iter().cloned().collect(),
        ..Located::default()
    };
    Ok(read_listing(&content, syntax)?.into_iter().map(located).collect())
}

/// Where a function has more blocks than the first, which `FILE:FUNCTION` names, that is said.
fn numbered(mut located: Located, given: &str) -> Located {
    let whole = match Location::parse(given) {
        Some((_, Location::Function(name, 0))) => given.ends_with(&format!(":{name}")),
        _ => false,
    };
    if let (true, Some(of @ 2..)) = (whole, located.of) {
        let note = format!("the first of {of} blocks: `tdtool block --list {given}` lists them");
        located.notes.push(note);
    }
    located
}

/// The blocks of the function that `given` names.
pub fn list(given: &str) -> Result<FunctionBlocks> {
    let (file, location) = Location::parse(given).ok_or_else(|| {
        Error::usage(format!("`{given}` names no function"))
            .hint("write FILE:FUNCTION, or FILE:0xADDRESS for the function around it")
    })?;
    list_blocks(&program(Path::new(file))?, &location)
}

/// Digits that are the name of a file, too: they are taken as digits as long as they are code.
fn ambiguous(given: &str, bytes: Vec<u8>) -> Result<Located> {
    Block::decode(&bytes).map_err(|e| {
        Error::usage(format!("`{given}` is read as hexadecimal digits, and there is a file of that name"))
            .because(e)
            .hint(format!("of the file: {given}:FUNCTION, {given}:START..END, or ./{given} for what IACA's markers enclose"))
    })?;
    let note =
        format!("`{given}` is read as hexadecimal digits; the file of that name is ./{given}");
    Ok(Located { bytes, notes: vec![note], ..Located::default() })
}

/// The program that a block is taken from.
fn program(path: &Path) -> Result<Vec<u8>> {
    let data = match bytes(path, LONGEST_FILE) {
        Ok(data) => data,
        Err(error) => {
            let why = error.cause().unwrap_or_default().to_owned();
            return Err(Error::failed(error.what()).because(why).hint(
                "FILE:FUNCTION[+N] and FILE:START..END take the block out of a compiled program",
            ));
        }
    };
    let start = &data[..data.len().min(4096)];
    if !start.is_empty() && std::str::from_utf8(start).is_ok_and(|t| !t.contains('\0')) {
        let name = path.display();
        return Err(Error::failed(format!("cannot take blocks from {name}"))
            .because("it is text, not a compiled program")
            .hint(format!(
                "compile it and name the program: tdtool block ./PROGRAM:FUNCTION; of assembly with \
                 markers: --asm-file {name}"
            )));
    }
    Ok(data)
}

/// Words that are neither digits nor the name of a file.
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
            "tdtool block 4801d8, PROGRAM:FUNCTION, PROGRAM:START..END, or --asm \"add rax, rbx\"",
        )
}

/// The blocks of a path, `FILE:FUNCTION+3,4,6` or `FILE:START..END,START..END`: behind a comma
/// stand further blocks of the same function, or ranges, or FUNCTION+N of others.
pub fn path(given: &str) -> Result<Vec<Located>> {
    let nothing = || {
        Error::usage(format!("`{given}` is no path of blocks"))
            .hint("write FILE:FUNCTION+3,4,6 or FILE:START..END,START..END")
    };
    let (file, places) = given.rsplit_once(':').ok_or_else(nothing)?;
    let data = program(Path::new(file))?;
    let mut function = None;
    let mut locations = Vec::new();
    for place in places.split(',') {
        let numbered = function.as_ref().zip(place.parse().ok());
        let location = match numbered {
            Some((name, number)) => Location::Function(String::clone(name), number),
            None => Location::parse(&format!("{file}:{place}")).ok_or_else(nothing)?.1,
        };
        if let Location::Function(name, _) = &location {
            function = Some(name.clone());
        }
        locations.push(location);
    }
    let blocks = read_path(&data, &locations)?;
    Ok(blocks.into_iter().map(|located| numbered(located, given)).collect())
}

/// All of a file, or of standard input where it is `-`, at most `most` bytes.
pub fn bytes(path: &Path, most: usize) -> Result<Vec<u8>> {
    let stream = path == Path::new("-");
    let name = if stream { "standard input".into() } else { path.display().to_string() };
    let failed = |e: std::io::Error| Error::failed(format!("cannot read {name}")).because(e);
    let mut data = Vec::new();
    let limit = most as u64 + 1;
    if stream {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            return Err(Error::usage("`-` reads standard input, which is the terminal")
                .hint("pipe the input in, or redirect it from a file"));
        }
        stdin.lock().take(limit).read_to_end(&mut data).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(limit).read_to_end(&mut data).map_err(failed)?;
    }
    if data.len() > most {
        return Err(Error::failed(format!("{name} is too long"))
            .because(format!("at most {most} bytes are taken")));
    }
    Ok(data)
}

/// All of a file of rows.
pub fn file(path: &Path) -> Result<Vec<u8>> {
    bytes(path, LONGEST_FILE)
}

/// All of a text file.
pub fn text(path: &Path, most: usize) -> Result<String> {
    String::from_utf8(bytes(path, most)?).map_err(|e| {
        Error::failed(format!("cannot read {}", path.display()))
            .because(format!("it is no UTF-8 text: {}", e.utf8_error()))
    })
}
