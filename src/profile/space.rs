//! Address spaces: which file lies at an address of a process, at the time of a sample.
//!
//! Records come in order of time, samples are placed in between. Forked processes share their
//! parent's mappings until one of them maps something (copy on write), so ten thousand forks cost
//! ten thousand pointers.

use super::module::{Kind, Module, Modules};
use super::ranges::RangeMap;
use super::record::{Mapping, Record};
use super::symbols::{Layout, Search, locate};
use std::collections::HashMap;
use std::sync::Arc;

/// A place in a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which of [`Modules`].
    pub module: usize,
    /// Address as in the ELF file (p_vaddr); of modules without a file the address itself. Of a
    /// file that cannot be read, or has changed since: the offset in it.
    pub address: u64,
}

/// One mapping; what of it is still visible says the range map.
#[derive(Debug, Clone)]
struct Region {
    start: u64,
    offset: u64,
    module: usize,
}

/// One process.
#[derive(Debug, Clone, Default)]
struct Process {
    regions: Arc<RangeMap<Region>>,
    /// Its first thread has ended; samples may still come (buffers of CPUs are merged late).
    ended: bool,
}

/// The address spaces of all processes of a recording, as records come in.
#[derive(Debug, Default)]
pub struct Spaces {
    /// Every module that was mapped.
    pub modules: Modules,
    search: Search,
    build_ids: HashMap<String, Vec<u8>>,
    processes: HashMap<u32, Process>,
    kernel: RangeMap<Region>,
    /// The kernel itself, where it was mapped: what lies outside of all mappings counts to it.
    kernel_module: Option<usize>,
    names: HashMap<(u32, u32), Arc<str>>,
    /// By module: `None` not looked for yet, `Some(None)` not to be had.
    layouts: Vec<Option<Option<Layout>>>,
}

/// From here on addresses belong to the kernel: the upper half on all 64-bit processors.
const KERNEL_HALF: u64 = 1 << 63;
/// Process of mappings of the kernel: -1.
const KERNEL_PID: u32 = u32::MAX;
/// perf's name for the kernel; behind it in a mapping's path stands the reference symbol.
const KERNEL_PATH: &str = "[kernel.kallsyms]";

impl Spaces {
    /// No processes yet. Program headers are read from where `search` says; `build_ids` is the
    /// recording's own list, for mappings that do not carry theirs.
    pub fn new(search: Search, build_ids: &[(String, Vec<u8>)]) -> Self {
        let build_ids = build_ids.iter().cloned().collect();
        Self { search, build_ids, ..Self::default() }
    }

