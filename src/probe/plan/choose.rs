//! Places for the counts of blocks.

use super::bytes::Bytes;
use super::candidates::{Candidate, candidates};
use super::conservation::derived;
use super::no_place::NoPlace;
use super::room::Room;
use super::site::{Kind, Site};
use super::spare::spare;
use crate::facts::Function;

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

/// Plans a count for every block of a function, with trampolines of puns in `room`. With `samples`
/// of the blocks, hot blocks whose counts follow from others have no probe.
pub fn plan(function: &Function, room: &mut Room, samples: Option<&[u64]>) -> Planned {
    let every = |_: Kind| true;
    let Some(samples) = samples else { return plan_of(function, room, &[], every) };
    let before = room.clone();
    let all = plan_of(function, room, &[], every);
    let costs: Vec<Option<f64>> = all.placements.iter().map(Placement::cost).collect();
    let spare = spare(function, &costs, samples);
    if spare.is_empty() {
        return all;
    }
    let mut again = before;
    let fewer = plan_of(function, &mut again, &spare, every);
    let refused =
        |p: &Planned| p.placements.iter().filter(|p| matches!(p, Placement::Refused(_))).count();
    // Another choice may take the bytes of a block that could be counted before.
    if refused(&fewer) > refused(&all) {
        return all;
    }
    *room = again;
    fewer
}

/// As [`plan`], for code that has been running: every probe replaces one instruction, so that
/// interrupted or calling code continues at the start of an instruction or jump.
pub fn plan_live(function: &Function, room: &mut Room) -> Planned {
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
            candidate.kind != Kind::Pun && following.into_iter().all(|block| is_spare[block])
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
    let is_short = |site: &Site| site.kind == Kind::Pun;
    placements[number] = Some(Placement::Refused(match any {
        _ if function.blocks[number].certain < function.blocks[number].instructions.len() => {
            NoPlace::Hidden
        }
        true if candidates.iter().all(is_short) => NoPlace::NoRoom,
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
