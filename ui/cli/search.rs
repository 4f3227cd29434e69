//! Where recorded programs are looked for.

use clap::Args;
use profile::files::SearchPaths;
use std::path::PathBuf;

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
    pub fn paths(&self) -> SearchPaths {
        SearchPaths {
            roots: self.symfs.clone(),
            programs: self.binary.clone(),
            ..SearchPaths::default()
        }
    }
}
