//! The bytes of a recording, in a file or in memory: read as often as needed, a part at a time, so that
//! a recording may be larger than the memory.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// Where the bytes are.
#[derive(Debug, Clone)]
enum Place {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

/// Bytes that can be read at any offset.
#[derive(Debug, Clone)]
pub struct Input {
    place: Place,
    length: u64,
}

impl Input {
    /// Bytes of a file named by the user, at its current length; compressed files are unpacked.
    ///
    /// # Errors
    /// It cannot be opened or unpacked.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of_file(crate::kept::open(path)?)
    }

    /// Bytes of an open file, at its current length.
    pub fn of_file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { place: Place::File(Arc::new(file)), length })
    }

    /// A copy of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { place: Place::Memory(bytes.into()), length: bytes.len() as u64 }
    }

    /// How many there are.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads at an offset until `buffer` is full or the bytes end; returns how many were read.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let buffer = &mut buffer[..room];
        match &self.place {
            Place::Memory(bytes) => {
                let at = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                buffer.copy_from_slice(&bytes[at..at + room]);
                Ok(room)
            }
            Place::File(file) => {
                let mut n = 0;
                while n < room {
                    match file.read_at(&mut buffer[n..], offset + n as u64) {
                        Ok(0) => break,
                        Ok(more) => n += more,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(n)
            }
        }
    }

    /// A part of the bytes: what of it is there.
    pub fn part(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = range.end.min(self.length).saturating_sub(range.start);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let n = self.fill(range.start, &mut bytes)?;
        bytes.truncate(n);
        Ok(bytes)
    }

    /// Reads from the start.
    pub fn reader(&self) -> InputReader {
        InputReader { input: self.clone(), at: 0 }
    }
}

/// Reads the bytes of an [`Input`] in order.
#[derive(Debug)]
pub struct InputReader {
    input: Input,
    at: u64,
}

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.fill(self.at, buffer)?;
        self.at += n as u64;
        Ok(n)
    }
}
