//! Finds machine code named on the command line: bytes, assembly, a file with markers, or a place in a program
//! (FILE:FUNCTION[+N], FILE:START..END, and paths of several). `initial_values` has initial values for it.

pub mod initial_values;

use super::files::{read_bytes, read_file, read_text};
use crate::{config, message};
use engine::function_name;
use isa::code::{
    Block, MAX_LISTING_BYTES, Region, Syntax, assemble, listing_syntax, parse_hex, read_binary,
    read_listing,
};
use isa::program::{
    FunctionBlocks, Known, Located, Location, LoopName, Names, list_blocks, read_named, read_path,
    split_location,
};
use profile::files::SearchPaths;
use profile::symbols::demangle::demangle;
use report::documents::block::FunctionList;
use std::path::Path;
use tma::shell::quoted;
use tma::{Error, ErrorKind, Result};

/// The forms of a block, and what chooses regions.
pub const INPUTS: &str = "\
Blocks:
  4801d8                a block's machine code in hexadecimal
  FILE:FUNCTION[+N]     a function's first basic block, or number N from 0;
                        a function without a symbol is FILE+0xADDRESS, as printed
  FILE:FUNCTION@N       loop number N, with -- ARGS; FILE:@0xADDRESS: the one around
  FILE:0xADDRESS        the basic block at this address
  FILE:START..END       the code between two addresses, END exclusive
  FILE                  a program's regions between IACA markers
  -                     machine code, or a program with markers, from standard input

