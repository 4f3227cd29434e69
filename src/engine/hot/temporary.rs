//! A file for samples that are read once.

use profile::kept::unnamed;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// A file without a name: it is gone when this is dropped, and however this process ends.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    _file: File,
}

impl Temporary {
    /// Where this process can open it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of writing to it, as one of its folder: nobody knows its path.
    pub fn explained(&self, error: Error) -> Error {
        if !error.what().contains(&*self.path.to_string_lossy()) {
            return error;
        }
        let folder = std::env::temp_dir();
        let what = format!("cannot keep the samples in {}", folder.display());
        Error::failed(what).because(error.cause().unwrap_or("it cannot be written")).hint(REMEDY)
    }

    /// A new one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self> {
        let folder = std::env::temp_dir();
        let file = unnamed(&folder).map_err(|e| {
            Error::failed(format!("cannot make a file in {}", folder.display()))
                .because(e)
                .hint(REMEDY)
        })?;
        Ok(Self { path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(), _file: file })
    }
}

/// The remedy where samples have no room.
const REMEDY: &str = "set TMPDIR to a folder with free space, or leave out the code with --no-code";
