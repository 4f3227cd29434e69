//! A folder for files that another program reads or writes.

use std::fs::{DirBuilder, remove_dir_all};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// A private folder that is removed on drop. Programs such as the assembler unlink their output file before they write a
/// new one, so in a shared folder another process could take the name in between.
#[derive(Debug)]
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder that only this user can write to, in that of `TMPDIR`.
    ///
    /// # Errors
    /// No file can be written there.
    ///
    /// ```
    /// let folder = tma::temporary::TemporaryFolder::new()?;
    /// let path = folder.path().to_owned();
    /// assert!(path.is_dir());
    /// drop(folder);
    /// assert!(!path.exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> Result<Self> {
        let folder = std::env::temp_dir();
        for attempt in 0..1000_u32 {
            let path = folder.join(format!("tdtool-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(Error::other("found no unused name for a temporary directory"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.0);
    }
}
