//! Where the blocks come from.

use super::args::BlockArgs;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use tdtool::block::{Options, Repeat};
use tdtool::code::{
    LONGEST_LISTING, Located, Location, Region, Syntax, assemble, parse_hex, read_binary,
    read_listing, read_location, read_path,
};
use tdtool::{Error, Result};

/// Most bytes of a program, and of a file of rows.
const LONGEST_FILE: usize = 2 << 30;
/// Most bytes of machine code on standard input, which may be a small program.
const LONGEST_STREAM: usize = 64 << 20;

/// The blocks that `args` ask for, each with the options to measure it with.
pub fn blocks(args: &BlockArgs, options: &Options) -> Result<Vec<(Region, Options)>> {
    if let Some(path) = &args.repeat {
        let all = Repeat::read(&text(path, LONGEST_LISTING)?)?;
        let region = |r: &Repeat| Region { name: r.name.clone(), bytes: r.bytes.clone() };
        let pairs = all.iter().map(|r| (region(r), r.over(options.clone())));
        return match &args.region {
            None => Ok(pairs.collect()),
            Some(name) => {
                let wanted = Region::choose(all.iter().map(region).collect(), name)?;
                Ok(pairs.filter(|(r, _)| *r == wanted).take(1).collect())
            }
        };
    }
    let all = regions(args)?;
    let all = match &args.region {
        Some(name) => vec![Region::choose(all, name)?],
        None => all,
    };
    Ok(all.into_iter().map(|region| (region, options.clone())).collect())
}

fn regions(args: &BlockArgs) -> Result<Vec<Region>> {
    let given = Given {
        block: args.block.as_deref(),
        asm: args.asm.as_deref(),
        asm_file: args.asm_file.as_deref(),
        att: args.att,
    };
    let region = |l: Located| Region { name: l.name, bytes: l.bytes };
    Ok(located(&given)?.into_iter().map(region).collect())
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
        let located = |r: Region| Located { start: 0, bytes: r.bytes, name: r.name };
        regions.into_iter().map(located).collect()
    };
    let one = |bytes| vec![Located { start: 0, bytes, name: None }];
    let syntax = if given.att { Syntax::Att } else { Syntax::Intel };
    if let Some(text) = given.asm {
        return assemble(text, syntax).map(one);
    }
    if let Some(path) = given.asm_file {
        return read_listing(&text(path, LONGEST_LISTING)?, syntax).map(at_zero);
    }
    let block = given.block.unwrap_or_default();
    if block == "-" {
        return read_binary(&bytes(Path::new(block), LONGEST_STREAM)?).map(at_zero);
    }
    match Location::parse(block) {
        Some((file, location)) => {
            let data = program(Path::new(file))?;
            Ok(vec![read_location(&data, &location)?])
        }
        None => match parse_hex(block) {
            Err(_) if Path::new(block).is_file() => {
                read_binary(&bytes(Path::new(block), LONGEST_FILE)?).map(at_zero)
            }
            Err(error) => Err(neither(block, &error)),
            Ok(bytes) => Ok(one(bytes)),
        },
    }
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
    read_path(&data, &locations)
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
