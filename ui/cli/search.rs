//! Where recorded programs are looked for.

use clap::Args;
use profile::files::SearchPaths;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

#[derive(Args, Clone)]
pub struct SearchArgs {
    /// Look for the recorded binaries under DIR first; repeatable
    #[arg(long, value_name = "DIR")]
    symfs: Vec<PathBuf>,
    /// A recorded program, known by its build-id or file name; repeatable
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
}

impl SearchArgs {
    /// Whether there are any.
    pub fn is_given(&self) -> bool {
        !self.symfs.is_empty() || !self.binary.is_empty()
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
            std::fs::read_dir(folder).map_err(|e| named("--symfs", folder).because(e))?;
        }
        for program in &self.binary {
            tma::files::open(program).map_err(|e| named("--binary", program).because(e))?;
        }
        let (roots, programs) = (self.symfs.clone(), self.binary.clone());
        Ok(SearchPaths { roots, programs, ..SearchPaths::default() })
    }
}
