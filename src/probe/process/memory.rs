//! The memory of a traced process, through `/proc/PID/mem`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes of a page.
pub const PAGE: usize = crate::plan::PAGE as usize;

/// The memory of one process until it executes another program.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    /// The process has ended, or may not be traced by this one.
    pub fn open(pid: i32) -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).map(Self)
    }

    /// The page that contains `address`; `None` if it is not mapped or cannot be read.
    pub fn page(&self, address: u64) -> Option<Box<[u8; PAGE]>> {
        let mut page = Box::new([0; PAGE]);
        let start = address & !(PAGE as u64 - 1);
        self.0.read_exact_at(&mut page[..], start).ok()?;
        Some(page)
    }

    /// Up to `most` bytes from `address` on, as far as they are readable.
    pub fn read(&self, address: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let got = self.0.read_at(&mut bytes, address).unwrap_or(0);
        bytes.truncate(got);
        bytes
    }

    /// Whether all these addresses are readable; `None` if the process has ended.
    pub fn holds(&self, address: u64, length: usize) -> Option<bool> {
        match self.0.read_at(&mut vec![0; length], address) {
            // No task uses the memory any more (Linux, mem_rw).
            Ok(0) if length > 0 => None,
            got => Some(got.is_ok_and(|got| got == length)),
        }
    }

    /// Writes bytes, also to code that is mapped read-only (a private copy of the pages).
    ///
    /// # Errors
    /// It is not mapped, or the process has ended.
    pub fn write_all(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, address)
    }

    /// As [`Self::write_all`], without an error if the process has ended.
    ///
    /// # Errors
    /// It is not mapped.
    pub fn write_alive(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all(address, bytes).or_else(|error| match error.kind() {
            io::ErrorKind::WriteZero => Ok(()),
            _ => Err(error),
        })
    }

    /// Writes one byte, also to code that is mapped read-only (a private copy of the page).
    ///
    /// # Errors
    /// It is not mapped, or the process has ended.
    pub fn write(&self, address: u64, byte: u8) -> io::Result<()> {
        self.0.write_all_at(&[byte], address)
    }
}
