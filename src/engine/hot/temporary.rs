//! A folder for samples that are looked at once.

use std::path::{Path, PathBuf};
use tma::error::{Error, Result};

/// A folder that is gone when it is dropped.
pub(super) struct Temporary(PathBuf);

impl Temporary {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A new one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self> {
        let template = std::env::temp_dir().join("tdtool-XXXXXX");
        nix::unistd::mkdtemp(&template).map(Self).map_err(|e| {
            Error::failed(format!("cannot make a folder in {}", std::env::temp_dir().display()))
                .because(e)
                .hint(
                    "set TMPDIR to a folder with free space, or leave out the code with --no-code",
                )
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