Assembly files choose regions with LLVM-MCA, OSACA or IACA markers.
PROGRAM:FUNCTION -- ARGS runs the program and takes its registers (block only).
snapshot:RECORDING takes the registers sampled at the block's first instruction.";

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
        return read_binary(&read_bytes(path, LONGEST_STREAM)?).map(at_zero);
    }
    if let Some((file, location)) = Location::parse(block) {
        return Ok(vec![block_at(file, &location, block)?]);
    }
    match (parse_hex(block), path.is_file()) {
        (Err(_), true) => read_binary(&read_file(path)?).map(at_zero),
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
    let content = read_text(path, MAX_LISTING_BYTES)?;
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

/// The block at `location` of `file`, which the user wrote as `given`.
pub fn block_at(file: &str, location: &Location, given: &str) -> Result<Located> {
    let data = load_program(Path::new(file))?;
    let known = known_functions_of(file);
    with_name(file, &known, location, |names, location| {
        Ok(with_count(read_named(&data, names, location)?, given))
    })
}

/// The functions of `file` that it does not name itself.
fn known_functions_of(file: &str) -> Vec<Known> {
    let search = SearchPaths { caches: config::by_build_id(), ..SearchPaths::default() };
    function_name::known(Path::new(file), &search)
}

/// Code that `read` finds at `location` of `file`, whose function may be named as people write it.
fn with_name<T>(
    file: &str,
    known: &[Known],
    location: &Location,
    read: impl Fn(Names<'_>, &Location) -> Result<T>,
) -> Result<T> {
    let names = Names { known, shown: &|name| function_name::shown(file, name) };
    let read = |location: &Location| {
        read(names, location).map_err(|error| with_list(error, file, location))
    };
    let first = read(location);
    let (Err(error), Some(name)) = (&first, location.function()) else { return first };
    match function_name::in_file(Path::new(file), known, name)? {
        Ok(symbol) if symbol != name => read(&location.of_function(&symbol)),
        Err(Some(other)) => {
            let better = Error::failed(error.what());
            Err(match error.cause() {
                Some(cause) => better.because(cause).hint(other),
                None => better.hint(other),
            })
        }
        _ => first,
    }
}

/// An error that says what a function has not, with how to list what it has.
fn with_list(error: Error, file: &str, location: &Location) -> Error {
    let place = match location {
        Location::Function(name, _) | Location::Loop(LoopName::Number(name, _)) => demangle(name),
        Location::At(address)
        | Location::Range(address, _)
        | Location::Loop(LoopName::At(address)) => format!("{address:#x}"),
    };
    let list = quoted(&["tdtool", "block", "--list", &format!("{file}:{place}")]);
    match error.remedy() {
        None if error.kind() == ErrorKind::Usage => error.hint(format!("`{list}` lists them")),
        _ => error,
    }
}

/// The functions of the program that `given` names without one of them.
pub fn functions_of(given: &str) -> Option<Result<FunctionList>> {
    let path = Path::new(given);
    path.is_file().then(|| function_name::list(path, &known_functions_of(given)))
}

/// The blocks of the function that `given` names.
pub fn blocks_of(given: &str) -> Result<FunctionBlocks> {
    let (file, location) = Location::parse(given).ok_or_else(|| {
        Error::usage(format!("`{given}` is not a function"))
            .hint(
                "write --list FILE:FUNCTION, or FILE:0xADDRESS for the function at that address, or FILE \
                 alone for its functions; `tdtool report -- PROGRAM` finds hot ones",
            )
    })?;
    let data = load_program(Path::new(file))?;
    let known = known_functions_of(file);
    with_name(file, &known, &location, |names, location| list_blocks(&data, names, location))
}

/// The blocks of a path, `FILE:FUNCTION+3,4,6` or `FILE:START..END,START..END`: a comma separates
/// further blocks of the same function, ranges, or FUNCTION+N of others.
pub fn blocks_of_path(given: &str) -> Result<Vec<Located>> {
    let malformed = || {
        Error::usage(format!("`{given}` is not a path of blocks"))
            .hint("write FILE:FUNCTION+3,4,6 or FILE:START..END,START..END")
    };
    let (file, places) = split_location(given).ok_or_else(malformed)?;
    let data = load_program(Path::new(file))?;
    let known = known_functions_of(file);
    let mut function = None;
    let mut locations = Vec::new();
    for place in split_at_commas(places) {
        let numbered = function.as_ref().zip(place.parse().ok());
        let location = match numbered {
            Some((name, number)) => Location::Function(String::clone(name), number),
            None => Location::parse(&format!("{file}:{place}")).ok_or_else(malformed)?.1,
        };
        let location = with_name(file, &known, &location, |names, location| {
            read_named(&data, names, location).map(|_| location.clone())
        })?;
        if let Location::Function(name, _) = &location {
            function = Some(name.clone());
        }
        locations.push(location);
    }
    let names = Names { known: &known, shown: &|name| function_name::shown(file, name) };
    let blocks = read_path(&data, names, &locations)?;
    let with_notes = |mut located: Located| {
        if let Some(of @ 2..) = located.loop_blocks {
            located.notes.push(format!(
                "only the first of the loop's {of} blocks; --path FILE:FUNCTION+3,4 names several"
            ));
        }
        with_count(located, given)
    };
    Ok(blocks.into_iter().map(with_notes).collect())
}

/// The parts between commas, but for those of parameters and template arguments.
fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut all) = (0i32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '<' | '{' => depth += 1,
            ')' | '>' | '}' => depth -= 1,
            ',' if depth <= 0 => {
                all.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&text[start..]);
    all
}

/// Refuses a loop of several blocks where only one can be measured.
pub fn one_block(located: &Located) -> Result<()> {
    let Some(of @ 2..) = located.loop_blocks else { return Ok(()) };
    Err(Error::usage("a loop of several blocks is measured with the program's values")
        .because(format!("it has {of} blocks, and which of them run depends on those"))
        .hint("give the program's arguments: `tdtool block PROGRAM:FUNCTION@N -- ARGS`, or --run if it takes none; for one block: FUNCTION+N"))
}

/// Removes a call, return or indirect jump at the end of a program's block, as reports do; a block of
/// nothing else stays as it is, and is rejected with the reason when it is measured.
pub fn without_exit(located: &mut Located) {
    let Ok(block) = Block::decode(&located.bytes) else { return };
    let Ok((rest, Some(last))) = block.without_exit() else { return };
    let end = located.start + rest.bytes.len() as u64;
    located.notes.push(format!(
        "without the final `{}`, which leaves the block: {:#x}..{end:#x}",
        last.text.split(' ').next().unwrap_or_default(),
        located.start
    ));
    located.bytes = rest.bytes;
}

/// Where `FILE:FUNCTION` means the first block of several, with a note that there are more.
fn with_count(mut located: Located, given: &str) -> Located {
    let whole = match Location::parse(given) {
        Some((_, Location::Function(name, 0))) => given.ends_with(&format!(":{name}")),
        _ => false,
    };
    if let (true, Some(of @ 2..)) = (whole, located.of) {
        let place = quoted(&[given]);
        let note = format!("the first of {of} blocks; `tdtool block --list {place}` lists them");
        located.notes.push(note);
    }
    located
}

/// The program in the file at `path`.
fn load_program(path: &Path) -> Result<Vec<u8>> {
    let data = read_file(path).map_err(|error| {
        let cause = error.cause().unwrap_or_default().to_owned();
        Error::failed(error.what())
            .because(cause)
            .hint("FILE:FUNCTION[+N] and FILE:START..END need a compiled program")
    })?;
    let start = &data[..data.len().min(4096)];
    if !start.is_empty() && std::str::from_utf8(start).is_ok_and(|t| !t.contains('\0')) {
        let name = path.display();
        return Err(Error::failed(format!("cannot read blocks from {name}"))
            .because("it is text, not a compiled program")
            .hint(format!(
                "compile it and give the program: `tdtool block ./PROGRAM:FUNCTION`; for assembly with \
                 markers: --asm-file {name}"
            )));
    }
    Ok(data)
}
