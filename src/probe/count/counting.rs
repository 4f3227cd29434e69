//! Probes that count, one counter per block, and sums over program images that have ended, with the same plans.

use crate::emit::{Patch, emit};
use crate::facts::Function;
use crate::patch::{Code, Copies, Member, Probed, Probes, Shared, Target, Unprobed, Written};
use crate::plan::{
    Kind, LONGEST, NoTrampoline, PAGE, Placement, Planned, Room, Site, derive, plan, plan_live,
};
use std::ops::Range;

/// Bytes of a counter.
const COUNTER: u64 = 8;
/// Limits of the copies of the counters, in number and in total bytes: they must be near the code.
const COPIES: u64 = 65;
const BYTES: u64 = 4 << 20;

/// Counts of all blocks.
pub(super) struct Counting {
    code: Running,
    copies: Copies,
    /// Counts of images that have ended.
    pub tallies: Vec<Tally>,
}

/// Code that is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Running {
    /// It has not run yet.
    Not,
    /// It has: a probe replaces one instruction.
    Live,
    /// It has, and no signal handler may return into it: a probe replaces as many as it needs.
    Joined,
}

impl Counting {
    /// No counts yet.
    pub fn new(code: Running, targets: &[Target]) -> Self {
        let blocks = |target| first(target, target.functions.len()) as u64;
        let most = targets.iter().map(blocks).max().unwrap_or(0);
        let stride = (most * COUNTER).next_multiple_of(PAGE);
        let copies = match stride {
            1.. if code == Running::Not => {
                Copies { number: (BYTES / stride).clamp(1, COPIES), stride }
            }
            _ => Copies { number: 1, stride },
        };
        Self { code, copies, tallies: Vec::new() }
    }
}

/// Index of the first counter of a function in its target.
pub(super) fn first(target: &Target, index: usize) -> usize {
    target.functions[..index].iter().map(Member::blocks).sum()
}

/// The bytes of a probe.
fn patch(
    function: &Function,
    site: &Site,
    bias: u64,
    counter: impl Fn(usize) -> u64,
    to: u64,
) -> Result<Patch, NoTrampoline> {
    let inside = |address: u64| (address - function.range.start) as usize;
    let bytes = &function.bytes[inside(site.at)..inside(site.next)];
    let patch = emit(site, bytes, bias, counter, to)?;
    // Another trampoline may follow directly.
    match patch.trampoline.len() as u64 > LONGEST * (1 + site.then.len() as u64) {
        true => Err(NoTrampoline::TooLong),
        false => Ok(patch),
    }
}

/// Original code of each part of a trampoline at `to`; a count belongs to the code after it.
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

impl Probes for Counting {
    type Plan = Planned;
    const IS_COMMON: bool = false;

    fn needs(&self, _: usize, target: &Target) -> (u64, u64) {
        let blocks = first(target, target.functions.len()) as u64;
        let Copies { number, stride } = self.copies;
        ((number - 1) * stride + blocks * COUNTER, blocks * LONGEST)
    }

    fn copies(&self) -> Copies {
        self.copies
    }

    fn plan(&self, function: Probed<'_>, room: &mut Room) -> Planned {
        let Probed { target, index, facts, .. } = function;
        match self.code {
            Running::Live => plan_live(facts, room),
            Running::Not | Running::Joined => plan(facts, room, &target.functions[index].chosen),
        }
    }

    fn joins(&self) -> bool {
        self.code == Running::Joined
    }

    fn write(&self, code: &Code, function: Probed<'_>, plan: &mut Planned, written: &mut Written) {
        let Probed { target, index, facts, .. } = function;
        let first = code.shared + first(target, index) as u64 * COUNTER;
        let counter = |block: usize| first + block as u64 * COUNTER;
        let mut any = false;
        for number in 0..plan.placements.len() {
            let Placement::Placed(site) = &plan.placements[number] else { continue };
            let to = written.place(code, site.trampoline);
            match patch(facts, site, code.bias, counter, to) {
                Ok(patch) => {
                    written.origins.extend(origins(facts, site, &patch, to));
                    written.add(code, site.trampoline, site.at, patch);
                }
                Err(why) => {
                    plan.refuse(number, &why.into());
                    any = true;
                }
            }
        }
        if any {
            derive(facts, &mut plan.placements);
        }
    }

    fn closed(
        &mut self,
        number: usize,
        target: &Target,
        plans: Vec<Result<Planned, Unprobed>>,
        shared: &Shared,
        probes: usize,
    ) -> Result<(), Unprobed> {
        let mut bytes = vec![0; first(target, target.functions.len()) * COUNTER as usize];
        let mut counters = vec![0; bytes.len() / COUNTER as usize];
        for copy in 0..self.copies.number {
            shared
                .read(&mut bytes, copy * self.copies.stride)
                .map_err(|e| Unprobed::Counters(e.into()))?;
            let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            counters.iter_mut().zip(words).for_each(|(sum, own): (&mut u64, u64)| *sum += own);
        }
        Tally::new(number, plans, counters, probes).add_to(&mut self.tallies);
        Ok(())
    }
}

/// The counters of images with the same plans.
pub(super) struct Tally {
    /// Index of their target.
    pub target: usize,
    /// Plan of each function of the target, or why it was not patched.
    pub plans: Vec<Result<Planned, Unprobed>>,
    counters: Vec<u64>,
    /// Number of probes of one image.
    pub probes: usize,
}

impl Tally {
    /// The counters of one image.
    pub fn new(
        target: usize,
        mut plans: Vec<Result<Planned, Unprobed>>,
        counters: Vec<u64>,
        probes: usize,
    ) -> Self {
        // The places of trampolines differ between images and are not needed any more.
        for placement in plans.iter_mut().flatten().flat_map(|planned| &mut planned.placements) {
            if let Placement::Placed(site) = placement {
                site.trampoline = None;
            }
        }
        Self { target, plans, counters, probes }
    }

    /// The counters of a function, whose first has this index.
    pub fn counts(&self, first: usize, blocks: usize) -> &[u64] {
        self.counters.get(first..first + blocks).unwrap_or_default()
    }

    /// Adds another image to `all`.
    pub fn add_to(self, all: &mut Vec<Tally>) {
        let is_same = |other: &&mut Tally| {
            other.target == self.target
                && other.counters.len() == self.counters.len()
                && other.plans == self.plans
        };
        match all.iter_mut().find(is_same) {
            Some(sum) => {
                sum.counters.iter_mut().zip(self.counters).for_each(|(sum, n)| *sum += n);
            }
            None => all.push(self),
        }
    }
}
