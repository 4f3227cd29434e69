//! A thread stopped at the first instruction of a block.

use super::request::{Limits, Request};
use super::snapshot::{Page, Pages, Registers, SCHEMA, Snapshot, VectorRegisters, Walk};
use super::walk::Walker;
use crate::process::{Mapping, Memory, PAGE, Traced, mappings, registers, vectors};
use std::ops::Range;
use tma::{Error, Result};

/// A thread stopped at the block, and its process, whose other threads are stopped, too.
pub struct Stopped<'a> {
    traced: &'a mut Traced,
    tid: i32,
    memory: Memory,
    mappings: Vec<Mapping>,
    /// Address of the block in the file and in the process.
    at: (u64, u64),
    entry: u64,
    from_outside: bool,
    others: (usize, bool),
    /// Whether trips beyond the stepped ones are counted.
    pub(super) counts: bool,
}

impl<'a> Stopped<'a> {
    /// Thread `tid` is at the block at `address` (p_vaddr) for the `entry`-th time. Stops the other
    /// threads.
    pub(super) fn new(
        traced: &'a mut Traced,
        tid: i32,
        address: u64,
        entry: u64,
        from_outside: bool,
    ) -> Result<Self> {
        let gone = || Error::failed("the process has ended at the block");
        let (process, running_at) = traced.place(tid).ok_or_else(gone)?;
        let others = traced.halt(tid);
        traced.disarm(tid);
        let memory = Memory::open(process).map_err(|e| gone().because(e))?;
        let mappings = mappings(process);
        let at = (address, running_at);
        let counts = true;
        Ok(Self { traced, tid, memory, mappings, at, entry, from_outside, others, counts })
    }

    /// Number of the entry, from 1.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// General-purpose registers in encoding order.
    ///
    /// # Errors
    /// The process was killed.
    pub fn registers(&self) -> Result<Registers> {
        registers(self.tid).map(|r| Registers(r.general)).map_err(unreadable)
    }

    /// The page that contains `address`; `None` if it is not mapped or cannot be read.
    pub fn page(&self, address: u64) -> Option<[u8; PAGE]> {
        self.memory.page(address).map(|page| *page)
    }

    /// The mappings of the process: address range, rights, and the file or name.
    pub fn mapped(&self) -> impl Iterator<Item = (Range<u64>, &str, &str)> {
        self.mappings.iter().map(|m| (m.start..m.end, &*m.rights, &*m.path))
    }

    /// Steps through iterations in `region` (p_vaddr); the thread is elsewhere afterwards.
    pub fn walk(&mut self, region: &[Range<u64>], limits: Limits) -> (Walk, Pages) {
        let bias = self.at.1.wrapping_sub(self.at.0);
        let walker = Walker::new(self.traced, self.tid, &self.memory, region, bias, limits);
        walker.walk(self.counts)
    }

    /// The document; steps through iterations.
    ///
    /// # Errors
    /// The process was killed.
    pub fn snapshot(&mut self, request: &Request) -> Result<Snapshot> {
        let now = registers(self.tid).map_err(unreadable)?;
        let wide = vectors(self.tid).map_err(unreadable)?;
        let (walk, pages) = self.walk(&request.region, request.limits);
        let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
        Ok(Snapshot {
            schema: SCHEMA.to_owned(),
            command: request.command.argv.iter().map(text).collect(),
            image: request.image.to_string_lossy().into_owned(),
            address: self.at.0,
            running_at: self.at.1,
            entry: self.entry,
            from_outside: self.from_outside,
            other_threads: self.others.0,
            others_stopped: self.others.1,
            registers: Registers(now.general),
            flags: now.flags,
            fs_base: now.fs_base,
            gs_base: now.gs_base,
            vectors: VectorRegisters {
                mxcsr: wide.mxcsr,
                zmm: wide.vectors,
                masks: wide.masks,
                x87_control: wide.x87_control,
                x87: wide.x87,
            },
            walk,
            mapped: pages.0.keys().map(|address| self.page_at(*address)).collect(),
            pages,
            chosen: None,
            others: Vec::new(),
        })
    }

    fn page_at(&self, address: u64) -> Page {
        let mapping = self.mappings.iter().find(|m| (m.start..m.end).contains(&address));
        let (of, rights) = mapping.map(|m| (m.path.clone(), m.rights.clone())).unwrap_or_default();
        Page { address, of, rights }
    }
}

fn unreadable(errno: nix::errno::Errno) -> Error {
    Error::failed("cannot read the registers of the stopped process").because(errno.desc())
}
