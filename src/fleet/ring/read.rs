//! All windows of a folder in order. A file that is damaged is reported, and none is read by half.

use super::defect::Defect;
use super::document::{LARGEST, decode};
use super::folder::windows;
use crate::window::Window;
use std::io;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;
use tma::{Error, Result};

/// A file of a ring that is no window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub defect: Defect,
}

impl From<Damaged> for Error {
    fn from(damaged: Damaged) -> Self {
        Error::failed(format!("cannot read the window {}", damaged.path.display()))
            .because(damaged.defect)
            .hint("remove the file: the other windows are whole")
    }
}

/// The windows of a folder, the oldest first; each is read when it is asked for.
#[derive(Debug)]
pub struct Windows(IntoIter<PathBuf>);

impl Windows {
    /// Number of files that are left to read.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

impl Iterator for Windows {
    type Item = std::result::Result<Window, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        for path in self.0.by_ref() {
            let bytes = match tma::files::read(&path, LARGEST) {
                Ok(bytes) => bytes,
                // It made room for a newer one meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) if e.kind() == io::ErrorKind::FileTooLarge => {
                    return Some(Err(Damaged { path, defect: Defect::TooLarge }));
                }
                Err(e) => return Some(Err(Damaged { path, defect: Defect::Unread(e.into()) })),
            };
            return Some(decode(&bytes).map_err(|defect| Damaged { path, defect }));
        }
        None
    }
}

/// The windows in a folder, in the order in which they were written.
///
/// # Errors
/// The folder cannot be read.
pub fn read(folder: &Path) -> Result<Windows> {
    let all = windows(folder).map_err(|e| {
        Error::failed(format!("cannot read the ring {}", folder.display()))
            .because(e)
            .hint("give the folder of `tdtool record --ring`")
    })?;
    let paths: Vec<PathBuf> = all.into_iter().map(|kept| kept.path).collect();
    Ok(Windows(paths.into_iter()))
}
