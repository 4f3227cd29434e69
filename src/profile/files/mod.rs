//! Files of modules: where they are, their layout, and whether they are the recorded ones.
//!
//! | file | concern |
//! |---|---|
//! | `locate` | the file of a module, found and checked |
//! | `place` | where a file may lie; build-ids |
//! | `search` | folders and servers to search |
//!
//! They are read up to a limit, for each file and for all that a recording names together, and not mapped: another
//! process may cut a mapped file short, which ends whoever reads it (SIGBUS).

mod locate;
mod place;
mod search;

use isa::elf::NoLayout;
use isa::flow::NoImage;
use std::fmt;
use std::fs::File;
use std::io::{self, Error, ErrorKind, Read as _, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tma::Cause;
use tma::files::{LONGEST_PROGRAM, read_open};

pub(crate) use locate::locate;
pub use locate::{Program, missing};
pub use place::hexadecimal;
pub(crate) use place::{Part, Place, same_id};
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

/// Why the code or symbols of a module are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// There is no such file: its path.
    NoFile(String),
    /// The file has changed since the recording: build-ids recorded and found.
    Changed(String, String),
    /// Two recorded files have its path, and another one is here.
    OtherFile,
    /// Another kernel runs here: releases recorded and running.
    OtherKernel(String, String),
    /// The file here is for another processor: the recorded architecture.
    OtherProcessor(String),
    /// It cannot be read.
    Unreadable(Unreadable),
    /// It has no code at the address.
    NoCode,
    /// No function of it is known at the address.
    NoFunction,
    /// No module is mapped at the address.
    NoMapping,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile(path) => write!(f, "{path} is not here"),
            Self::Changed(recorded, found) => {
                let (recorded, found) = (shortened(recorded), shortened(found));
                write!(f, "it has changed since: build-id {recorded} recorded, {found} found")
            }
            Self::OtherFile => {
                f.write_str("two recorded files have its path, and another one is here")
            }
            Self::OtherKernel(recorded, found) => {
                write!(f, "it is kernel {recorded}; {found} runs here")
            }
            Self::OtherProcessor(recorded) => {
                write!(f, "the file here is for another processor than the recorded {recorded}")
            }
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            Self::NoCode => f.write_str("it has no code there"),
            Self::NoFunction => f.write_str("no function is known at this address"),
            Self::NoMapping => f.write_str("no mapping is known at this address"),
        }
    }
}

/// The first digits of a build-id, enough to compare by eye.
fn shortened(id: &str) -> String {
    let head: String = id.chars().take(12).collect();
    if head.len() < id.len() { head + "\u{2026}" } else { head }
}

/// Why what is here of a module cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The system refuses it, or the disk fails.
    File(Cause<io::Error>),
    /// The map of compiled code at this path is refused, or the disk fails.
    Map(String, Cause<io::Error>),
    /// It is no ELF file, or a damaged one.
    Elf(NoLayout),
    /// Its memory is not known.
    Image(NoImage),
    /// It has more than this many GiB.
    Gigabytes(u64),
    /// It has more than this many MiB.
    Megabytes(u64),
    /// It ends within the header of a jitdump.
    Short,
    /// A jitdump of a big-endian machine.
    BigEndian,
    /// It is no jitdump.
    NoDump,
    /// Addresses of the kernel are hidden.
    Hidden,
    /// The running kernel has not loaded it.
    NotLoaded,
    /// The recording does not say where the kernel was.
    NoReference,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(error) => return error.fmt(f),
            Self::Map(path, error) => return write!(f, "{path}: {error}"),
            Self::Elf(why) => return why.fmt(f),
            Self::Image(why) => return why.fmt(f),
            Self::Gigabytes(most) => return write!(f, "it has more than {most} GiB"),
            Self::Megabytes(most) => return write!(f, "it has more than {most} MiB"),
            Self::Short => "it is shorter than the header of a jitdump",
            Self::BigEndian => "it is of a big-endian machine",
            Self::NoDump => "it is not a jitdump",
            Self::Hidden => {
                "the addresses in /proc/kallsyms are hidden; root, or kernel.kptr_restrict=0, shows them"
            }
            Self::NotLoaded => "it is not loaded in the running kernel",
            Self::NoReference => "the recording lacks the kernel's address in memory",
        })
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<object::Error> for Unreadable {
    fn from(error: object::Error) -> Self {
        Self::Elf(error.into())
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