    /// Takes a record that changes a space (others change nothing).
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Map { mapping, .. } => self.map(mapping),
            Record::Name { pid, tid, name, exec, .. } => {
                if *exec {
                    self.processes.insert(*pid, Process::default());
                }
                self.names.insert((*pid, *tid), name.as_str().into());
            }
            Record::Fork { time, child, parent } => self.fork(*time, *child, *parent),
            Record::Exit { pid, tid, .. } if pid == tid => {
                if let Some(process) = self.processes.get_mut(pid) {
                    process.ended = true;
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, mapping: &Mapping) {
        let end = mapping.start.saturating_add(mapping.length);
        if mapping.start >= end || mapping.path.starts_with("[guest.") {
            return;
        }
        let kernel = mapping.pid == KERNEL_PID || mapping.kernel;
        let module = if kernel { kernel_module(mapping) } else { user_module(mapping) };
        let module = self.number(module);
        let region = Region { start: mapping.start, offset: mapping.offset, module };
        if kernel {
            if self.modules.all.get(module).is_some_and(|m| m.kind == Kind::Kernel) {
                self.kernel_module = Some(module);
            }
            self.kernel.insert(mapping.start, end, region);
            return;
        }
        let process = self.processes.entry(mapping.pid).or_default();
        if process.ended && mapping.pid == mapping.tid {
            // Its first thread has ended and maps again: another process with the same number,
            // whose fork was lost.
            *process = Process::default();
        }
        Arc::make_mut(&mut process.regions).insert(mapping.start, end, region);
    }

    /// The number of a module, with the build-id of the recording's list if it has none itself.
    fn number(&mut self, mut module: Module) -> usize {
        if module.build_id.is_none() {
            module.build_id = self.build_ids.get(&module.path).cloned();
        }
        self.modules.number(module)
    }

    fn fork(&mut self, time: Option<u64>, child: (u32, u32), parent: (u32, u32)) {
        if let Some(name) = self.names.get(&parent).cloned() {
            self.names.insert(child, name);
        }
        if child.0 == parent.0 {
            return;
        }
        // perf makes up forks at time 0 for processes that ran before it did: they have executed
        // something else since, and their own mappings follow.
        let regions = match time {
            Some(0) => Arc::default(),
            _ => self.processes.get(&parent.0).map(|p| Arc::clone(&p.regions)).unwrap_or_default(),
        };
        self.processes.insert(child.0, Process { regions, ended: false });
    }

    /// Where `ip` of process `pid` lies now; `user`: by the sample's header. `None` if nothing is
    /// known to be mapped there.
    pub fn place(&mut self, pid: u32, ip: u64, user: Option<bool>) -> Option<Place> {
        let in_process = || self.processes.get(&pid).and_then(|p| p.regions.get(ip));
        let region = if user == Some(false) { None } else { in_process() };
        if let Some(region) = region.cloned() {
            return Some(self.address_in(&region, ip));
        }
        if user == Some(true) || (user.is_none() && ip < KERNEL_HALF) {
            return None;
        }
        let module = match (self.kernel.get(ip), self.kernel_module) {
            (Some(region), _) => region.module,
            (None, Some(kernel)) => kernel,
            // Without privileges perf cannot say where the kernel lies.
            (None, None) => self.number(Module {
                path: KERNEL_PATH.into(),
                kind: Kind::Kernel,
                ..Module::default()
            }),
        };
        Some(Place { module, address: ip })
    }

    fn address_in(&mut self, region: &Region, ip: u64) -> Place {
        let module = region.module;
        if !self.modules.all.get(module).is_some_and(|m| m.kind.is_file_like()) {
            return Place { module, address: ip };
        }
        let offset = (ip - region.start).wrapping_add(region.offset);
        let address = self.layout(module).and_then(|l| l.address_of(offset)).unwrap_or(offset);
        Place { module, address }
    }

    /// The program headers of a module's file, read once.
    fn layout(&mut self, number: usize) -> Option<&Layout> {
        if self.layouts.len() <= number {
            self.layouts.resize_with(number + 1, || None);
        }
        let module = self.modules.all.get(number)?;
        let slot = self.layouts.get_mut(number)?;
        slot.get_or_insert_with(|| match module.kind {
            Kind::File => locate(&self.search, module).ok().map(|found| found.layout),
            _ => None,
        })
        .as_ref()
    }

    /// The offset in a module's file of code at `address` (p_vaddr).
    pub fn offset_of(&mut self, module: usize, address: u64) -> Option<u64> {
        self.layout(module)?.offset_of(address)
    }

    /// Name of a thread now.
    pub fn thread_name(&self, pid: u32, tid: u32) -> Option<&str> {
        self.names.get(&(pid, tid)).map(|name| &**name)
    }
}

fn user_module(mapping: &Mapping) -> Module {
    let kind = Kind::of_path(&mapping.path);
    Module {
        path: if mapping.path.is_empty() { "//anon".into() } else { mapping.path.clone() },
        kind,
        build_id: mapping.build_id.clone().filter(|_| kind.is_file_like()),
        pid: (kind == Kind::Anonymous).then_some(mapping.pid),
        reference: None,
    }
}

/// perf writes the kernel as `[kernel.kallsyms]_text`: a symbol, and in the offset its address.
fn kernel_module(mapping: &Mapping) -> Module {
    let build_id = mapping.build_id.clone();
    if Kind::of_path(&mapping.path) == Kind::Kernel {
        let symbol = mapping.path.strip_prefix(KERNEL_PATH).unwrap_or_default();
        let known = !symbol.is_empty() && mapping.offset != 0;
        let reference = known.then(|| (symbol.to_owned(), mapping.offset));
        let path = KERNEL_PATH.to_owned();
        return Module { path, kind: Kind::Kernel, build_id, pid: None, reference };
    }
    Module {
        path: mapping.path.clone(),
        kind: Kind::KernelModule,
        build_id,
        pid: None,
        reference: Some((String::new(), mapping.start)),
    }
}

#[cfg(test)]
#[path = "space/tests.rs"]
mod tests;
