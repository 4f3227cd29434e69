//! Blocks by their place in a program: FILE:FUNCTION[+N], FILE:START..END, and paths of several.

use super::read;
use crate::cli::quoted::quoted;
use crate::config;
use engine::function_name;
use isa::code::Block;
use isa::program::{
    FunctionBlocks, Known, Located, Location, LoopName, Names, list_blocks, read_named, read_path,
    split_location,
};
use profile::files::SearchPaths;
use profile::symbols::demangle::demangle;
use report::documents::block::FunctionList;
use std::path::Path;
use tma::{Error, ErrorKind, Result};

/// The block at `location` of `file`, which the user wrote as `given`.
pub fn block(file: &str, location: &Location, given: &str) -> Result<Located> {
    let data = load(Path::new(file))?;
    let known = known(file);
    named(file, &known, location, |names, location| {
        Ok(with_count(read_named(&data, names, location)?, given))
    })
}

/// The functions of `file` that it does not name itself.
fn known(file: &str) -> Vec<Known> {
    let search = SearchPaths { caches: config::by_build_id(), ..SearchPaths::default() };
    function_name::known(Path::new(file), &search)
}

/// Code that `read` finds at `location` of `file`, whose function may be named as people write it.
fn named<T>(
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
pub fn functions(given: &str) -> Option<Result<FunctionList>> {
    let path = Path::new(given);
    path.is_file().then(|| function_name::list(path, &known(given)))
}

/// The blocks of the function that `given` names.
pub fn list(given: &str) -> Result<FunctionBlocks> {
    let (file, location) = Location::parse(given).ok_or_else(|| {
        Error::usage(format!("`{given}` is not a function"))
            .hint(
                "write --list FILE:FUNCTION, or FILE:0xADDRESS for the function at that address, or FILE \
                 alone for its functions; `tdtool report -- PROGRAM` finds hot ones",
            )
    })?;
    let data = load(Path::new(file))?;
    let known = known(file);
    named(file, &known, &location, |names, location| list_blocks(&data, names, location))
}

/// The blocks of a path, `FILE:FUNCTION+3,4,6` or `FILE:START..END,START..END`: a comma separates
/// further blocks of the same function, ranges, or FUNCTION+N of others.
pub fn path(given: &str) -> Result<Vec<Located>> {
    let malformed = || {
        Error::usage(format!("`{given}` is not a path of blocks"))
            .hint("write FILE:FUNCTION+3,4,6 or FILE:START..END,START..END")
    };
    let (file, places) = split_location(given).ok_or_else(malformed)?;
    let data = load(Path::new(file))?;
    let known = known(file);
    let mut function = None;
    let mut locations = Vec::new();
    for place in split_at_commas(places) {
        let numbered = function.as_ref().zip(place.parse().ok());
        let location = match numbered {
            Some((name, number)) => Location::Function(String::clone(name), number),
            None => Location::parse(&format!("{file}:{place}")).ok_or_else(malformed)?.1,
        };
        let location = named(file, &known, &location, |names, location| {
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
///
/// # Errors
/// It is such a loop.
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
        let place = tma::shell::quoted(&[given]);
        let note = format!("the first of {of} blocks; `tdtool block --list {place}` lists them");
        located.notes.push(note);
    }
    located
}

/// The program in the file at `path`.
fn load(path: &Path) -> Result<Vec<u8>> {
    let data = read::file(path).map_err(|error| {
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
