//! Address spaces: which file is mapped at an address of a process at the time of a sample, and which code of
//! just-in-time compilers is there by their jitdumps.
//!
//! Records are applied in order of time; a sample is attributed by the mappings in force. A forked
//! process shares its parent's mappings until either maps something (copy on write), so ten
//! thousand forks cost ten thousand pointers.

mod data;
#[cfg(test)]
mod tests;

use crate::files::{SearchPaths, locate};
use crate::jitdump::{Load, is_dump};
use crate::module::{Module, ModuleKind, Modules};
use crate::ranges::RangeMap;
use crate::record::{Mapping, Record};
use crate::recording::About;
use isa::elf::Layout;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::vec::IntoIter;

pub use crate::module::ModuleAddress;

/// Owner of a data address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataPlace {
    /// Static data of a file (p_vaddr).
    Static(ModuleAddress),
    /// Another mapping, such as `[heap]`, `[stack]` or the kernel: number of its module.
    Mapping(usize),
}

/// One mapping; the range map holds the parts of it that later ones did not replace.
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
    /// The first code of its program, which stays where it is, even if other memory takes its place.
    program: Option<Region>,
    /// Its main thread has ended; samples may still come from the ring buffers of other CPUs.
    ended: bool,
}

/// The address spaces of all processes of a recording, updated record by record.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    /// Every module mapped so far.
    pub modules: Modules,
    search: SearchPaths,
    build_ids: HashMap<String, Vec<u8>>,
    /// Inode of the first file at each path without a build-id.
    inodes: HashMap<String, u64>,
    processes: HashMap<u32, Process>,
    kernel: RangeMap<Region>,
    /// The kernel's module, once mapped: kernel addresses outside of all mappings belong to it.
    kernel_module: Option<usize>,
    names: HashMap<(u32, u32), Arc<str>>,
    /// By module number: `None` not read yet, `Some(None)` unavailable.
    layouts: Vec<Option<Option<Layout>>>,
    /// Mappings copied for forked processes so far.
    copied: usize,
    /// Forked processes whose mappings were not copied.
    left_out: usize,
    /// Code of just-in-time compilers.
    compiled: Compiled,
    /// Programs whose code was moved to other memory.
    moved: BTreeSet<usize>,
}

/// Most mappings that are copied for forked processes, some 60 bytes each: 10,000 processes with 400 mappings.
/// Without a limit, those of a made recording grow with the square of its size.
const MOST_COPIED: usize = 1 << 22;

/// First address of the kernel's half on all 64-bit processors.
const KERNEL_HALF: u64 = 1 << 63;
/// Process of kernel mappings: -1.
const KERNEL_PID: u32 = u32::MAX;
/// perf's name for the kernel; in the path of a mapping the reference symbol follows it.
const KERNEL_PATH: &str = "[kernel.kallsyms]";

impl AddressSpaces {
    /// No processes yet. Program headers are read from files found by `search`; `build_ids` is the
    /// recording's list, for mappings without a build-id.
    pub fn new(search: SearchPaths, build_ids: &[(String, Vec<u8>)]) -> Self {
        let mut known: HashMap<String, Vec<u8>> = HashMap::new();
        let mut several: HashSet<&str> = HashSet::new();
        for (path, id) in build_ids {
            if known.insert(path.clone(), id.clone()).is_some_and(|other| other != *id) {
                several.insert(path);
            }
        }
        // Two files at one path, as with containers: only a mapping's own build-id identifies its file.
        known.retain(|path, _| !several.contains(path.as_str()));
        Self { search, build_ids: known, ..Self::default() }
    }

    /// Address spaces of a recording, before its first record.
    pub fn of(about: &About, search: SearchPaths) -> Self {
        let mut spaces = Self::new(search, &about.build_ids);
        spaces.compiled.is_monotonic = about.is_monotonic();
        spaces
    }

    /// Limits that a report must state.
    pub fn notes(&self) -> Vec<String> {
        let count = self.left_out;
        let lost = (count > 0).then(|| {
            format!("{count} processes have lost the mappings of their parents: there are too many")
        });
        let servers = self.search.servers.iter().flat_map(|servers| servers.notes());
        let moved = self.moved.iter().filter_map(|module| self.modules.all.get(*module)).map(|m| {
            format!(
                "code of {} runs from other memory, such as huge pages that it was moved to: its functions are those of \
                 the file at these addresses",
                tma::text::name(m.name())
            )
        });
        let compiled = self.compiled.notes.iter().cloned();
        lost.into_iter().chain(moved).chain(compiled).chain(servers).collect()
    }

