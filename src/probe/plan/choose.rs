//! Chooses places for the counts of blocks among the instructions that can be patched.

use super::conservation::{derived, spare};
use super::room::{Bytes, Room};
use super::site::{JUMP, Kind, NoPlace, Site, Then};
use crate::facts::{Block, Function};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, RflagsBits};
use std::ops::Range;

/// Most bytes of the trampoline of a count.
pub const LONGEST: u64 = 96;

/// How a block is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// By a probe.
    Placed(Site),
    /// By the probe of the block before it.
    Within,
    /// From the counts of its neighbours.
    Derived,
    /// Not counted.
    Refused(NoPlace),
}

impl Placement {
    /// Whether a probe counts it.
    pub fn is_counted(&self) -> bool {
        matches!(self, Placement::Placed(_) | Placement::Within)
    }

    /// Cost of its probe per execution, in plain counts.
    fn cost(&self) -> Option<f64> {
        /// Rough cost of a probe that saves flags or has a distant trampoline.
        const DEAR: f64 = 3.0;
        match self {
            Placement::Placed(site) if site.keeps_flags || site.trampoline.is_some() => Some(DEAR),
            placement => placement.is_counted().then_some(1.0),
        }
    }
}

/// The plan of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Placement of each block.
    pub placements: Vec<Placement>,
}

impl Planned {
    /// Removes the probe of a block.
    pub fn refuse(&mut self, block: usize, why: &NoPlace) {
        let refused = || Placement::Refused(why.clone());
        let old = std::mem::replace(&mut self.placements[block], refused());
        if let Placement::Placed(site) = old {
            site.then.iter().for_each(|then| self.placements[then.block] = refused());
        }
    }

    /// Its probes.
    pub fn sites(&self) -> impl Iterator<Item = &Site> {
        self.placements.iter().filter_map(|placement| match placement {
            Placement::Placed(site) => Some(site),
            _ => None,
        })
    }
}

/// The blocks of a function that are to have a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Chosen {
    /// All.
    #[default]
    All,
    /// All but hot ones whose counts follow from others; samples by block.
    Sparing(Vec<u64>),
    /// These, and what follows from them.
    Only(Vec<bool>),
}

/// Plans a count for every block of a function, or for chosen ones, with trampolines of puns in `room`.
pub fn plan(function: &Function, room: &mut Room, chosen: &Chosen) -> Planned {
    room.mark();
    let every = |_: Kind| true;
    let samples = match chosen {
        Chosen::All => return plan_of(function, room, &[], every),
        Chosen::Only(own) => {
            let others: Vec<usize> = (0..own.len()).filter(|block| !own[*block]).collect();
            return plan_of(function, room, &others, every);
        }
        Chosen::Sparing(samples) => samples,
    };
    let all = plan_of(function, room, &[], every);
    let costs: Vec<Option<f64>> = all.placements.iter().map(Placement::cost).collect();
    let spare = spare(function, &costs, samples);
    if spare.is_empty() {
        return all;
    }
    room.give_back();
    let fewer = plan_of(function, room, &spare, every);
    let refused =
        |p: &Planned| p.placements.iter().filter(|p| matches!(p, Placement::Refused(_))).count();
    // Another choice may take the bytes of a block that could be counted before.
    if refused(&fewer) > refused(&all) {
        room.give_back();
        return plan_of(function, room, &[], every);
    }
    fewer
}

/// As [`plan`], for code that has been running: every probe replaces one instruction, so that
/// interrupted or calling code continues at the start of an instruction or jump.
pub fn plan_live(function: &Function, room: &mut Room) -> Planned {
    room.mark();
    plan_of(function, room, &[], |kind| kind != Kind::Multi)
}

