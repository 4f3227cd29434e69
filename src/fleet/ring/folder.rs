//! The folder of a ring: its lock, its files and their sizes.

use super::name;
use nix::fcntl::{Flock, FlockArg};
use nix::libc::O_NOFOLLOW;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// The name of the lock.
const LOCK: &str = ".lock";
/// Files take whole pages of a disk.
const PAGE: u64 = 4096;
/// The smallest ring: a few windows.
pub const LEAST: u64 = 16 * PAGE;

/// A window's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub number: u64,
    pub path: PathBuf,
    /// Bytes on the disk.
    pub room: u64,
}

/// The room that so many bytes take on a disk.
pub(super) fn room(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE).saturating_mul(PAGE)
}

/// The windows in a folder, the oldest first.
///
/// # Errors
/// It cannot be read.
pub(super) fn windows(folder: &Path) -> io::Result<Vec<Kept>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(name::number) else { continue };
        // It may be gone by now.
        let Ok(found) = entry.metadata() else { continue };
        // A folder of that name is not ours to remove.
        let room = if found.is_file() { room(found.len()) } else { 0 };
        all.push(Kept { number, path: entry.path(), room });
    }
    // Equal numbers: from two folders that somebody put together.
    all.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
    Ok(all)
}

/// A folder that only this process writes windows to.
#[derive(Debug)]
pub(super) struct Locked {
    path: PathBuf,
    lock: Flock<File>,
}

impl Locked {
    /// Makes the folder if it is not there, locks it, and removes what a killed recorder left half written.
    ///
    /// # Errors
    /// It cannot be made; another recorder has it.
    pub fn new(path: &Path) -> Result<Self> {
        let failed = |e: io::Error| {
            Error::failed(format!("cannot keep windows in {}", path.display()))
                .because(e)
                .hint("choose a folder that can be written to with --ring")
        };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(O_NOFOLLOW);
        let file = file.open(path.join(LOCK)).map_err(failed)?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| {
            let what = format!("another recorder keeps its windows in {}", path.display());
            match e {
                nix::Error::EWOULDBLOCK => Error::failed(what)
                    .because("its lock is held")
                    .hint("end that one, or choose another folder with --ring"),
                other => failed(other.into()),
            }
        })?;
        let locked = Self { path: path.to_owned(), lock };
        locked.clean().map_err(failed)?;
        Ok(locked)
    }

    /// Whether the folder at the path is still the one that is locked: not removed, and not moved elsewhere.
    pub fn is_here(&self) -> bool {
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        let here = fs::symlink_metadata(self.path.join(LOCK)).map(id).ok();
        here.is_some() && here == self.lock.metadata().map(id).ok()
    }

    /// Makes names of files last over a loss of power.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn clean(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(name::is_unfinished) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}
