//! One file in one process: where its shared memory and trampolines are, and what was patched.

use super::mapped::{Mapped, Shared, pages, permitted, ranges, without};
use super::patched::Patched;
use super::probes::Probes;
use super::target::{Member, Opened, Target};
use super::written::{Code, Written};
use crate::plan::{PAGE, Room};
use crate::process::{Memory, Tracee, near};
use std::ops::Range;
use std::rc::Rc;

/// Distances of 32 bits, less what shared memory and trampolines take.
const REACH: u64 = (1 << 31) - (1 << 24);
/// The prefix with which `inc` is atomic.
const LOCK: u8 = 0xf0;

/// A file that was patched in a process.
pub struct Instance<P: Probes> {
    /// Index of its target.
    pub target: usize,
    /// By function of the target; none where it was not patched.
    pub plans: Vec<Result<P::Plan, String>>,
    /// What its trampolines write.
    pub shared: Rc<Shared>,
    /// Addresses of the prefixes of all counts.
    prefixes: Vec<u64>,
    /// Its code.
    pub code: Patched,
    /// What the parts of trampolines stand for, until they are asked for.
    pub origins: Vec<(Range<u64>, u64)>,
}

impl<P: Probes> Instance<P> {
    /// Patches a file in a stopped process, in which `anchor` of it is mapped at `address`. Counts
    /// are atomic if `is_locked`. `common` is the memory of another file in the process, if this one is
    /// to share it.
    ///
    /// # Errors
    /// The reason why it is left as it was.
    pub fn patch(
        probes: &P,
        (tracee, memory): (&Tracee, &Memory),
        (number, target): (usize, &Target),
        (opened, address): (&Opened, u64),
        (is_locked, common): (bool, Option<&Shared>),
    ) -> Result<Self, String> {
        let bias = address.wrapping_sub(opened.anchor.0);
        let mappings = tracee.mappings();
        let free = tracee.vacant(&mappings);
        let extent = opened.module.extent();
        let extent = extent.start.wrapping_add(bias)..extent.end.wrapping_add(bias);
        let (cells, room) = probes.needs((number, target));
        let (cells, room) = (pages(cells), pages(room));
        let base = near(&free, &extent, cells + room, REACH)
            .ok_or("no free addresses within 2 GiB of its code")?;
        let others = without(&free, &(base..base + cells + room));
        let reached = (base + cells).saturating_sub(REACH)..base.saturating_add(REACH);
        let mut around = Room::new(inside(&others, &reached), bias);
        let mut plans = plans(probes, (number, target), memory, bias, &mut around);
        let code = Code { bias, shared: base, trampolines: base + cells };
        let written = written(probes, &code, (number, target), &mut plans)?;
        let own = base + cells..base + cells + pages(written.trampolines.len() as u64);
        if own.end > base + cells + room {
            return Err("its trampolines would be too long".to_owned());
        }
        let far = ranges(around.pages(), &others);
        permitted(tracee, mappings.len(), far.len() + 2)?;
        let facts = target.functions.iter().filter_map(|member| member.facts.as_ref().ok());
        let moved =
            |range: &Range<u64>| range.start.wrapping_add(bias)..range.end.wrapping_add(bias);
        let ranges = facts.map(|f| moved(&f.range)).collect();
        let patched = Patched::new(memory, ranges, written.jumps)?;
        let all = std::iter::once(own).chain(far);
        let mapped = Mapped::new(tracee, memory, (base..base + cells, common), all)?;
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
        let (shared, origins) = (Rc::new(mapped.shared), written.origins);
        Ok(Self { target: number, plans, shared, prefixes, code: patched, origins })
    }

    /// Makes all counts atomic: another thread, or a process with the same counters, is to run.
    ///
    /// # Errors
    /// Some are not.
    pub fn lock(&self, memory: &Memory) -> Result<(), String> {
        lock(memory, &self.prefixes).map_err(|e| format!("its counts cannot be made atomic: {e}"))
    }

    /// How many probes it has.
    pub fn probes(&self) -> usize {
        self.code.jumps().len()
    }
}

/// The parts of ranges from which everything in between can be reached.
fn inside(ranges: &[Range<u64>], reached: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let part = |range: &Range<u64>| range.start.max(reached.start)..range.end.min(reached.end);
    ranges.iter().map(part).filter(|part| part.start < part.end)
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

/// The trampolines and jumps of all plans. What cannot be encoded is refused in its plan.
fn written<P: Probes>(
    probes: &P,
    code: &Code,
    (number, target): (usize, &Target),
    plans: &mut [Result<P::Plan, String>],
) -> Result<Written, String> {
    let mut written = Written::default();
    for (index, plan) in plans.iter_mut().enumerate() {
        if let (Ok(plan), Ok(function)) = (plan, &target.functions[index].facts) {
            probes.write(code, (number, target, index), function, plan, &mut written);
        }
    }
    match written.jumps.is_empty() {
        true => Err("no probe fits into it".to_owned()),
        false => Ok(written),
    }
}

/// The plans of a target's functions.
fn plans<P: Probes>(
    probes: &P,
    (number, target): (usize, &Target),
    memory: &Memory,
    bias: u64,
    room: &mut Room,
) -> Vec<Result<P::Plan, String>> {
    let plan = |(index, member): (usize, &Member)| {
        let function = member.facts.as_ref().map_err(Clone::clone)?;
        let start = bias.wrapping_add(function.range.start);
        if memory.read(start, function.bytes.len()) != function.bytes {
            return Err("its code in memory differs from the file's".to_owned());
        }
        Ok(probes.plan((number, target, index), function, room))
    };
    target.functions.iter().enumerate().map(plan).collect()
}
