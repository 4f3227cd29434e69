//! llvm-bolt: where it is, its options for profiles of exact counts, and a copy of a program that it optimises.

use pmu::perf::Signals;
use probe::facts::Module;
use report::documents::pgo::Pgo;
use report::render::pgo;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tma::{Error, Result};

/// Options for such a profile.
const OPTIONS: [&str; 4] =
    ["-pa", "-reorder-blocks=ext-tsp", "-split-functions", "-split-all-cold"];
/// Further ones if functions can be moved.
const MOVED: [&str; 2] = ["-reorder-functions=cdsort", "-icf=1"];

/// The name of a tool of LLVM as it is in `PATH`: with the highest version if it has one.
pub fn installed(name: &str) -> Option<String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    if folders.iter().any(|folder| folder.join(name).is_file()) {
        return Some(name.to_owned());
    }
    let versions = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let version = |file: std::fs::DirEntry| {
        let file = file.file_name();
        file.to_str()?.strip_prefix(name)?.strip_prefix('-')?.parse::<u32>().ok()
    };
    Some(format!("{name}-{}", versions.filter_map(version).max()?))
}

/// The command that optimises the program of a document by its profile in a file.
pub fn command(tool: &str, document: &Pgo, profile: &OsStr, made: OsString) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![tool.into(), (&document.module).into()];
    words.extend(["-o".into(), made, "-p".into(), profile.into()]);
    words.extend(OPTIONS.iter().map(OsString::from));
    if document.has_relocations {
        words.extend(MOVED.iter().map(OsString::from));
    }
    words
}

/// Refuses a file of which no optimised copy can be run; `is_own`: it is the command's own program.
///
/// # Errors
/// It is a script, another program, or has no relocations.
pub(super) fn suitable(file: &Path, is_own: bool) -> Result<()> {
    let shown = file.display();
    let module = Module::read(file).map_err(|why| {
        Error::failed(format!("{shown} cannot be optimised"))
            .because(why)
            .hint("make the program itself the command; --module names a library of it")
    })?;
    if module.is_program && !is_own {
        return Err(Error::failed(format!("the command does not start {shown} itself"))
            .because("so that a copy cannot run in its place")
            .hint("make it the command; --train may be a script that starts it"));
    }
    match module.has_relocations {
        true => Ok(()),
        false => Err(Error::failed(format!("{shown} has no relocations of its code"))
            .because("without them llvm-bolt cannot move functions")
            .hint("link it with `-Wl,-q`; with cargo: `RUSTFLAGS=-Clink-arg=-Wl,-q cargo build --release`")),
    }
}

/// Writes an optimised copy, under its own name, to a folder; `None` if a signal comes.
///
/// # Errors
/// The tool fails or makes nothing.
pub(super) fn optimised(
    tool: &str,
    document: &Pgo,
    folder: &Path,
    signals: &Signals,
) -> Result<Option<PathBuf>> {
    let failed = |why: String| {
        Error::failed(format!("{tool} cannot optimise {}", document.module)).because(why)
    };
    let profile = folder.join("profile");
    std::fs::write(&profile, pgo::bolt(document)).map_err(|e| failed(e.to_string()))?;
    let name = Path::new(&document.module).file_name().unwrap_or(OsStr::new("copy"));
    let place = folder.join("copy");
    std::fs::create_dir(&place).map_err(|e| failed(e.to_string()))?;
    let made = place.join(name);
    let words = command(tool, document, profile.as_os_str(), made.clone().into());
    let mut process = std::process::Command::new(&words[0]);
    process.args(&words[1..]).stdin(Stdio::null());
    let Some(ran) = signals.unless_one_comes(move || process.output()) else { return Ok(None) };
    let ran = ran.map_err(|e| failed(e.to_string()))?;
    let why = match (ran.status.success(), made.is_file()) {
        (true, true) => return Ok(Some(made)),
        (true, false) => "it ended without an error, but wrote no program".to_owned(),
        (false, _) => last_line(&ran),
    };
    Err(failed(why).hint(
        "try another version, or other options: `tdtool pgo -o FILE -- CMD` prints the command",
    ))
}

/// What a program said last, or how it ended.
fn last_line(ran: &Output) -> String {
    let said = [&ran.stderr, &ran.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let last = said.iter().find_map(|text| text.lines().rev().find(|line| !line.trim().is_empty()));
    last.map_or_else(|| ran.status.to_string(), |line| line.trim().to_owned())
}
