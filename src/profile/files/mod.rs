//! Files of modules: where they are, their layout, and whether they are the recorded ones.
//!
//! They are read, not mapped: another process may cut a mapped file short, which ends whoever reads it (SIGBUS).

mod gap;
mod locate;
mod place;
mod search;

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tma::files::{LONGEST_PROGRAM, read_open};

pub use gap::{Gap, Unreadable};
pub(crate) use locate::locate;
pub use locate::{Program, missing};
pub(crate) use place::{Part, Place, hexadecimal, same_id};
pub use search::{Cache, Debuginfod, Limits, SearchPaths};

/// Most bytes of all programs and debug files that one recording names.
const MOST: u64 = 4 << 30;
/// Bytes that are read at once for a checksum.
const PART: usize = 1 << 18;

/// Programs and debug files: where they are looked for, and how much of them may still be read.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub search: SearchPaths,
    /// Shared by copies of this.
    left: Arc<AtomicU64>,
}

impl Files {
    /// Nothing has been read yet.
    pub fn new(search: SearchPaths) -> Self {
        Self { search, left: Arc::new(AtomicU64::new(MOST)) }
    }

    /// The bytes of an open file.
    ///
    /// # Errors
    /// It cannot be read, or the limit is reached.
    pub fn read(&self, file: &File) -> Result<Vec<u8>> {
        self.take(file.metadata()?.len())?;
        read_open(file, LONGEST_PROGRAM)
    }

    /// Notes that memory for this many bytes is needed.
    pub fn take(&self, bytes: u64) -> Result<()> {
        let take = |left: u64| left.checked_sub(bytes);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(|_| ()).map_err(|_| {
            let why =
                format!("the files that the recording names have more than {} GiB", MOST >> 30);
            Error::new(ErrorKind::FileTooLarge, why)
        })
    }

    /// The file at a place, if it has this checksum (CRC-32), which is computed before anything is stored.
    pub fn with_checksum(&self, place: &Place, checksum: u32) -> Option<Vec<u8>> {
        let file = place.open().ok()?;
        if file.metadata().ok()?.len() > LONGEST_PROGRAM {
            return None;
        }
        let mut hasher = crc32fast::Hasher::new();
        let mut part = vec![0; PART];
        let mut limited = (&file).take(LONGEST_PROGRAM);
        loop {
            match limited.read(&mut part).ok()? {
                0 => break,
                n => hasher.update(&part[..n]),
            }
        }
        if hasher.finalize() != checksum {
            return None;
        }
        self.read(&file).ok().filter(|data| crc32fast::hash(data) == checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_have_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("giant");
        let giant = File::create(&path).unwrap();
        giant.set_len(LONGEST_PROGRAM).unwrap();
        let files = Files::new(SearchPaths::default());
        for _ in 0..MOST / LONGEST_PROGRAM {
            // Nothing of it is on the disk.
            assert_eq!(files.read(&giant).unwrap_err().kind(), ErrorKind::InvalidData);
        }
        std::fs::write(&path, "small").unwrap();
        let error = files.read(&File::open(&path).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        let files = Files::new(SearchPaths::default());
        let place = Place::here(&path);
        assert_eq!(files.with_checksum(&place, crc32fast::hash(b"small")).unwrap(), b"small");
        assert_eq!(files.with_checksum(&place, 1), None);
    }
}
