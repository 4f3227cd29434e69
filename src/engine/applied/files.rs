//! Files that are changed for a while: the source and the program. What was there comes back, also after errors.

use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Largest file that is changed, in bytes.
const MOST: u64 = 1 << 30;

/// A file, what it was at first, and what it is to be in the end.
pub(super) struct Changed {
    pub path: PathBuf,
    pub first: Vec<u8>,
    pub accepted: Vec<u8>,
    permissions: Permissions,
    is_other: bool,
}

impl Changed {
    /// A file that can be changed. Its copy lies beside it meanwhile, as `NAME.tdtool-original`: a program that is
    /// killed restores nothing.
    ///
    /// # Errors
    /// It cannot be read, or the copy not be written; there is one of an earlier run already.
    pub fn of(path: &Path) -> Result<Self> {
        let failed = |e| cannot_change(path, &e);
        let path = &tma::files::resolved(path).map_err(failed)?;
        let first = tma::files::read(path, MOST).map_err(failed)?;
        let permissions = fs::metadata(path).map_err(failed)?.permissions();
        let copy = copy_of(path);
        if copy.exists() {
            return Err(Error::failed(format!("{} is there already", copy.display()))
                .because("an earlier run was killed before it could restore the file")
                .hint("move it back over the file if that has a prefetch, else delete it"));
        }
        fs::copy(path, copy).map_err(failed)?;
        let path = path.clone();
        Ok(Self { accepted: first.clone(), path, first, permissions, is_other: false })
    }

    /// Writes other content for a while: whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        // A build may have replaced it with whatever.
        self.is_other = true;
        let beside = beside(&self.path, &format!("tdtool-{}", std::process::id()));
        let written = fs::write(&beside, bytes)
            .and_then(|()| fs::set_permissions(&beside, self.permissions.clone()))
            .and_then(|()| fs::rename(&beside, &self.path));
        written.map_err(|e| {
            // It may not be there.
            let _ = fs::remove_file(&beside);
            cannot_change(&self.path, &e)
        })
    }

    /// Before a command changes it.
    pub fn expose(&mut self) {
        self.is_other = true;
    }

    /// What it is now.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn now(&self) -> Result<Vec<u8>> {
        tma::files::read(&self.path, MOST).map_err(|e| cannot_change(&self.path, &e))
    }

    /// Writes what was accepted last.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn restore(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_other) {
            let accepted = self.accepted.clone();
            self.write(&accepted).inspect(|()| self.is_other = false)?;
        }
        Ok(())
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // The copy stays where the file could not be restored.
        if self.restore().is_ok() {
            let _ = fs::remove_file(copy_of(&self.path));
        }
    }
}

fn copy_of(path: &Path) -> PathBuf {
    beside(path, "tdtool-original")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn cannot_change(path: &Path, error: &std::io::Error) -> Error {
    Error::failed(format!("cannot change {}", path.display())).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_with_its_mode_unless_another_content_was_accepted() {
        let folder = std::env::temp_dir().join(format!("tdtool-changed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.c");
        fs::write(&path, "first").unwrap();
        let mut file = Changed::of(&path).unwrap();
        file.write(b"other").unwrap();
        assert_eq!(file.now().unwrap(), b"other");
        assert!(Changed::of(&path).is_err(), "a copy is there");
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        let mut file = Changed::of(&path).unwrap();
        file.write(b"better").unwrap();
        file.accepted = b"better".to_vec();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"better");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
