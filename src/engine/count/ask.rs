//! A question for counts: the command or process, and the file of its program.

use crate::hot::hottest::Hottest;
use crate::steps::{Callback, Places, Step};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use pmu::Command;
use pmu::perf::cannot_start;
use probe::count::Wanted;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tma::{Core, Error, Result};

/// Code to count, and how.
#[derive(Debug, Clone, Default)]
pub struct CountAsk {
    /// The command; not used with a process.
    pub command: Command,
    /// A live process instead, and for how long each time.
    pub process: Option<(i32, Duration)>,
    /// Whether the command is counted in windows, a fifth of the time, not all of it.
    pub windows: bool,
    /// Files with the functions; the command's own program if none.
    pub modules: Vec<PathBuf>,
    /// Names of functions, or addresses in them (`0x4327`); all if none.
    pub functions: Vec<String>,
    /// Instead, the functions with most of the samples of an earlier run.
    pub hot: Option<Hottest>,
    /// Whether the command is also run without probes, for the cost.
    pub plain: bool,
    /// Whether access patterns and latencies of the hot loads are recorded, in two further runs or windows.
    pub loads: bool,
    /// Only loads of this code, and no allocations.
    pub loads_of: Option<Places>,
    /// Whether registers at the entries of functions and loops are recorded, and at those of the blocks with
    /// these addresses, in a further run or window.
    pub values: Option<Vec<u64>>,
    /// Whether mispredictions are modelled, on this core, from a further run or window.
    pub branches: Option<Arc<Core>>,
    /// Only those of functions that begin in this code.
    pub branches_of: Option<Places>,
    /// Branches that go one way in a smaller share of their executions are not recorded; if it is above 0, trips are not
    /// either.
    pub rarest: f64,
    /// Only blocks that begin at these addresses of a file.
    pub only: Option<Arc<BTreeMap<PathBuf, BTreeSet<u64>>>>,
    /// Called before each run or window.
    pub watch: Option<Callback<Step>>,
}

impl CountAsk {
    /// Whether mispredictions are modelled in this function.
    pub(super) fn has_branches_of(&self, of: &Wanted) -> bool {
        self.branches_of.as_ref().is_none_or(|all| {
            let mut own = all.get(&of.path).into_iter().flatten();
            own.any(|range| range.contains(&of.range.start))
        })
    }
}

/// Side effects of tracing a program.
pub(crate) fn notes(command: &Command) -> Vec<String> {
    let mut all = Vec::new();
    if is_setuid(command) {
        all.push("the program is setuid or setgid: traced, it has the privileges of its caller");
    }
    if traces(command) {
        all.push(
            "the program names ptrace(2), which fails while it is counted: it may behave differently",
        );
    }
    all.into_iter().map(str::to_owned).collect()
}

/// Whether it would have other privileges than its caller (execve(2)).
fn is_setuid(command: &Command) -> bool {
    let metadata = program(command).ok().and_then(|path| path.metadata().ok());
    metadata.is_some_and(|of| of.mode() & (libc::S_ISUID | libc::S_ISGID) != 0)
}

/// The program that a process executes: its path, or where that leads to another file from here (another mount
/// namespace, a replaced program), one through the process.
///
/// # Errors
/// There is no such process, or it is another user's.
pub(crate) fn executable(pid: i32) -> Result<PathBuf> {
    let own = PathBuf::from(format!("/proc/{pid}/exe"));
    let path = link(pid)?;
    let file = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let inside = path.strip_prefix("/").unwrap_or(&path);
    let inside = Path::new(&format!("/proc/{pid}/root")).join(inside);
    let all = [path, inside];
    let is_it = |path: &&PathBuf| file(path).is_some() && file(path) == file(&own);
    Ok(all.iter().find(is_it).cloned().unwrap_or(own))
}

/// The path of a process's program in its own mount namespace.
fn link(pid: i32) -> Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| {
        let failed = Error::not_possible(format!("process {pid} cannot be counted"));
        match error.kind() {
            ErrorKind::NotFound if !Path::new(&format!("/proc/{pid}")).exists() => {
                Error::failed(format!("there is no process {pid}"))
                    .hint("`pgrep -f NAME` lists processes")
            }
            ErrorKind::NotFound => failed.because("it is a thread of the kernel, or has ended"),
            _ => failed.because(error).hint("it is another user's: run as that user, or as root"),
        }
    })
}

/// The command's own program, if it can be executed.
///
/// # Errors
/// It cannot, as execvp(3) reports it.
pub(crate) fn program(command: &Command) -> Result<PathBuf> {
    let name = command.argv.first().cloned().unwrap_or_default();
    let name = command.file.clone().map_or(name, OsString::from);
    let check = |path: &Path| match path.is_dir() {
        true => Err(Errno::EACCES),
        false => access(path, AccessFlags::X_OK),
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(&name);
        check(&path).map_err(|errno| cannot_start(&name, errno))?;
        return Ok(path);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let all = paths.as_bytes().split(|byte| *byte == b':').map(|p| Path::new(OsStr::from_bytes(p)));
    let mut all = all.map(|folder| folder.join(&name));
    all.find(|path| check(path).is_ok()).ok_or_else(|| cannot_start(&name, Errno::ENOENT))
}

/// Whether it may trace others or ask to be traced: it names the function, in a table of symbols' names.
fn traces(command: &Command) -> bool {
    let content = program(command).ok().and_then(|path| std::fs::read(path).ok());
    content.is_some_and(|all| all.split(|byte| *byte == 0).any(|name| name == b"ptrace"))
}
