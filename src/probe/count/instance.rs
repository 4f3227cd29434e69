//! One file in one process: where its counters and trampolines are, and what was patched.

use super::mapped::{map, pages, permitted, ranges, without};
use super::target::{Member, Opened, Target};
use crate::emit::{Patch, emit};
use crate::facts::Function;
use crate::plan::{Placement, Planned, Room, Site, derive, plan};
use crate::process::{Memory, Stopped, near, vacant};
use std::fs::File;
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
        let own = base + cells..base + cells + pages(written.trampolines.len() as u64);
        let far = ranges(around.pages());
        let file = map(stopped, &memory, base..base + cells, std::iter::once(own).chain(far))?;
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
        let facts = target.functions.iter().filter_map(|member| member.facts.as_ref().ok());
        let moved =
            |range: &Range<u64>| range.start.wrapping_add(bias)..range.end.wrapping_add(bias);
        let mut ranges: Vec<Range<u64>> = facts.map(|f| moved(&f.range)).collect();
        ranges.sort_by_key(|range| range.start);
        instance.write(&memory, &ranges).map(|()| instance)
    }

    /// Patches the code; takes that back if not every jump leads where it is to.
    fn write(&self, memory: &Memory, ranges: &[Range<u64>]) -> Result<(), String> {
        let length = |range: &Range<u64>| (range.end - range.start) as usize;
        let read = |range: &Range<u64>| (range.start, memory.read(range.start, length(range)));
        let before: Vec<(u64, Vec<u8>)> = ranges.iter().map(read).collect();
        let mut after = before.clone();
        for jump in &self.jumps {
            let index = after.partition_point(|(start, _)| *start <= jump.at).wrapping_sub(1);
            let part = after.get_mut(index).and_then(|(start, bytes)| {
                let at = (jump.at - *start) as usize;
                bytes.get_mut(at..at + jump.bytes.len())
            });
            part.ok_or("its code cannot be read")?.copy_from_slice(&jump.bytes);
        }
        let mut failed = None;
        for (start, bytes) in &after {
            failed = failed.or(memory.write_all(*start, bytes).err());
        }
        if failed.is_none() && self.leads(&ranges.iter().map(read).collect::<Vec<_>>()) {
            return Ok(());
        }
        for (start, bytes) in &before {
            let _ = memory.write_all(*start, bytes);
        }
        Err(match failed {
            Some(error) => format!("its code cannot be written: {error}"),
            None => "a jump does not lead to its trampoline".to_owned(),
        })
    }

    /// Whether every jump in this code leads to its trampoline.
    fn leads(&self, code: &[(u64, Vec<u8>)]) -> bool {
        self.jumps.iter().all(|jump| {
            let index = code.partition_point(|(start, _)| *start <= jump.at).wrapping_sub(1);
            let Some((start, bytes)) = code.get(index) else { return false };
            let at = (jump.at - start) as usize + 1;
            let distance = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
            let to = distance
                .map(|word| (jump.at + 5).wrapping_add_signed(i32::from_le_bytes(word).into()));
            to == Some(jump.to)
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
            Ok(plan(function, room, member.samples.as_deref()))
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
            let mut any = false;
            for number in 0..planned.placements.len() {
                let Placement::Placed(site) = &planned.placements[number] else { continue };
                let next = self.trampolines + written.trampolines.len() as u64;
                let far = site.trampoline.map(|at| self.bias.wrapping_add(at));
                let to = far.unwrap_or(next);
                match self.patch(function, site, self.first[index], to) {
                    Err(why) => {
                        planned.refuse(number, &why);
                        any = true;
                    }
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
            if any {
                derive(function, &mut planned.placements);
            }
        }
        match written.jumps.is_empty() {
            true => Err("no block of it can be counted".to_owned()),
            false => Ok(written),
        }
    }

    fn patch(
        &self,
        function: &Function,
        site: &Site,
        first: u64,
        at: u64,
    ) -> Result<Patch, String> {
        let inside = |address: u64| (address - function.range.start) as usize;
        let code = &function.bytes[inside(site.at)..inside(site.next)];
        let counter = |block: usize| self.base + (first + block as u64) * COUNTER;
        emit(site, code, self.bias, counter, at)
    }
}
