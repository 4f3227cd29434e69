//! A traced process with a stopped thread in which system calls can be made.

use super::inject;
use super::map_many::{map_many, most};
use super::maps::{Mapping, mappings};
use super::memory::Memory;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;

/// Most tries to unmap memory.
const TRIES: usize = 3;

/// A process with a stopped thread in which system calls can be made.
#[derive(Debug, Clone, Copy)]
pub struct Tracee {
    /// The thread.
    pub tid: i32,
    /// The process whose end is awaited by its owner; 0 if there is none.
    pub(super) leader: i32,
    /// The process.
    pub process: i32,
    /// Its code has been running: threads may be anywhere in it, or return there.
    pub is_live: bool,
}

impl Tracee {
    /// Its mappings.
    pub fn mappings(&self) -> Vec<Mapping> {
        mappings(self.tid)
    }

    /// Its memory.
    ///
    /// # Errors
    /// As [`Memory::open`].
    pub fn memory(&self) -> std::io::Result<Memory> {
        Memory::open(self.tid)
    }

    /// Opens one of its descriptors here, for reading and writing. Its first thread may have ended.
    ///
    /// # Errors
    /// It has no such descriptor, or one that cannot be opened again.
    pub fn open(&self, descriptor: u64) -> io::Result<File> {
        let path = format!("/proc/{}/fd/{descriptor}", self.tid);
        OpenOptions::new().read(true).write(true).open(path)
    }

    /// Maps executable memory at these addresses; the number of mappings made. `own` is such memory
    /// and overwritten.
    ///
    /// # Errors
    /// Its end was not seen: some of the first mappings may exist.
    pub fn map_many(
        &self,
        memory: &Memory,
        own: &Range<u64>,
        ranges: &[Range<u64>],
    ) -> nix::Result<usize> {
        let ranges = &ranges[..ranges.len().min(most(own.end - own.start))];
        map_many(self.tid, self.leader, memory, own.start, ranges)
    }

    /// Unmaps our ranges, with one call if nothing else is between them; the number of ranges that
    /// remain.
    pub fn unmap(&self, memory: &Memory, mappings: &[Mapping], ranges: &[Range<u64>]) -> usize {
        let is_other = |from: u64, to: u64| mappings.iter().any(|m| m.start < to && from < m.end);
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut all: Vec<Range<u64>> = Vec::new();
        for range in sorted {
            match all.last_mut() {
                Some(last) if !is_other(last.end, range.start) => {
                    last.end = last.end.max(range.end)
                }
                _ => all.push(range),
            }
        }
        let remains = |range: &&Range<u64>| {
            let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
            // A signal that cannot be blocked may prevent a call.
            (0..TRIES).all(|_| self.call(memory, libc::SYS_munmap, arguments).is_err())
        };
        all.iter().filter(remains).count()
    }

    /// Makes a system call in it.
    ///
    /// # Errors
    /// The error of the system call or of ptrace(2).
    pub fn call(
        &self,
        memory: &Memory,
        number: libc::c_long,
        arguments: [u64; 6],
    ) -> nix::Result<u64> {
        inject::call(self.tid, self.leader, memory, number.cast_unsigned(), arguments)
    }
}

/// Seccomp mode of a thread: 0 if its system calls are not filtered (proc_pid_status(5)).
///
/// # Errors
/// The thread has ended.
pub fn seccomp(tid: i32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status"))?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    // A kernel without seccomp shows no mode.
    Ok(mode.and_then(|mode| mode.trim().parse().ok()).unwrap_or(0))
}
