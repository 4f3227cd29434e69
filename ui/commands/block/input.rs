//! Where the blocks come from.

use super::args::BlockArgs;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use tdtool::block::{Options, Repeat};
use tdtool::code::{
    LONGEST_LISTING, Location, Region, Syntax, assemble, parse_hex, read_binary, read_listing,
    read_location,
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
    let one = |bytes| vec![Region { name: None, bytes }];
    let syntax = if args.att { Syntax::Att } else { Syntax::Intel };
    if let Some(text) = &args.asm {
        return assemble(text, syntax).map(one);
    }
    if let Some(path) = &args.asm_file {
        return read_listing(&text(path, LONGEST_LISTING)?, syntax);
    }
    given(args.block.as_deref().unwrap_or_default())
}

/// The blocks that the first argument names.
pub fn given(given: &str) -> Result<Vec<Region>> {
    let one = |bytes| vec![Region { name: None, bytes }];
    if given == "-" {
        return read_binary(&bytes(Path::new(given), LONGEST_STREAM)?);
    }
    match Location::parse(given) {
        Some((file, location)) => {
            let data = program(Path::new(file))?;
            let found = read_location(&data, &location)?;
            Ok(vec![Region { name: found.name, bytes: found.bytes }])
        }
        None => match parse_hex(given) {
            Err(_) if Path::new(given).is_file() => {
                read_binary(&bytes(Path::new(given), LONGEST_FILE)?)
            }
            Err(error) => Err(neither(given, &error)),
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

fn text(path: &Path, most: usize) -> Result<String> {
    String::from_utf8(bytes(path, most)?).map_err(|e| {
        Error::failed(format!("cannot read {}", path.display()))
            .because(format!("it is no UTF-8 text: {}", e.utf8_error()))
    })
}
