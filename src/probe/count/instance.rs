//! One file in one process: where its counters and trampolines are, and what was patched.

use super::target::{Opened, Target};
use crate::emit::{Patch, emit};
use crate::facts::Function;
use crate::plan::{PAGE, Placement, Planned, Room, Site, derive, plan};
use crate::process::{Memory, Stopped, near, vacant};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Distances of 32 bits, less what trampolines and counters take.
const REACH: u64 = (1 << 31) - (1 << 24);
/// The prefix with which `inc` is atomic.
pub(super) const LOCK: u8 = 0xf0;
/// Bytes of a counter.
const COUNTER: u64 = 8;
/// Bytes that a trampoline may have.
const TRAMPOLINE: u64 = 96;
/// The name of the counters' memory, as /proc/PID/maps shows it.
const NAME: &[u8] = b"tdtool-counts\0";

/// A file that was patched in a process.
pub(super) struct Instance {
    /// Index of its target.
    pub target: usize,
    /// By function of the target; none where it was not patched.
    pub plans: Vec<Result<Planned, String>>,
    /// Addresses of the prefixes of all counts.
    prefixes: Vec<u64>,
    /// What was written over the code.
    jumps: Vec<(u64, Vec<u8>)>,
    counters: File,
    /// By function: its first counter.
    first: Vec<u64>,
}

impl Instance {
    /// Patches a file in a stopped process, in which `anchor` of it is mapped at `address`.
    ///
    /// # Errors
    /// The reason why it is left as it was.
    pub fn patch(
        stopped: &Stopped,
        (number, target): (usize, &Target),
        opened: &Opened,
        address: u64,
        is_locked: bool,
    ) -> Result<Self, String> {
        let bias = address.wrapping_sub(opened.anchor.0);
        let memory = stopped.memory().map_err(|e| format!("its memory cannot be read: {e}"))?;
        permitted(stopped)?;
        let mappings = stopped.mappings();
        let free = vacant(&mappings);
        let extent = opened.module.extent();
        let extent = extent.start.wrapping_add(bias)..extent.end.wrapping_add(bias);
        let (mut plans, first, counters) = plans(target, &memory, bias);
        let sites: u64 = plans.iter().flatten().map(|p| p.sites().count() as u64).sum();
        if sites == 0 {
            return Err("no block of it can be counted".to_owned());
        }
        let cells = pages(counters * COUNTER);
        let room = pages(sites * TRAMPOLINE);
        let base = near(&free, &extent, cells + room, REACH)
            .ok_or("no free addresses within 2 GiB of its code")?;
        let code = Code { target, bias, base, trampolines: base + cells, first: &first };
        let written = code.written(&mut plans)?;
        let file = map(stopped, &memory, base, cells, written.trampolines.len() as u64)?;
        let failed = |e: std::io::Error| format!("its memory cannot be written: {e}");
        memory.write_all(base + cells, &written.trampolines).map_err(failed)?;
        let instance = Self {
            target: number,
            plans,
            prefixes: written.prefixes,
            jumps: written.jumps,
            counters: file,
            first,
        };
        if is_locked {
            instance.lock(&memory);
        }
        for (at, bytes) in &instance.jumps {
            memory.write_all(*at, bytes).map_err(failed)?;
        }
        Ok(instance)
    }

    /// Makes all counts atomic: another thread, or a process with the same counters, is to run.
    pub fn lock(&self, memory: &Memory) {
        for prefix in &self.prefixes {
            // The process may have been killed.
            let _ = memory.write(*prefix, LOCK);
        }
    }

    /// Whether the code is still as it was patched.
    pub fn is_intact(&self, memory: &Memory) -> bool {
        self.jumps.iter().all(|(at, bytes)| memory.read(*at, bytes.len()) == *bytes)
    }

    /// The counters of a function of the target.
    pub fn counts(&self, function: usize, blocks: usize) -> std::io::Result<Vec<u64>> {
        let mut bytes = vec![0; blocks * COUNTER as usize];
        self.counters.read_exact_at(&mut bytes, self.first[function] * COUNTER)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// How many probes it has.
    pub fn probes(&self) -> usize {
        self.jumps.len()
    }
}

/// The plans of a target's functions, the first counter of each, and how many counters there are.
fn plans(
    target: &Target,
    memory: &Memory,
    bias: u64,
) -> (Vec<Result<Planned, String>>, Vec<u64>, u64) {
    let mut room = Room::default();
    let (mut first, mut counters) = (Vec::new(), 0);
    let mut plans = Vec::new();
    for member in &target.functions {
        first.push(counters);
        let planned = member.facts.as_ref().map_err(Clone::clone).and_then(|function| {
            let start = bias.wrapping_add(function.range.start);
            if memory.read(start, function.bytes.len()) != function.bytes {
                return Err("its code in memory differs from the file's".to_owned());
            }
            counters += function.blocks.len() as u64;
            Ok(plan(function, &mut room))
        });
        plans.push(planned);
    }
    (plans, first, counters)
}

/// Where the code of a process and its counters are.
struct Code<'a> {
    target: &'a Target,
    bias: u64,
    base: u64,
    trampolines: u64,
    first: &'a [u64],
}

