//! One file in one process: where its shared memory and trampolines are, and what was patched.

use super::mapped::{Shared, map, pages, permitted, ranges, without};
use super::probes::Probes;
use super::target::{Member, Opened, Target};
use super::written::{Code, Jump, Written};
use crate::plan::Room;
use crate::process::{Memory, Stopped, near, vacant};
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
    jumps: Vec<Jump>,
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
        stopped: &Stopped,
        (number, target): (usize, &Target),
        opened: &Opened,
        address: u64,
        (is_locked, common): (bool, Option<&Shared>),
    ) -> Result<Self, String> {
        let bias = address.wrapping_sub(opened.anchor.0);
        let memory = stopped.memory().map_err(|e| format!("its memory cannot be read: {e}"))?;
        permitted(stopped)?;
        let mappings = stopped.mappings();
        let free = vacant(stopped.process, &mappings);
        let extent = opened.module.extent();
        let extent = extent.start.wrapping_add(bias)..extent.end.wrapping_add(bias);
        let (cells, room) = probes.needs((number, target));
        let (cells, room) = (pages(cells), pages(room));
        let base = near(&free, &extent, cells + room, REACH)
            .ok_or("no free addresses within 2 GiB of its code")?;
        let mut around = Room::new(without(&free, &(base..base + cells + room)), bias);
        let mut plans = plans(probes, (number, target), &memory, bias, &mut around);
        let code = Code { bias, shared: base, trampolines: base + cells };
        let mut written = Written::default();
        for (index, plan) in plans.iter_mut().enumerate() {
            if let (Ok(plan), Ok(function)) = (plan, &target.functions[index].facts) {
                probes.write(&code, (number, target, index), function, plan, &mut written);
            }
        }
        if written.jumps.is_empty() {
            return Err("no probe fits into it".to_owned());
        }
        let own = base + cells..base + cells + pages(written.trampolines.len() as u64);
        let far = ranges(around.pages());
        let all = std::iter::once(own).chain(far);
        let shared = Rc::new(map(stopped, &memory, base..base + cells, common, all)?);
        let failed = |e: std::io::Error| format!("its memory cannot be written: {e}");
        memory.write_all(base + cells, &written.trampolines).map_err(failed)?;
        for (at, bytes) in &written.far {
            memory.write_all(*at, bytes).map_err(failed)?;
        }
        let Written { prefixes, jumps, .. } = written;
        let instance = Self { target: number, plans, shared, prefixes, jumps };
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

    /// How many probes it has.
    pub fn probes(&self) -> usize {
        self.jumps.len()
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
        Ok(probes.plan((number, index), function, room))
    };
    target.functions.iter().enumerate().map(plan).collect()
}
