//! Where recorded programs are looked for.

use crate::config;
use clap::Args;
use profile::files::{Debuginfod, Limits, SearchPaths};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tma::files::LONGEST_PROGRAM;
use tma::{Error, Result};

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
    ///
    /// # Errors
    /// One of them does not exist, or is no folder, or no file.
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
///
/// # Errors
/// There are none, or this program cannot ask them.
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