/// All that is to be written.
#[derive(Default)]
struct Written {
    trampolines: Vec<u8>,
    prefixes: Vec<u64>,
    jumps: Vec<(u64, Vec<u8>)>,
}

impl Code<'_> {
    /// The trampolines and jumps of all plans. What cannot be encoded is refused in its plan.
    fn written(&self, plans: &mut [Result<Planned, String>]) -> Result<Written, String> {
        let mut written = Written::default();
        for (index, planned) in plans.iter_mut().enumerate() {
            let (Ok(planned), Ok(function)) = (planned, &self.target.functions[index].facts) else {
                continue;
            };
            for placement in &mut planned.placements {
                let Placement::Placed(site) = placement else { continue };
                let at = self.trampolines + written.trampolines.len() as u64;
                match self.patch(function, site, self.first[index], at) {
                    Err(why) => *placement = Placement::Refused(why),
                    Ok(patch) => {
                        written.prefixes.push(at + patch.prefix as u64);
                        written.trampolines.extend(patch.trampoline);
                        written.jumps.push((self.bias.wrapping_add(site.at), patch.jump));
                    }
                }
            }
            derive(function, &mut planned.placements);
        }
        match written.jumps.is_empty() {
            true => Err("no block of it can be counted".to_owned()),
            false => Ok(written),
        }
    }

    fn patch(&self, function: &Function, site: &Site, first: u64, at: u64) -> Result<Patch, String> {
        let inside = |address: u64| (address - function.range.start) as usize;
        let code = &function.bytes[inside(site.at)..inside(site.next)];
        let counter = self.base + (first + site.block as u64) * COUNTER;
        emit(site, code, self.bias, counter, at)
    }
}

fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}

/// Refuses a process whose system calls are filtered: ours could end it.
fn permitted(stopped: &Stopped) -> Result<(), String> {
    let path = format!("/proc/{}/status", stopped.process);
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    match mode.is_some_and(|mode| mode.trim() != "0") {
        true => Err("its system calls are filtered (seccomp)".to_owned()),
        false => Ok(()),
    }
}

/// Maps counters at `base` and trampolines after them. The counters are shared memory: children that
/// the process forks count in it, too, and it is read here after they have ended.
fn map(
    stopped: &Stopped,
    memory: &Memory,
    base: u64,
    cells: u64,
    code: u64,
) -> Result<File, String> {
    let refused = |e: Errno| format!("the process may not map memory: {}", e.desc());
    let anywhere = u64::MAX;
    let flags = |all: i32| u64::from((all | libc::MAP_FIXED_NOREPLACE).cast_unsigned());
    let rights = |all: i32| u64::from(all.cast_unsigned());
    let place = |at: u64, length: u64, protection: i32, all: i32, file: u64| {
        let arguments = [at, length, rights(protection), flags(all), file, 0];
        let got = stopped.call(libc::SYS_mmap, arguments).map_err(refused)?;
        // Kernels before 4.17 take the address for a hint.
        if got == at { Ok(()) } else { Err("the addresses chosen are not free".to_owned()) }
    };
    // Never writable for the program.
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    place(base + cells, pages(code), libc::PROT_READ | libc::PROT_EXEC, private, anywhere)?;
    let failed = |e: std::io::Error| format!("its memory cannot be written: {e}");
    memory.write_all(base + cells, NAME).map_err(failed)?;
    let close = u64::from(libc::MFD_CLOEXEC);
    let file = stopped.call(libc::SYS_memfd_create, [base + cells, close, 0, 0, 0, 0]);
    let file = file.map_err(refused)?;
    let opened = open(stopped, file, cells);
    let shared = place(base, cells, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file);
    stopped.call(libc::SYS_close, [file, 0, 0, 0, 0, 0]).map_err(refused)?;
    shared.and(opened)
}

/// The same file in this process, with its length.
fn open(stopped: &Stopped, file: u64, length: u64) -> Result<File, String> {
    let failed = |e: std::io::Error| format!("its counters cannot be opened: {e}");
    let path = format!("/proc/{}/fd/{file}", stopped.process);
    let opened = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    opened.set_len(length).map_err(failed)?;
    Ok(opened)
}

/// Free addresses as p_vaddr of a module that is mapped at `bias`.
#[allow(dead_code)]
fn relative(free: &[Range<u64>], bias: u64) -> Vec<Range<u64>> {
    free.iter().map(|r| r.start.wrapping_sub(bias)..r.end.wrapping_sub(bias)).collect()
}
