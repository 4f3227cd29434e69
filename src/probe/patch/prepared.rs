//! Probes for one file of one process, prepared from the file and the mappings without stopping the
//! process.

use super::instance::Instance;
use super::leftovers::{Leftovers, leftovers};
use super::mapped::{Mapped, Shared, pages, permitted, ranges, without};
use super::patched::Patched;
use super::probes::{Code, Probed, Probes, Written};
use super::target::{MappedTarget, Target, Work};
use super::tasks::{LOCKED, Prefixes};
use super::unprobed::Unprobed;
use crate::facts::Function;
use crate::plan::Room;
use crate::process::{Mapping, Memory, Tracee, mappings, near, vacant, vacant_yet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Reach of 32-bit distances, less room for shared memory and trampolines.
const REACH: u64 = (1 << 31) - (1 << 24);

/// Probes for a file that is mapped in a process.
pub struct Prepared<P: Probes> {
    target: usize,
    /// Address of its anchor.
    address: u64,
    /// Added to a p_vaddr.
    bias: u64,
    plans: Vec<Result<P::Plan, Unprobed>>,
    /// Trampolines, by address.
    pieces: Vec<(u64, Vec<u8>)>,
    /// Addresses of the prefixes of all counts, ascending.
    prefixes: Vec<u64>,
    /// Address of the number of the process.
    process: Option<u64>,
    origins: Vec<(Range<u64>, u64)>,
    code: Patched,
    /// Probes of an earlier run.
    leftovers: Leftovers,
    cells: Range<u64>,
    /// Ranges of trampolines: next to the cells, if any, then those of puns.
    trampolines: Vec<Range<u64>>,
    /// Memory mapped before the code is patched.
    mapped: Option<Mapped>,
    /// Pieces already written there.
    filled: usize,
}

impl<P: Probes> Prepared<P> {
    /// Plans and encodes the probes of a file that is mapped in the process of thread `tid`.
    /// `taken` are addresses for other files.
    pub fn new(
        probes: &P,
        tid: i32,
        memory: &Memory,
        file: MappedTarget<'_>,
        taken: &[Range<u64>],
        work: &Work,
    ) -> Result<Self, Unprobed> {
        let MappedTarget { number, target, opened, address } = file;
        let bias = address.wrapping_sub(opened.anchor.0);
        let mappings = mappings(tid);
        let except = |free: Vec<Range<u64>>, all: &[Range<u64>]| {
            all.iter().fold(free, |free, range| without(&free, range))
        };
        let free = except(vacant(tid, &mappings), taken);
        let extent = opened.module.extent();
        let extent = extent.start.wrapping_add(bias)..extent.end.wrapping_add(bias);
        let (cells, room) = probes.needs(number, target);
        let (cells, room) = (pages(cells), pages(room));
        let base = near(&free, &extent, cells + room, REACH).ok_or(Unprobed::NoAddresses)?;
        let others = without(&free, &(base..base + cells + room));
        let leftovers = leftovers(memory, &mappings, &opened.module, bias);
        let reached = (base + cells).saturating_sub(REACH)..base.saturating_add(REACH);
        let own = base..base + cells + room;
        let spare = without(&except(vacant_yet(tid, &mappings), taken), &own);
        let mut around =
            Room::new(inside(&others, &reached), bias).sparing(inside(&spare, &reached));
        let now = Now { memory, bias, leftovers: &leftovers, work };
        let mut plans = plans(probes, number, target, &now, &mut around);
        let code = Code { bias, shared: base, trampolines: base + cells };
        let mut written = written(probes, &code, number, target, &mut plans)?;
        let own = base + cells..base + cells + pages(written.trampolines.len() as u64);
        if own.end > base + cells + room {
            return Err(Unprobed::TooLong);
        }
        // All trampolines may be those of puns.
        let own = Some(own).filter(|own| !own.is_empty());
        let far = ranges(around.pages(), &others);
        let trampolines: Vec<Range<u64>> = own.into_iter().chain(far).collect();
        permitted(tid, mappings.len(), trampolines.len() + 1)?;
        let original = |(member, plan): (&super::target::Member, &Result<P::Plan, Unprobed>)| {
            let facts = member.facts.as_ref().ok().filter(|_| plan.is_ok())?;
            Some((facts.range.start.wrapping_add(bias), facts.bytes.clone()))
        };
        let before = target.functions.iter().zip(&plans).filter_map(original).collect();
        let pieces = written.pieces(&code);
        let code = Patched::new(before, written.jumps)?;
        let (mut prefixes, mut origins) = (written.prefixes, written.origins);
        let process = written.process;
        prefixes.sort_unstable();
        // Sorted here, not while the process is stopped.
        origins.sort_by_key(|(range, _)| range.start);
        let cells = base..base + cells;
        Ok(Self {
            target: number,
            address,
            bias,
            plans,
            pieces,
            prefixes,
            process,
            origins,
            code,
            leftovers,
            cells,
            trampolines,
            mapped: None,
            filled: 0,
        })
    }

    /// Number of pages with trampolines to write.
    pub fn pages(&self) -> usize {
        self.pieces.len()
    }

    /// Maps its memory in a stopped process, which may run before its code is patched.
    pub fn map(
        &mut self,
        tracee: &Tracee,
        memory: &Memory,
        common: Option<&Shared>,
    ) -> Result<(), Unprobed> {
        permitted(tracee.tid, 0, 0)?;
        let trampolines = self.trampolines.iter().cloned();
        self.mapped = Some(Mapped::new(tracee, memory, self.cells.clone(), common, trampolines)?);
        Ok(())
    }

    /// Writes trampolines to the mapped memory, which is not reachable yet, until `end`; whether
    /// all are written.
    pub fn fill(&mut self, memory: &Memory, end: Option<Instant>) -> Result<bool, Unprobed> {
        while let Some((at, bytes)) = self.pieces.get(self.filled) {
            memory.write_all(*at, bytes).map_err(unwritten)?;
            self.filled += 1;
            if end.is_some_and(|end| Instant::now() > end) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes back the mapped memory, unused.
    pub fn unused(&mut self) -> Option<Mapped> {
        self.filled = 0;
        self.mapped.take()
    }

    /// Changes the prefixes of all counts.
    fn change(&mut self, to: Prefixes) {
        let mut prefixes = self.prefixes.iter().peekable();
        for (start, bytes) in &mut self.pieces {
            let end = *start + bytes.len() as u64;
            // A pair of prefixes may span two pieces.
            while let Some(prefix) = prefixes.peek().map(|prefix| **prefix).filter(|at| *at < end) {
                for (at, to) in (prefix..).zip(to) {
                    let at = at.checked_sub(*start).map(|at| at as usize);
                    if let Some(byte) = at.and_then(|at| bytes.get_mut(at)) {
                        *byte = to;
                    }
                }
                if prefix + to.len() as u64 > end {
                    break;
                }
                prefixes.next();
            }
        }
    }

    /// All ranges that it maps.
    pub fn taken(&self) -> impl Iterator<Item = &Range<u64>> {
        self.trampolines.iter().chain([&self.cells])
    }

    /// Whether the process is unchanged: the file is mapped at `address`, its code is the same, and
    /// the ranges to map are free.
    pub fn is_current(&self, address: u64, mappings: &[Mapping], memory: &Memory) -> bool {
        let is_free = |range: &Range<u64>| {
            mappings.iter().all(|m| m.end <= range.start || range.end <= m.start)
        };
        address == self.address
            && (self.mapped.is_some() || self.taken().all(is_free))
            && self.code.is_before(|start, length| self.leftovers.read(memory, start, length))
    }

    /// Whether an address is inside an instruction to be replaced, after its first byte.
    pub fn is_inside(&self, address: u64) -> bool {
        self.code.is_inside(address)
    }

    /// Writes the probes into a stopped process, with these prefixes of counts, if given. `common`
    /// is the memory of another file in the process, if it is to be shared.
    pub fn apply(
        mut self,
        tracee: &Tracee,
        memory: &Memory,
        prefix: Option<Prefixes>,
        common: Option<&Shared>,
    ) -> Result<Instance<P>, Unprobed> {
        if let Some(prefix) = prefix.filter(|_| self.filled == 0) {
            self.change(prefix);
        }
        if self.mapped.is_none() {
            self.map(tracee, memory, common)?;
        }
        let written = self.fill(memory, None);
        let Self { target, bias, plans, prefixes, process, origins, code, leftovers, .. } = self;
        let written = written
            .and_then(|_| leftovers.restore(memory).map_err(unwritten))
            .and_then(|()| code.write(memory));
        let mapped = self.mapped.ok_or(Unprobed::Unmapped)?;
        if let Err(why) = written {
            return match mapped.unmap(tracee, memory) {
                0 => Err(why),
                left => Err(Unprobed::Unremoved(why.into(), left)),
            };
        }
        let Mapped { shared, ranges } = mapped;
        let (shared, restored) = (Arc::new(shared), leftovers.number());
        Ok(Instance {
            target,
            plans,
            bias,
            shared,
            ranges,
            prefixes,
            process,
            code,
            origins,
            restored,
        })
    }
}

fn unwritten(error: std::io::Error) -> Unprobed {
    Unprobed::Unwritten(error.into())
}

/// The parts of `ranges` inside `reached`.
fn inside(ranges: &[Range<u64>], reached: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let part = |range: &Range<u64>| range.start.max(reached.start)..range.end.min(reached.end);
    ranges.iter().map(part).filter(|part| part.start < part.end)
}

/// Prepares probes for the files of a running process, by target; `None` if not mapped.
pub fn prepared<P: Probes>(
    probes: &P,
    targets: &[Target],
    tid: i32,
    work: &Work,
) -> Vec<Option<Result<Prepared<P>, Unprobed>>> {
    let mut taken: Vec<Range<u64>> = Vec::new();
    let memory = Memory::open(tid).map_err(|error| Unprobed::Unopened(error.into()));
    let mappings = mappings(tid);
    let mut prepared = |(number, target): (usize, &Target)| {
        let file = MappedTarget::find(number, target, &mappings)?;
        let found = memory
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|memory| Prepared::new(probes, tid, memory, file, &taken, work))
            // There may be several threads.
            .map(|mut prepared| {
                prepared.change(LOCKED);
                prepared
            });
        taken.extend(found.iter().flat_map(Prepared::taken).cloned());
        Some(found)
    };
    targets.iter().enumerate().map(&mut prepared).collect()
}

/// Encodes all plans, and refuses in them probes that cannot be encoded.
fn written<P: Probes>(
    probes: &P,
    code: &Code,
    number: usize,
    target: &Target,
    plans: &mut [Result<P::Plan, Unprobed>],
) -> Result<Written, Unprobed> {
    let mut written = Written::default();
    for (index, plan) in plans.iter_mut().enumerate() {
        if let (Ok(plan), Ok(facts)) = (plan, &target.functions[index].facts) {
            probes.write(code, Probed { number, target, index, facts }, plan, &mut written);
        }
    }
    match written.jumps.is_empty() {
        true => Err(Unprobed::NoJump),
        false => Ok(written),
    }
}

/// The code in memory.
struct Now<'a> {
    memory: &'a Memory,
    bias: u64,
    leftovers: &'a Leftovers,
    work: &'a Work,
}

impl Now<'_> {
    /// Checks that it is that of the file, except for probes of an earlier run.
    fn is_of_file(&self, function: &Function) -> Result<(), Unprobed> {
        let start = self.bias.wrapping_add(function.range.start);
        let now = self.leftovers.read(self.memory, start, function.bytes.len());
        match now == function.bytes {
            true => Ok(()),
            false => Err(Unprobed::Differs { is_left: self.leftovers.are_possible }),
        }
    }
}

/// The plans of a target's functions.
fn plans<P: Probes>(
    probes: &P,
    number: usize,
    target: &Target,
    now: &Now<'_>,
    room: &mut Room,
) -> Vec<Result<P::Plan, Unprobed>> {
    let plan = |(index, member): (usize, &super::target::Member)| {
        now.work.step()?;
        let facts = member.facts.as_ref().map_err(Clone::clone)?;
        now.is_of_file(facts)?;
        Ok(probes.plan(Probed { number, target, index, facts }, room))
    };
    target.functions.iter().enumerate().map(plan).collect()
}