    /// Applies a record; those that change no address space are ignored.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Map { mapping, .. } => self.map(mapping),
            Record::Name { pid, tid, name, exec, .. } => {
                if *exec {
                    self.processes.insert(*pid, Process::default());
                    self.compiled.forget(*pid);
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
        let mut module = if kernel { kernel_module(mapping) } else { user_module(mapping) };
        module.inode = self.other_inode(&module, mapping.inode);
        let module = self.number(module);
        let region = Region { start: mapping.start, offset: mapping.offset, module };
        let is_file = self.modules.all.get(module).is_some_and(|m| m.kind == ModuleKind::File);
        if kernel {
            if self.modules.all.get(module).is_some_and(|m| m.kind == ModuleKind::Kernel) {
                self.kernel_module = Some(module);
            }
            self.kernel.insert(mapping.start, end, region);
            return;
        }
        let process = self.processes.entry(mapping.pid).or_default();
        if process.ended && mapping.pid == mapping.tid {
            // The main thread has ended and maps again: another process with the same pid, whose
            // fork was lost.
            *process = Process::default();
            self.compiled.forget(mapping.pid);
        }
        if is_dump(&mapping.path) {
            self.map_dump(mapping.pid, &mapping.path);
            return;
        }
        if Arc::get_mut(&mut process.regions).is_none() {
            self.copied += process.regions.len();
            if self.copied > MOST_COPIED {
                self.left_out += 1;
                process.regions = Arc::default();
            }
        }
        if process.program.is_none() && is_file {
            process.program = Some(region.clone());
        }
        Arc::make_mut(&mut process.regions).insert(mapping.start, end, region);
    }

    /// The inode of a module's file, if another file of this path was mapped before and neither has a build-id.
    fn other_inode(&mut self, module: &Module, inode: Option<u64>) -> Option<u64> {
        let inode =
            inode.filter(|_| module.kind == ModuleKind::File && module.build_id.is_none())?;
        let first = *self.inodes.entry(module.path.clone()).or_insert(inode);
        (first != inode).then_some(inode)
    }

    /// The number of a module, given the build-id of the recording's list if it has none.
    fn number(&mut self, mut module: Module) -> usize {
        if module.build_id.is_none() && module.inode.is_none() {
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
        // perf synthesizes forks at time 0 for processes that are running already: they have
        // executed other programs since, and records of their own mappings follow.
        let inherited = match time {
            Some(0) => Process::default(),
            _ => self.processes.get(&parent.0).cloned().unwrap_or_default(),
        };
        self.compiled.forget(child.0);
        self.processes.insert(child.0, Process { ended: false, ..inherited });
    }

    /// The module and address of `ip` in process `pid` now; `user` is the CPU mode of the sample's
    /// header. `None` if no mapping is known there.
    pub fn resolve(&mut self, pid: u32, ip: u64, user: Option<bool>) -> Option<ModuleAddress> {
        let in_process = || self.processes.get(&pid).and_then(|p| p.regions.get(ip));
        let region = if user == Some(false) { None } else { in_process() };
        let region = region.cloned();
        if let Some(place) = self.compiled_at(pid, ip, user, region.as_ref()) {
            return Some(place);
        }
        if let Some(region) = region {
            let moved = self.moved_code(pid, &region, ip);
            return Some(moved.unwrap_or_else(|| self.address_in(&region, ip)));
        }
        if user == Some(true) || (user.is_none() && ip < KERNEL_HALF) {
            return None;
        }
        let module = match (self.kernel.get(ip), self.kernel_module) {
            (Some(region), _) => region.module,
            (None, Some(kernel)) => kernel,
            // Without privileges perf records no kernel mapping.
            (None, None) => self.number(Module {
                path: KERNEL_PATH.into(),
                kind: ModuleKind::Kernel,
                ..Module::default()
            }),
        };
        Some(ModuleAddress { module, address: ip })
    }

    fn address_in(&mut self, region: &Region, ip: u64) -> ModuleAddress {
        let module = region.module;
        if !self.modules.all.get(module).is_some_and(|m| m.kind.is_file_like()) {
            return ModuleAddress { module, address: ip };
        }
        let offset = (ip - region.start).wrapping_add(region.offset);
        let address = self.layout(module).and_then(|l| l.address_of(offset)).unwrap_or(offset);
        ModuleAddress { module, address }
    }

    /// The program headers of a module's file, read once.
    fn layout(&mut self, number: usize) -> Option<&Layout> {
        if self.layouts.len() <= number {
            self.layouts.resize_with(number + 1, || None);
        }
        let module = self.modules.all.get(number)?;
        let slot = self.layouts.get_mut(number)?;
        slot.get_or_insert_with(|| match module.kind {
            ModuleKind::File => locate(&self.search, module).ok().map(|found| found.layout),
            _ => None,
        })
        .as_ref()
    }

    /// The offset in a module's file of the code at `address` (p_vaddr).
    pub fn offset_of(&mut self, module: usize, address: u64) -> Option<u64> {
        self.layout(module)?.offset_of(address)
    }

    /// Current name of a thread.
    pub fn thread_name(&self, pid: u32, tid: u32) -> Option<&str> {
        self.names.get(&(pid, tid)).map(|name| &**name)
    }
}

fn user_module(mapping: &Mapping) -> Module {
    let kind = ModuleKind::of_path(&mapping.path);
    Module {
        path: if mapping.path.is_empty() { "//anon".into() } else { mapping.path.clone() },
        kind,
        build_id: mapping.build_id.clone().filter(|_| kind.is_file_like()),
        pid: (kind == ModuleKind::Anonymous).then_some(mapping.pid),
        ..Module::default()
    }
}

/// The kernel or a kernel module. perf names the kernel `[kernel.kallsyms]_text`, with a symbol whose
/// address is the offset of the mapping.
fn kernel_module(mapping: &Mapping) -> Module {
    let build_id = mapping.build_id.clone();
    if ModuleKind::of_path(&mapping.path) == ModuleKind::Kernel {
        let symbol = mapping.path.strip_prefix(KERNEL_PATH).unwrap_or_default();
        let known = !symbol.is_empty() && mapping.offset != 0;
        let reference = known.then(|| (symbol.to_owned(), mapping.offset));
        let path = KERNEL_PATH.to_owned();
        return Module { path, kind: ModuleKind::Kernel, build_id, reference, ..Module::default() };
    }
    Module {
        path: mapping.path.clone(),
        kind: ModuleKind::KernelModule,
        build_id,
        reference: Some((String::new(), mapping.start)),
        ..Module::default()
    }
}

/// The code of all processes.
#[derive(Debug, Default)]
struct Compiled {
    /// Whether the recording has the clock of the jitdumps. If not, the last code at an address holds.
    pub is_monotonic: bool,
    /// Jitdumps that cannot be read.
    pub notes: Vec<String>,
    processes: HashMap<u32, JitProcess>,
    /// When the next code is loaded, and of which process.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// Pieces read so far, and bytes of files.
    read: usize,
    bytes: u64,
}

/// Compiled code in memory.
#[derive(Debug, Clone)]
struct Piece {
    pub start: u64,
    /// Offset of the code in the jitdump.
    pub offset: u64,
    pub module: usize,
}

/// The code of a process.
#[derive(Debug)]
struct JitProcess {
    path: String,
    code: RangeMap<Piece>,
    module: usize,
    /// Loads still to come.
    later: IntoIter<Load>,
}

impl JitProcess {
    /// Loads what is there at a time.
    fn advance(&mut self, time: u64) {
        while let Some(load) = self.later.as_slice().first().copied().filter(|l| l.time <= time) {
            self.later.next();
            let region = Piece { start: load.start, offset: load.code, module: self.module };
            self.code.insert(load.start, load.start.saturating_add(load.size), region);
        }
    }

    fn next(&self) -> Option<u64> {
        self.later.as_slice().first().map(|load| load.time)
    }
}

impl Compiled {
    /// A process runs another program.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    fn is_later(&self, time: u64) -> bool {
        self.next.peek().is_none_or(|Reverse((next, _))| *next > time)
    }
}
