//! Opens recordings that commands read: reports missing ones, handles signals while they are read, and finds where
//! recorded programs are looked for.

use crate::{config, message};
use clap::Args;
use pmu::perf::Signals;
use profile::files::{Debuginfod, Limits, SearchPaths};
use report::files::between_writes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tma::error::near;
use tma::files::{LONGEST_PROGRAM, name};
use tma::shell::quoted;
use tma::{Error, Result};

/// Refuses files that do not exist. `make` is how such a recording is made.
pub fn present(files: &[PathBuf], make: &str) -> Result<()> {
    let is_absent = |path: &&PathBuf| path.as_os_str() != "-" && is_absent(path);
    let Some(path) = files.iter().find(is_absent) else { return Ok(()) };
    let remedy = match near(path) {
        Some(near) => format!("did you mean {}? {make}", quoted(&[near])),
        None => make.to_owned(),
    };
    let error = Error::failed(format!("cannot read {}", name(path)));
    Err(error.because("there is no such file").hint(remedy))
}

/// Whether nothing has this name, not even what may not be looked at.
fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

/// Does `work`, which reads `files`. After Ctrl-C, SIGTERM or SIGHUP the process ends with 128 + the signal, and leaves
/// no half-written file.
pub fn reading<T>(files: &[PathBuf], work: impl FnOnce() -> Result<T>) -> Result<T> {
    let signals = Signals::catch()?;
    let names: Vec<String> = files.iter().map(|path| name(path)).collect();
    let stop = || {
        let signal = signals.next().map_or(0, |(signal, _)| signal);
        let _complete = between_writes();
        message::plain(if crate::terminal::shows_progress() { "\r\x1b[K" } else { "" });
        let cause = format!("signal {signal} came while {} was read", names.join(", "));
        message::print("error", "interrupted: there is no report", Some(&cause), None);
        std::process::exit(128 + signal)
    };
    signals.during(stop, work)
}

#[derive(Args, Clone)]
pub struct SearchArgs {
    /// Look for the recorded binaries under DIR first; repeatable
    #[arg(long, value_name = "DIR")]
    symfs: Vec<PathBuf>,
    /// A recorded program, known by its build-id or file name; repeatable
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Fetch missing binaries and debug files from the servers in $DEBUGINFOD_URLS
    #[arg(long)]
    debuginfod: bool,
}

impl SearchArgs {
    /// Whether there are any.
    pub fn is_given(&self) -> bool {
        !self.symfs.is_empty() || !self.binary.is_empty() || self.debuginfod
    }

    /// The places to look in.
    pub fn paths(&self) -> Result<SearchPaths> {
        let named = |option: &str, path: &Path| {
            Error::failed(format!("nothing can be read from `{option} {}`", path.display()))
        };
        for folder in &self.symfs {
            std::fs::read_dir(folder).map_err(|e| {
                named("--symfs", folder)
                    .because(e)
                    .hint("--symfs DIR names a folder that has the programs at their paths")
            })?;
        }
        for program in &self.binary {
            tma::files::open(program).map_err(|e| {
                named("--binary", program).because(e).hint("--binary FILE names a recorded program")
            })?;
        }
        let servers = self.debuginfod.then(servers).transpose()?.map(Arc::new);
        let (roots, programs) = (self.symfs.clone(), self.binary.clone());
        let caches = config::by_build_id();
        Ok(SearchPaths { roots, programs, caches, servers, ..SearchPaths::default() })
    }
}

/// The servers of the environment, with its limits (debuginfod-client-config(7)).
fn servers() -> Result<Debuginfod> {
    let cannot = || Error::failed("no server can be asked for `--debuginfod`");
    if !Debuginfod::BUILT_IN {
        return Err(cannot()
            .because("this tdtool was built without the feature `debuginfod`")
            .hint("`debuginfod-find executable BUILD_ID` fetches a file to where it is found"));
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let urls = variable("DEBUGINFOD_URLS").ok_or_else(|| {
        cannot().because("DEBUGINFOD_URLS is not set").hint("set it to the URL of a server")
    })?;
    let cache = config::debuginfod_cache().ok_or_else(|| {
        cannot().because("there is no folder for files").hint("set DEBUGINFOD_CACHE_PATH")
    })?;
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok().filter(|n| *n > 0);
    // The client library's time; the size of the largest file that is read.
    let seconds = number("DEBUGINFOD_TIMEOUT").unwrap_or(90).min(86_400);
    let bytes = number("DEBUGINFOD_MAXSIZE").unwrap_or(u64::MAX).min(LONGEST_PROGRAM);
    Ok(Debuginfod::new(&urls, cache, Limits { time: Duration::from_secs(seconds), bytes }))
}