/// A plan with allowed kinds of probes, and none for `spare` blocks. Blocks that need instructions
/// of the next block come first.
fn plan_of(
    function: &Function,
    room: &mut Room,
    spare: &[usize],
    is_allowed: impl Fn(Kind) -> bool,
) -> Planned {
    let mut code = Bytes::new(function);
    let none = || Placement::Refused(NoPlace::Underived);
    let mut placements: Vec<Option<Placement>> = vec![None; function.blocks.len()];
    let mut is_spare = vec![false; placements.len()];
    for block in spare {
        placements[*block] = Some(none());
        is_spare[*block] = true;
    }
    // Candidates of a block end where those of the next block begin.
    let (mut all, mut ends) = (Vec::new(), vec![0]);
    for number in 0..placements.len() {
        candidates(function, number, &mut all);
        ends.push(all.len());
    }
    let candidates_of = |number: usize| {
        all[ends[number]..ends[number + 1]].iter().filter(|candidate| is_allowed(candidate.kind))
    };
    let needs_next = |number: &usize| {
        let is_alone = |candidate: &Candidate| {
            let following = number + 1..=number + candidate.then;
            !candidate.kind.is_pun() && following.into_iter().all(|block| is_spare[block])
        };
        !candidates_of(*number).any(is_alone)
    };
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..is_spare.len()).rev().partition(needs_next);
    // Blocks in loops first, since others might take their bytes.
    let in_loop = in_loops(function);
    let (hot, cold): (Vec<usize>, Vec<usize>) =
        first.into_iter().chain(rest).partition(|block| in_loop[*block]);
    for number in hot.into_iter().chain(cold) {
        if placements[number].is_none() {
            let sites = candidates_of(number)
                .map(|one| one.site(function, number, |block| is_spare[block]));
            place(function, number, sites, &mut code, room, &mut placements);
        }
    }
    let mut placements: Vec<Placement> =
        placements.into_iter().map(|p| p.unwrap_or_else(none)).collect();
    derive(function, &mut placements);
    Planned { placements }
}

/// Whether each block is in a natural loop: reaches a latch without passing the head.
fn in_loops(function: &Function) -> Vec<bool> {
    let mut into = vec![Vec::new(); function.blocks.len()];
    for (from, block) in function.blocks.iter().enumerate() {
        block.successors.iter().for_each(|to| into[*to].push(from));
    }
    let mut found = vec![false; into.len()];
    for one in &function.loops {
        let mut seen = vec![false; into.len()];
        seen[one.head] = true;
        let mut open = one.latches.clone();
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut seen[block], true) {
                open.extend(&into[block]);
            }
        }
        found.iter_mut().zip(seen).for_each(|(found, seen)| *found |= seen);
    }
    found
}

fn place(
    function: &Function,
    number: usize,
    candidates: impl Iterator<Item = Site>,
    code: &mut Bytes,
    room: &mut Room,
    placements: &mut [Option<Placement>],
) {
    if !function.blocks[number].is_reached {
        placements[number] = Some(Placement::Refused(NoPlace::Unreached));
        return;
    }
    let mut any = false;
    let candidates: Vec<Site> = candidates.collect();
    let all =
        [false, true].into_iter().flat_map(|is_wide| candidates.iter().map(move |c| (is_wide, c)));
    for (is_wide, site) in all {
        any = true;
        room.widen(is_wide);
        if site.then.iter().any(|then| placements[then.block].is_some()) {
            continue;
        }
        let reached = |at: u64| reaches(function, site, at);
        let taken = code.take(site.kind, site.at..site.next, room, LONGEST, reached);
        room.widen(false);
        if let Some(trampoline) = taken {
            for then in &site.then {
                placements[then.block] = Some(Placement::Within);
            }
            let site = Site { trampoline, ..site.clone() };
            placements[number] = Some(Placement::Placed(site));
            return;
        }
    }
    let is_short = |site: &Site| site.kind.is_pun();
    placements[number] = Some(Placement::Refused(match any {
        _ if function.blocks[number].certain < function.blocks[number].instructions.len() => {
            NoPlace::Hidden
        }
        true if candidates.iter().all(is_short) => NoPlace::NoRoom { is_fixed: room.is_fixed() },
        true => NoPlace::Taken,
        false => NoPlace::Immovable,
    }));
}

/// Whether the instruction of a pun also reaches its operand from the trampoline.
fn reaches(function: &Function, site: &Site, trampoline: u64) -> bool {
    /// Reach of 32-bit distances, less a trampoline.
    const REACH: u64 = (1 << 31) - LONGEST;
    let mut all = function.blocks[site.block].instructions.iter();
    all.find(|instruction| instruction.ip() == site.at).is_none_or(|instruction| {
        !instruction.is_ip_rel_memory_operand()
            || (instruction.ip_rel_memory_address().wrapping_sub(trampoline).cast_signed())
                .unsigned_abs()
                < REACH
    })
}

/// Marks blocks without a place whose counts follow from others.
pub fn derive(function: &Function, placements: &mut [Placement]) {
    let known = |p: &Placement| p.is_counted().then_some(0);
    let counted: Vec<Option<i64>> = placements.iter().map(known).collect();
    for (placement, found) in placements.iter_mut().zip(derived(function, &counted)) {
        match (&placement, found) {
            (Placement::Placed(_) | Placement::Within, _) => {}
            (_, Some(_)) => *placement = Placement::Derived,
            (Placement::Derived, None) => *placement = Placement::Refused(NoPlace::Around),
            _ => {}
        }
    }
}

