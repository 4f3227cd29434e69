//! Reads and writes the memory that the worker shares with the runner.

use super::Worker;
use crate::sandbox::layout::{self as at, mail};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

impl Worker {
    pub(super) fn state(&self) -> &AtomicU32 {
        // SAFETY: inside the view, aligned, and only ever used as an atomic while shared.
        unsafe { AtomicU32::from_ptr(self.view.add(at::MAIL + mail::STATE).cast()) }
    }

    pub(super) fn futex(&self, operation: i32, value: u32, limit: Option<Duration>) {
        let limit = limit.map(|d| libc::timespec {
            tv_sec: d.as_secs() as i64,
            tv_nsec: i64::from(d.subsec_nanos()),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word lives as long as the view; the time-out is a live local or null.
        unsafe {
            libc::syscall(libc::SYS_futex, self.state().as_ptr(), operation, value, limit, 0, 0)
        };
    }

    /// Copies `bytes` to an offset in the region.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= at::SIZE, "outside the region");
        // SAFETY: inside the view, as just checked; nothing else holds a reference into it.
        unsafe { self.view.add(at).copy_from(bytes.as_ptr(), bytes.len()) };
    }

    /// Copies from an offset in the region. Data that the worker wrote there is untrusted.
    pub fn read(&self, at: usize, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.copy(at, &mut bytes);
        bytes
    }

    /// Copies from an offset in the region to `bytes`, as [`Worker::read`].
    pub fn copy(&self, at: usize, bytes: &mut [u8]) {
        assert!(at + bytes.len() <= at::SIZE, "outside the region");
        // SAFETY: inside the view, as just checked.
        unsafe { self.view.add(at).copy_to(bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Writes a number.
    pub fn put32(&mut self, at: usize, value: u32) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a number.
    pub fn put64(&mut self, at: usize, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    /// Reads a number.
    pub fn get32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        self.copy(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Reads a number.
    pub fn get64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.copy(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Reads `count` 32-bit numbers.
    pub fn words(&self, at: usize, count: usize) -> Vec<u32> {
        let bytes = self.read(at, 4 * count);
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
    }
}
