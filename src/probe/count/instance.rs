//! One file in one process: where its counters and trampolines are, and what was patched.

use super::mapped::{Mapped, pages, permitted, ranges, without};
use super::patched::{Jump, Patched};
use super::tally::Tally;
use super::target::{Member, Opened, Target};
use crate::emit::{Patch, emit};
use crate::facts::Function;
use crate::plan::{Kind, LONGEST, PAGE, Placement, Planned, Room, Site, derive, plan, plan_live};
use crate::process::{Memory, Tracee, near};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Distances of 32 bits, less what trampolines and counters take.
const REACH: u64 = (1 << 31) - (1 << 24);
/// The prefix with which `inc` is atomic.
pub(super) const LOCK: u8 = 0xf0;
/// Bytes of a counter.
const COUNTER: u64 = 8;
/// A file that was patched in a process.
pub(super) struct Instance {
    /// Index of its target.
    pub target: usize,
    /// By function of the target; none where it was not patched.
    plans: Vec<Result<Planned, String>>,
    /// Addresses of the prefixes of all counts.
    prefixes: Vec<u64>,
    pub code: Patched,
    /// What the parts of trampolines stand for, until they are asked for.
    pub origins: Vec<(Range<u64>, u64)>,
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
        (tracee, memory): (&Tracee, &Memory),
        (number, target): (usize, &Target),
        opened: &Opened,
        address: u64,
        is_locked: bool,
    ) -> Result<Self, String> {
        let bias = address.wrapping_sub(opened.anchor.0);
        let mappings = tracee.mappings();
        let free = tracee.vacant(&mappings);
        let extent = opened.module.extent();
        let extent = extent.start.wrapping_add(bias)..extent.end.wrapping_add(bias);
        let blocks: usize = target.functions.iter().map(Member::blocks).sum();
        let (cells, room) = (pages(blocks as u64 * COUNTER), pages(blocks as u64 * LONGEST));
        let base = near(&free, &extent, cells + room, REACH)
            .ok_or("no free addresses within 2 GiB of its code")?;
        let others = without(&free, &(base..base + cells + room));
        let mut around = Room::new(others.clone(), bias);
        let plan = if tracee.is_live { plan_live } else { plan };
        let (mut plans, first) = plans(target, (memory, bias), |of| plan(of, &mut around));
        let code = Code { target, bias, base, trampolines: base + cells, first: &first };
        let written = code.written(&mut plans)?;
        let own = base + cells..base + cells + pages(written.trampolines.len() as u64);
        let far = ranges(around.pages(), &others);
        permitted(tracee, mappings.len(), far.len() + 2)?;
        let facts = target.functions.iter().filter_map(|member| member.facts.as_ref().ok());
        let moved =
            |range: &Range<u64>| range.start.wrapping_add(bias)..range.end.wrapping_add(bias);
        let ranges = facts.map(|f| moved(&f.range)).collect();
        let patched = Patched::new(memory, ranges, written.jumps)?;
        let all = std::iter::once(own).chain(far);
        let mapped = Mapped::new(tracee, memory, base..base + cells, all)?;
        let mut prefixes = written.prefixes;
        prefixes.sort_unstable();
        let fill = || {
            let failed = |e: std::io::Error| format!("its memory cannot be written: {e}");
            memory.write_all(base + cells, &written.trampolines).map_err(failed)?;
            for (at, bytes) in &written.far {
                memory.write_all(*at, bytes).map_err(failed)?;
            }
            if is_locked {
                lock(memory, &prefixes).map_err(failed)?;
            }
            patched.write(memory)
        };
        if let Err(why) = fill() {
            mapped.unmap(tracee, memory);
            return Err(why);
        }
        let (counters, origins) = (mapped.counters, written.origins);
        Ok(Self { target: number, plans, prefixes, code: patched, origins, counters, first })
    }

    /// Makes all counts atomic: another thread, or a process with the same counters, is to run.
    ///
    /// # Errors
    /// Some are not.
    pub fn lock(&self, memory: &Memory) -> Result<(), String> {
        lock(memory, &self.prefixes).map_err(|e| format!("its counts cannot be made atomic: {e}"))
    }

    /// What it has counted, without what is needed only while it runs.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub fn close(self) -> Result<Tally, String> {
        let unreadable = |e: std::io::Error| format!("its counters cannot be read: {e}");
        let mut bytes = Vec::new();
        let length = self.counters.metadata().map_err(unreadable)?.len();
        bytes.resize(usize::try_from(length).unwrap_or(0), 0);
        self.counters.read_exact_at(&mut bytes, 0).map_err(unreadable)?;
        let counters = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok(Tally::new(self.target, self.plans, (counters, self.first), self.code.jumps().len()))
    }
}

/// Writes the prefixes of all counts, page by page.
fn lock(memory: &Memory, prefixes: &[u64]) -> std::io::Result<()> {
    for run in prefixes.chunk_by(|one, next| one / PAGE == next / PAGE) {
        let (start, end) = (run[0], run[run.len() - 1] + 1);
        let mut bytes = memory.read(start, (end - start) as usize);
        if bytes.is_empty() {
            // The process may have ended; else the error of this.
            memory.write_alive(start, &[LOCK])?;
            continue;
        }
        for prefix in run {
            if let Some(byte) = bytes.get_mut((prefix - start) as usize) {
                *byte = LOCK;
            }
        }
        memory.write_alive(start, &bytes)?;
    }
    Ok(())
}

/// The plans of a target's functions, and the first counter of each.
fn plans(
    target: &Target,
    (memory, bias): (&Memory, u64),
    mut plan: impl FnMut(&Function) -> Planned,
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
            Ok(plan(function))
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

/// What the parts of a trampoline at `to` stand for: each count for what follows it.
fn origins(function: &Function, site: &Site, patch: &Patch, to: u64) -> Vec<(Range<u64>, u64)> {
    let end = to + patch.trampoline.len() as u64;
    let starts = patch.prefixes.iter().skip(1).map(|at| to + *at as u64);
    let starts: Vec<u64> = std::iter::once(to).chain(starts).chain([end]).collect();
    let block = &function.blocks[site.block];
    let call = block.instructions.iter().find(|i| i.ip() == site.at);
    let first = match (site.kind, call) {
        (Kind::Retarget, Some(call)) => call.near_branch_target(),
        _ => site.at,
    };
    let all = std::iter::once(first).chain(site.then.iter().map(|then| then.at));
    starts.windows(2).map(|two| two[0]..two[1]).zip(all).collect()
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
    /// What the parts of trampolines stand for.
    origins: Vec<(Range<u64>, u64)>,
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
                        written.origins.extend(origins(function, site, &patch, to));
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
        let patch = emit(site, code, self.bias, counter, at)?;
        // What follows it may be another one.
        match patch.trampoline.len() as u64 > LONGEST * (1 + site.then.len() as u64) {
            true => Err("its trampoline would be too long".to_owned()),
            false => Ok(patch),
        }
    }
}
