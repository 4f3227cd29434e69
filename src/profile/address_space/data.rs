//! Addresses that no mapped program explains: static data and mappings by name, and code in mapped jitdumps.
//!
//! Many recordings only have the mappings of code (those of `perf record -d` and `perf mem` have all). Static
//! data is found all the same: the loader moves all segments of a file by the same distance.

use super::{
    AddressSpaces, DataPlace, JitProcess, KERNEL_HALF, KERNEL_PATH, ModuleAddress, Region,
};
use crate::jitdump;
use crate::module::{Module, ModuleKind};
use crate::ranges::RangeMap;
use isa::elf::{Layout, Segment};
use std::cmp::Reverse;
use std::fmt;
use std::io::ErrorKind;

/// Mappings looked at below and above an address: a file has few between its code and its data.
const NEAR: usize = 8;
/// Smallest page; the loader maps whole pages.
const PAGE: u64 = 4096;
/// Most pieces of code of all jitdumps that a recording names, some 100 bytes each.
const MOST: usize = 1 << 21;
/// Most bytes of those jitdumps.
const MOST_BYTES: u64 = 4 << 30;

impl AddressSpaces {
    /// Current owner of the data address `address` of process `pid`, if known.
    pub fn data(&mut self, pid: u32, address: u64) -> Option<DataPlace> {
        if address >= KERNEL_HALF {
            let kernel = self.kernel_module.unwrap_or_else(|| {
                self.number(Module {
                    path: KERNEL_PATH.into(),
                    kind: ModuleKind::Kernel,
                    ..Module::default()
                })
            });
            return Some(DataPlace::Mapping(kernel));
        }
        let regions = &self.processes.get(&pid)?.regions;
        let inside = regions.get(address).map(|region| region.module);
        let below = regions.below(address).take(NEAR);
        let near: Vec<Region> = below.chain(regions.above(address).take(NEAR)).cloned().collect();
        let found = near.iter().find_map(|region| self.static_data(region, address));
        let is_file = |module: &usize| {
            self.modules.all.get(*module).is_some_and(|module| module.kind.is_file_like())
        };
        // A mapped file that is no program, such as a data base, counts as a whole.
        found
            .map(DataPlace::Static)
            .or_else(|| inside.filter(|module| !is_file(module)).map(DataPlace::Mapping))
            .or_else(|| inside.map(DataPlace::Mapping))
    }

    /// The address in its program's file of code that runs from anonymous memory where that file's code belongs:
    /// programs move their code to huge pages so. Libraries may be unmapped, and other code take their place.
    pub(super) fn moved_code(
        &mut self,
        pid: u32,
        region: &Region,
        ip: u64,
    ) -> Option<ModuleAddress> {
        let kind = self.modules.all.get(region.module)?.kind;
        let program = self.processes.get(&pid)?.program.clone()?;
        let place = (kind == ModuleKind::Anonymous).then(|| self.static_data(&program, ip))??;
        let layout = self.layout(program.module)?;
        layout.offset_of(place.address)?;
        self.moved.insert(place.module);
        Some(place)
    }

    /// The address in the file of `region`, if it is in one of its segments.
    fn static_data(&mut self, region: &Region, address: u64) -> Option<ModuleAddress> {
        let layout = self.layout(region.module)?;
        let start = start(layout, region.offset)?;
        let moved = address.wrapping_sub(region.start).wrapping_add(start);
        let inside = layout
            .segments
            .iter()
            .any(|s| moved.checked_sub(s.address).is_some_and(|offset| offset < s.memory_size));
        inside.then_some(ModuleAddress { module: region.module, address: moved })
    }
}

/// The address (p_vaddr) that a mapping of this offset begins at: that of the segment whose first page it is;
/// of two, the executable one, because it is code that all recordings have.
fn start(layout: &Layout, offset: u64) -> Option<u64> {
    let begins = |s: &&Segment| s.offset & !(PAGE - 1) == offset & !(PAGE - 1);
    let code = layout.segments.iter().filter(|s| s.executable).find(begins);
    let segment = code.or_else(|| layout.segments.iter().find(begins))?;
    Some(segment.address.wrapping_sub(segment.offset).wrapping_add(offset))
}

impl AddressSpaces {
    /// To be called with the time of each sample before its addresses are resolved. Returns whether code was
    /// loaded since.
    pub fn advance(&mut self, time: Option<u64>) -> bool {
        let Some(time) = time.filter(|now| !self.compiled.is_later(*now)) else { return false };
        let compiled = &mut self.compiled;
        while !compiled.is_later(time) {
            let Some(Reverse((_, pid))) = compiled.next.pop() else { break };
            if let Some(process) = compiled.processes.get_mut(&pid) {
                process.advance(time);
                compiled.next.extend(process.next().map(|next| Reverse((next, pid))));
            }
        }
        true
    }

    /// A process has mapped a jitdump.
    pub(super) fn map_dump(&mut self, pid: u32, path: &str) {
        if self.compiled.processes.get(&pid).is_some_and(|known| known.path == path) {
            return;
        }
        let file = match jitdump::open(&self.search, path, pid) {
            Ok(file) => file,
            // The perf map file may be there.
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.unreadable(path, error),
        };
        self.compiled.bytes += file.metadata().map_or(0, |found| found.len());
        if self.compiled.read >= MOST || self.compiled.bytes > MOST_BYTES {
            return self.unreadable(path, "the recording names too many of them");
        }
        let (loads, has_clock) = match jitdump::loads(file, MOST - self.compiled.read) {
            Ok(found) => found,
            Err(reason) => return self.unreadable(path, reason),
        };
        self.compiled.read += loads.len();
        if self.compiled.read >= MOST {
            self.unreadable(path, format_args!("there are more than {MOST}"));
        }
        let module = self.modules.number(Module {
            path: path.to_owned(),
            kind: ModuleKind::Jitdump,
            pid: Some(pid),
            ..Module::default()
        });
        let (code, path) = (RangeMap::default(), path.to_owned());
        let mut process = JitProcess { path, code, module, later: loads.into_iter() };
        if !(has_clock && self.compiled.is_monotonic) {
            process.advance(u64::MAX);
        }
        self.compiled.next.extend(process.next().map(|next| Reverse((next, pid))));
        self.compiled.processes.insert(pid, process);
    }

    fn unreadable(&mut self, path: &str, reason: impl fmt::Display) {
        let note = format!("functions of {} are missing: {reason}", tma::text::name(path));
        // As many as a reader looks at.
        if self.compiled.notes.len() < 8 && !self.compiled.notes.contains(&note) {
            self.compiled.notes.push(note);
        }
    }

    /// The compiled code at an address of user space; `region` is what is mapped there.
    pub(super) fn compiled_at(
        &self,
        pid: u32,
        ip: u64,
        user: Option<bool>,
        region: Option<&Region>,
    ) -> Option<ModuleAddress> {
        if self.compiled.processes.is_empty() || user == Some(false) {
            return None;
        }
        let kind = region.and_then(|region| self.modules.all.get(region.module)).map(|m| m.kind);
        if kind.is_some_and(ModuleKind::is_file_like) {
            return None;
        }
        let code = self.compiled.processes.get(&pid)?.code.get(ip)?;
        let address = (ip - code.start).wrapping_add(code.offset);
        Some(ModuleAddress { module: code.module, address })
    }
}
