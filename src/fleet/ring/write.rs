//! Adds windows to a ring. A window is written under another name, synced and renamed: after a crash it is there whole
//! or not at all. The oldest make room before it is written, so that the limit holds at any time.

use super::document::{LARGEST, encode};
use super::folder::{Kept, LEAST, Locked, room, windows};
use super::name;
use crate::window::Window;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tma::{Cause, Error, Result};

/// How often room is made on a full disk before a window is dropped.
const ATTEMPTS: usize = 8;

/// Why a window is not in the ring.
#[derive(Debug, Clone)]
pub enum Dropped {
    /// It alone is larger than the ring, or than a window can be.
    TooLarge {
        /// Bytes that it takes.
        room: u64,
    },
    /// The disk is full, and older windows could not make enough room.
    Full,
    /// The folder is gone, and cannot be made or locked again.
    Folder(Error),
    /// It cannot be written.
    Unwritten(Cause<io::Error>),
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { room } => write!(f, "it takes {room} bytes, more than the ring"),
            Self::Full => f.write_str("the disk is full"),
            Self::Folder(error) => error.fmt(f),
            Self::Unwritten(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Dropped {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Unwritten(error.into()),
        }
    }
}

/// A ring that this process alone writes to.
#[derive(Debug)]
pub struct Ring {
    path: PathBuf,
    most: u64,
    /// `None`: the folder was removed or moved.
    locked: Option<Locked>,
    /// Number of the last window.
    last: u64,
}

impl Ring {
    /// Opens the ring in a folder, which is made if it is not there; it holds at most `most` bytes.
    ///
    /// # Errors
    /// The folder cannot be made; another recorder writes to it; `most` is below [`LEAST`].
    pub fn open(folder: &Path, most: u64) -> Result<Self> {
        if most < LEAST {
            return Err(Error::usage(format!("a ring of {most} bytes holds no window"))
                .hint(format!("--max-bytes takes {LEAST} or more")));
        }
        // A folder that is renamed meanwhile is made again where it was.
        let path = std::path::absolute(folder).map_err(|e| tma::error::unreadable(folder, &e))?;
        let locked = Locked::new(&path)?;
        let mut ring = Self { path, most, locked: Some(locked), last: 0 };
        let kept = ring.windows().map_err(|e| tma::error::unreadable(folder, &e))?;
        ring.last = kept.last().map_or(0, |kept| kept.number);
        // A smaller limit than before.
        ring.make_room(kept, 0).map_err(|e| tma::error::unreadable(folder, &e))?;
        Ok(ring)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a window; its path.
    ///
    /// # Errors
    /// It is not in the ring, for this reason. The ring can take the next one.
    pub fn add(&mut self, window: &Window) -> std::result::Result<PathBuf, Dropped> {
        let bytes = encode(window)?;
        let size = room(bytes.len() as u64);
        if size > self.most || bytes.len() as u64 > LARGEST {
            return Err(Dropped::TooLarge { room: size });
        }
        self.be_here().map_err(Dropped::Folder)?;
        let mut kept = self.windows()?;
        let newest = kept.last().map_or(0, |kept| kept.number);
        let number = self.last.max(newest) + 1;
        kept = self.make_room(kept, size)?;
        let path = self.path.join(name::of(number, window.start_ms, window.host.boot.as_deref()));
        let mut kept = kept.into_iter();
        for _ in 0..ATTEMPTS {
            match self.write(&path, number, &bytes).map_err(Dropped::from) {
                Ok(()) => {
                    self.last = number;
                    return Ok(path);
                }
                Err(Dropped::Full) => remove_for(&mut kept, size)?,
                Err(other) => return Err(other),
            }
        }
        Err(Dropped::Full)
    }

    /// Makes and locks the folder again if somebody has removed or moved it.
    fn be_here(&mut self) -> Result<()> {
        if self.locked.as_ref().is_some_and(Locked::is_here) {
            return Ok(());
        }
        self.locked = None;
        self.locked = Some(Locked::new(&self.path)?);
        Ok(())
    }

    fn windows(&self) -> io::Result<Vec<Kept>> {
        windows(&self.path)
    }

    /// Removes the oldest windows until `more` bytes fit; those that are left.
    fn make_room(&self, mut kept: Vec<Kept>, more: u64) -> io::Result<Vec<Kept>> {
        let mut used: u64 = kept.iter().map(|kept| kept.room).sum();
        let mut failed = None;
        kept.retain(|oldest| {
            if used.saturating_add(more) <= self.most {
                return true;
            }
            // One that cannot be removed must not end the recording.
            let removed = remove(&oldest.path);
            let is_removed = removed.is_ok();
            used -= if is_removed { oldest.room } else { 0 };
            failed = failed.take().or(removed.err());
            !is_removed
        });
        match failed {
            Some(error) if used.saturating_add(more) > self.most => Err(error),
            _ => Ok(kept),
        }
    }

    fn write(&self, path: &Path, number: u64, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.path.join(name::unfinished(number));
        let written = self.write_as(&unfinished, path, bytes);
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn write_as(&self, unfinished: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(unfinished, path)?;
        self.locked.as_ref().map_or(Ok(()), Locked::sync)
    }
}

/// Removes the oldest windows that take at least `size` bytes together.
fn remove_for(
    kept: &mut impl Iterator<Item = Kept>,
    size: u64,
) -> std::result::Result<(), Dropped> {
    let mut freed = 0;
    while freed < size {
        let oldest = kept.next().ok_or(Dropped::Full)?;
        remove(&oldest.path)?;
        freed += oldest.room;
    }
    Ok(())
}

/// Removes a file that may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
