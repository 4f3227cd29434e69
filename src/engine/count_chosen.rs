//! The functions to count: those that are named, or all.

use crate::function_name;
use pmu::Command;
use probe::count::Wanted;
use probe::facts::{Named, functions};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// A function to count, with its name.
pub(crate) struct Chosen {
    pub name: String,
    pub aliases: Vec<String>,
    pub wanted: Wanted,
}

/// The functions with these names, or all, of these files, or of the program of a command or process.
///
/// # Errors
/// There is no such file or function.
pub(crate) fn chosen(
    (command, process): (&Command, Option<i32>),
    modules: &[PathBuf],
    names: &[String],
) -> Result<Vec<Chosen>> {
    let modules = match modules {
        [] => match process {
            Some(pid) => vec![executable(pid)?],
            None => vec![program(command)?],
        },
        given => given.to_vec(),
    };
    let mut all = Vec::new();
    for path in modules {
        let failed = |why: String| {
            Error::failed(format!("the functions of {} are not known", path.display()))
                .because(why)
                .hint("give the ELF file that has the code: --module FILE")
        };
        let path = path.canonicalize().map_err(|e| failed(e.to_string()))?;
        let found = functions(&path).map_err(failed)?;
        all.extend(found.into_iter().map(|named| Chosen::new(&path, named)));
    }
    if names.is_empty() {
        return Ok(all);
    }
    let is = |one: &Chosen, name: &str| match address(name) {
        Some(address) => one.wanted.range.contains(&address),
        None => {
            let mut names = std::iter::once(&one.name).chain(&one.aliases);
            names.any(|own| function_name::is(own, name))
        }
    };
    for name in names {
        if !all.iter().any(|one| is(one, name)) {
            let error = Error::failed(format!("there is no function `{name}` to count"));
            let names = all.iter().map(|one| one.name.as_str());
            let other = function_name::did_you_mean(names, name);
            return Err(error.hint(
                other.unwrap_or_else(|| "--module FILE names the file that has it".to_owned()),
            ));
        }
    }
    all.retain(|one| names.iter().any(|name| is(one, name)));
    Ok(all)
}

/// The address that stands for the function around it.
fn address(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()
}

impl Chosen {
    pub fn new(path: &Path, named: Named) -> Self {
        let name = named.name.unwrap_or_else(|| format!("{:#x}", named.range.start));
        let wanted = Wanted { path: path.to_owned(), range: named.range };
        Self { name, aliases: named.aliases, wanted }
    }
}

/// The program that a process executes.
fn executable(pid: i32) -> Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| {
        let failed = Error::not_possible(format!("process {pid} cannot be counted"));
        match error.kind() {
            ErrorKind::NotFound if !Path::new(&format!("/proc/{pid}")).exists() => {
                Error::failed(format!("there is no process {pid}"))
            }
            ErrorKind::NotFound => failed.because("it is a thread of the kernel, or has ended"),
            _ => failed.because(error).hint("it is another user's: run as that user, or as root"),
        }
    })
}

/// The command's own program.
pub(crate) fn program(command: &Command) -> Result<PathBuf> {
    let name = command.argv.first().cloned().unwrap_or_default();
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let all = paths.as_bytes().split(|byte| *byte == b':').map(|p| Path::new(OsStr::from_bytes(p)));
    all.map(|folder| folder.join(&name)).find(|path| path.is_file()).ok_or_else(|| {
        Error::failed(format!("cannot find the program {}", name.display()))
            .hint("give its path, as in ./program")
    })
}
