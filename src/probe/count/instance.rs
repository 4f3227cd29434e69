//! One file in one process: where its counters and trampolines are, and what was patched.

use super::target::{Member, Opened, Target};
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
    jumps: Vec<Jump>,
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
        let free = vacant(stopped.process, &mappings);
        let extent = opened.module.extent();
        let extent = extent.start.wrapping_add(bias)..extent.end.wrapping_add(bias);
        let blocks: usize = target.functions.iter().map(Member::blocks).sum();
        let (cells, room) = (pages(blocks as u64 * COUNTER), pages(blocks as u64 * TRAMPOLINE));
        let base = near(&free, &extent, cells + room, REACH)
            .ok_or("no free addresses within 2 GiB of its code")?;
        let mut around = Room::new(without(&free, &(base..base + cells + room)), bias);
        let (mut plans, first) = plans(target, &memory, bias, &mut around);
        let code = Code { target, bias, base, trampolines: base + cells, first: &first };
        let written = code.written(&mut plans)?;
        let own = [base + cells..base + cells + pages(written.trampolines.len() as u64)];
        let far = ranges(around.pages());
        let file = map(stopped, &memory, base..base + cells, own.into_iter().chain(far))?;
        let failed = |e: std::io::Error| format!("its memory cannot be written: {e}");
        memory.write_all(base + cells, &written.trampolines).map_err(failed)?;
        for (at, bytes) in &written.far {
            memory.write_all(*at, bytes).map_err(failed)?;
        }
        let prefixes = written.prefixes;
        let instance =
            Self { target: number, plans, prefixes, jumps: written.jumps, counters: file, first };
        if is_locked {
            instance.lock(&memory);
        }
        instance.write(&memory).map(|()| instance)
    }

    /// Patches the code; takes that back if not every jump leads where it is to.
    fn write(&self, memory: &Memory) -> Result<(), String> {
        let mut before = Vec::new();
        let mut failed = None;
        for jump in &self.jumps {
            before.push((jump.at, memory.read(jump.at, jump.bytes.len())));
            failed = failed.or(memory.write_all(jump.at, &jump.bytes).err());
        }
        let leads = |jump: &Jump| {
            let distance = memory.read(jump.at + 1, 4).try_into().map(i32::from_le_bytes);
            distance.is_ok_and(|d| (jump.at + 5).wrapping_add_signed(d.into()) == jump.to)
        };
        let wrong = self.jumps.iter().any(|jump| !leads(jump));
        if failed.is_none() && !wrong {
            return Ok(());
        }
        for (at, bytes) in before.iter().rev() {
            let _ = memory.write_all(*at, bytes);
        }
        Err(match failed {
            Some(error) => format!("its code cannot be written: {error}"),
            None => "a jump does not lead to its trampoline".to_owned(),
        })
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
        self.jumps.iter().all(|jump| memory.read(jump.at, jump.bytes.len()) == jump.bytes)
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

/// What is written over the code.
struct Jump {
    at: u64,
    bytes: Vec<u8>,
    /// Where it leads.
    to: u64,
}

/// The plans of a target's functions, and the first counter of each.
fn plans(
    target: &Target,
    memory: &Memory,
    bias: u64,
    room: &mut Room,
) -> (Vec<Result<Planned, String>>, Vec<u64>) {
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
            Ok(plan(function, room))
        });
        plans.push(planned);
    }
    (plans, first)
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
    /// Those next to the counters.
    trampolines: Vec<u8>,
    /// Those of puns, with their addresses.
    far: Vec<(u64, Vec<u8>)>,
    prefixes: Vec<u64>,
    jumps: Vec<Jump>,
}

impl Code<'_> {
    /// The trampolines and jumps of all plans. What cannot be encoded is refused in its plan.
    fn written(&self, plans: &mut [Result<Planned, String>]) -> Result<Written, String> {
        let mut written = Written::default();
        for (index, planned) in plans.iter_mut().enumerate() {
            let (Ok(planned), Ok(function)) = (planned, &self.target.functions[index].facts) else {
                continue;
            };
            for number in 0..planned.placements.len() {
                let Placement::Placed(site) = &planned.placements[number] else { continue };
                let next = self.trampolines + written.trampolines.len() as u64;
                let far = site.trampoline.map(|at| self.bias.wrapping_add(at));
                let to = far.unwrap_or(next);
                match self.patch(function, site, self.first[index], to) {
                    Err(why) => planned.refuse(number, &why),
                    Ok(patch) => {
                        let prefixes = patch.prefixes.iter().map(|at| to + *at as u64);
                        written.prefixes.extend(prefixes);
                        let at = self.bias.wrapping_add(site.at);
                        written.jumps.push(Jump { at, bytes: patch.jump, to });
                        match far {
                            Some(_) => written.far.push((to, patch.trampoline)),
                            None => written.trampolines.extend(patch.trampoline),
                        }
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
        let counter = |block: usize| self.base + (first + block as u64) * COUNTER;
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

/// Maps counters at `cells` and trampolines at `code`. The counters are shared memory: children that
/// the process forks count in it, too, and it is read here after they have ended.
fn map(
    stopped: &Stopped,
    memory: &Memory,
    cells: Range<u64>,
    code: impl Iterator<Item = Range<u64>>,
) -> Result<File, String> {
    let refused = |e: Errno| format!("the process may not map memory: {}", e.desc());
    let place = |at: &Range<u64>, rights: i32, all: i32, file: u64| {
        let flags = (all | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
        let rights = rights.cast_unsigned();
        let arguments = [at.start, at.end - at.start, rights.into(), flags.into(), file, 0];
        let got = stopped.call(libc::SYS_mmap, arguments).map_err(refused)?;
        // Kernels before 4.17 take the address for a hint.
        if got == at.start { Ok(()) } else { Err("the addresses chosen are not free".to_owned()) }
    };
    let mut first = None;
    for range in code {
        // Never writable for the program.
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        place(&range, libc::PROT_READ | libc::PROT_EXEC, private, u64::MAX)?;
        first.get_or_insert(range.start);
    }
    let name = first.ok_or("no block of it can be counted")?;
    let failed = |e: std::io::Error| format!("its memory cannot be written: {e}");
    memory.write_all(name, NAME).map_err(failed)?;
    let close = u64::from(libc::MFD_CLOEXEC);
    let file = stopped.call(libc::SYS_memfd_create, [name, close, 0, 0, 0, 0]).map_err(refused)?;
    let opened = open(stopped, file, cells.end - cells.start);
    let shared = place(&cells, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file);
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

/// Whole free pages without `taken`.
fn without(free: &[Range<u64>], taken: &Range<u64>) -> Vec<Range<u64>> {
    let parts = free.iter().flat_map(|range| {
        [range.start..range.end.min(taken.start), range.start.max(taken.end)..range.end]
    });
    let whole = parts.map(|part| pages(part.start)..part.end & !(PAGE - 1));
    whole.filter(|part| part.start < part.end).collect()
}

/// Adjacent pages as ranges.
fn ranges(all: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut sorted: Vec<u64> = all.collect();
    sorted.sort_unstable();
    let mut found: Vec<Range<u64>> = Vec::new();
    for page in sorted {
        match found.last_mut() {
            Some(last) if last.end == page => last.end += PAGE,
            _ => found.push(page..page + PAGE),
        }
    }
    found
}
