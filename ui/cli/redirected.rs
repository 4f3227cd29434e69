//! Standard output, which goes elsewhere for a while: the commands that are started meanwhile inherit that.

use nix::unistd::{dup, dup2_stdout};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use tma::{Error, Result};

/// Puts it back when dropped.
pub struct Redirected(OwnedFd);

impl Redirected {
    /// At the end of this file; what is `/dev/null` is nowhere.
    pub fn to(path: &Path) -> Result<Self> {
        let failed = |e: &dyn std::fmt::Display| {
            Error::failed("cannot redirect the output of the commands").because(e)
        };
        std::io::stdout().flush().map_err(|e| failed(&e))?;
        let own = dup(std::io::stdout()).map_err(|e| failed(&e))?;
        let file = File::options().append(true).open(path).map_err(|e| failed(&e))?;
        dup2_stdout(file).map_err(|e| failed(&e))?;
        Ok(Self(own))
    }
}

impl Drop for Redirected {
    fn drop(&mut self) {
        // It was open before.
        let _ = dup2_stdout(&self.0);
    }
}