/// Flags that `inc` changes.
const CHANGED: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// A place for the count of a block; the cheapest sorts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    keeps_flags: bool,
    pub kind: Kind,
    /// Following blocks that begin among the patched instructions.
    pub then: usize,
    length: u64,
    /// Index of the first patched instruction.
    first: usize,
}

/// Adds all places for the count of a block, the cheapest first.
pub(super) fn candidates(function: &Function, number: usize, all: &mut Vec<Candidate>) {
    let before = all.len();
    for first in 0..function.blocks[number].certain {
        all.extend(retarget(function, number, first));
        all.extend(displaced(function, number, first));
        all.extend(puns(function, number, first));
    }
    all[before..].sort_unstable();
}

impl Candidate {
    fn new(block: &Block, first: usize, kind: Kind) -> Self {
        let keeps_flags = block.live[first] & CHANGED != 0;
        let length = block.instructions[first].len() as u64;
        Self { keeps_flags, kind, then: 0, length, first }
    }

    /// The candidate as a site, without counts for `spare` blocks.
    pub fn site(&self, function: &Function, number: usize, spare: impl Fn(usize) -> bool) -> Site {
        let at = function.blocks[number].instructions[self.first].ip();
        let following = (number + 1..=number + self.then).filter(|block| !spare(*block));
        let then = following.map(|block| {
            let own = &function.blocks[block];
            let keeps_flags = own.live.first().is_none_or(|live| live & CHANGED != 0);
            Then { block, at: own.start, keeps_flags }
        });
        Site {
            block: number,
            at,
            next: at + self.length,
            kind: self.kind,
            keeps_flags: self.keeps_flags,
            then: then.collect(),
            trampoline: None,
        }
    }
}

/// A `call rel32` redirected through the trampoline.
fn retarget(function: &Function, number: usize, at: usize) -> Option<Candidate> {
    let block = &function.blocks[number];
    let call = &block.instructions[at];
    let is_plain = call.code() == Code::Call_rel32_64 && call.len() as u64 == JUMP;
    let stays = is_free(function, call.ip()..call.next_ip());
    (is_plain && stays).then(|| Candidate::new(block, at, Kind::Retarget))
}

/// Instructions from `first` on that are executed in the trampoline, including those of following
/// blocks that are entered only from there.
fn displaced(function: &Function, number: usize, first: usize) -> Option<Candidate> {
    let block = &function.blocks[number];
    let start = block.instructions[first].ip();
    let (mut last, mut at) = (number, first);
    loop {
        let block = &function.blocks[last];
        let instruction = &block.instructions[at];
        if !can_move(instruction) {
            return None;
        }
        let end = instruction.next_ip();
        if end - start >= JUMP {
            let kind = if (last, at) == (number, first) { Kind::Single } else { Kind::Multi };
            let is_sure = kind == Kind::Single || function.is_complete;
            let found = is_sure && is_free(function, start..start + JUMP);
            let one = Candidate::new(&function.blocks[number], first, kind);
            let (then, length) = (last - number, end - start);
            return found.then_some(Candidate { then, length, ..one });
        }
        at += 1;
        if at == block.instructions.len() {
            let next = function.blocks.get(last + 1)?;
            let falls = block.successors.contains(&(last + 1)) && next.start == block.end;
            if !falls || next.instructions.is_empty() || function.fixed.contains(&next.start) {
                return None;
            }
            (last, at) = (last + 1, 0);
        }
    }
}

/// A short instruction, whose jump ends in the bytes after it: in others with each prefix.
fn puns(function: &Function, number: usize, at: usize) -> impl Iterator<Item = Candidate> {
    let block = &function.blocks[number];
    let one = &block.instructions[at];
    let is_short = (one.len() as u64) < JUMP && can_move(one);
    let fits = is_short && is_free(function, one.ip()..one.next_ip());
    let prefixes = 0..if fits { one.len() as u8 } else { 0 };
    prefixes.map(move |prefixes| Candidate::new(block, at, Kind::Pun(prefixes)))
}

/// Whether nothing jumps or refers to these bytes, except the first.
pub(super) fn is_free(function: &Function, range: Range<u64>) -> bool {
    !function.fixed.divide(&range)
}

/// Whether an instruction has the same effect at another address. Not a call (its return address
/// differs), nor targets of indirect jumps, system calls and instructions that raise an exception,
/// whose addresses are seen by others.
pub(super) fn can_move(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::Next => {
            !matches!(instruction.code(), Code::Endbr64 | Code::Endbr32 | Code::Hlt)
                && !instruction.is_privileged()
        }
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::Return => !matches!(
            instruction.mnemonic(),
            Mnemonic::Iret | Mnemonic::Iretq | Mnemonic::Iretd | Mnemonic::Retf
        ),
        _ => false,
    }
}
