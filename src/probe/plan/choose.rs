//! Blocks → places of their counts.

use super::candidates::candidates;
use super::conservation::solve;
use super::room::Room;
use super::site::{JUMP, Kind, Site};
use crate::facts::Function;
use std::ops::Range;

/// How a block is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// By a probe.
    Placed(Site),
    /// By the probe of the block before it.
    Within,
    /// From the counts of its neighbours.
    Derived,
    /// Not, for this reason.
    Refused(String),
}

impl Placement {
    /// Whether a probe counts it.
    pub fn is_counted(&self) -> bool {
        matches!(self, Placement::Placed(_) | Placement::Within)
    }
}

/// The plan of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// By block.
    pub placements: Vec<Placement>,
}

impl Planned {
    /// Takes back the probe of a block.
    pub fn refuse(&mut self, block: usize, why: &str) {
        let refused = || Placement::Refused(why.to_owned());
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

/// Plans a count for every block of a function. Trampolines of puns are taken from `room`.
///
/// Blocks that need the instructions of the next one come first.
pub fn plan(function: &Function, room: &mut Room) -> Planned {
    planned(function, room, |_| true)
}

/// The same for code that has been running: every probe replaces one instruction, so that what was
/// interrupted or called before comes back to the beginning of an instruction or of a jump.
pub fn plan_live(function: &Function, room: &mut Room) -> Planned {
    planned(function, room, |site| site.kind != Kind::Multi)
}

fn planned(function: &Function, room: &mut Room, is_allowed: impl Fn(&Site) -> bool) -> Planned {
    let mut code = Code {
        start: function.range.start,
        bytes: function.bytes.iter().map(|byte| (*byte, Use::Free)).collect(),
    };
    let of = |number| candidates(function, number).into_iter().filter(&is_allowed).collect();
    let all: Vec<Vec<Site>> = (0..function.blocks.len()).map(of).collect();
    let mut placements: Vec<Option<Placement>> = vec![None; all.len()];
    let is_alone = |site: &Site| site.then.is_empty() && site.kind != Kind::Pun;
    let needs_next = |number: &usize| !all[*number].iter().any(is_alone);
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..all.len()).rev().partition(needs_next);
    for number in first.into_iter().chain(rest) {
        if placements[number].is_none() {
            place(function, number, &all[number], (&mut code, room), &mut placements);
        }
    }
    let none = || Placement::Refused("it was not looked at".to_owned());
    let mut placements: Vec<Placement> =
        placements.into_iter().map(|p| p.unwrap_or_else(none)).collect();
    derive(function, &mut placements);
    Planned { placements }
}

/// What a byte of code is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    /// The end of the displacement of a pun: it must stay as it is.
    Kept,
    /// Written, or executed elsewhere.
    Moved,
}

/// The bytes of a function, with their uses.
struct Code {
    start: u64,
    bytes: Vec<(u8, Use)>,
}

impl Code {
    fn at(&mut self, range: Range<u64>) -> &mut [(u8, Use)] {
        let inside = |address: u64| ((address - self.start) as usize).min(self.bytes.len());
        let range = inside(range.start)..inside(range.end);
        &mut self.bytes[range]
    }

    /// Takes the bytes of a probe, if all of them can be had; where the trampoline of a pun lies.
    fn take(&mut self, site: &Site, room: &mut Room) -> Option<Option<u64>> {
        let own = site.at..site.next;
        if self.at(own.clone()).iter().any(|(_, used)| *used != Use::Free) {
            return None;
        }
        let mut far = None;
        if site.kind == Kind::Pun {
            let tail = self.at(site.next..site.at + JUMP);
            if tail.iter().any(|(_, used)| *used == Use::Moved) {
                return None;
            }
            let tail: Vec<u8> = tail.iter().map(|(byte, _)| *byte).collect();
            far = Some(pun(site, &tail, room)?);
            self.at(site.next..site.at + JUMP).iter_mut().for_each(|byte| byte.1 = Use::Kept);
        }
        self.at(own).iter_mut().for_each(|byte| byte.1 = Use::Moved);
        Some(far)
    }
}

fn place(
    function: &Function,
    number: usize,
    candidates: &[Site],
    (code, room): (&mut Code, &mut Room),
    placements: &mut [Option<Placement>],
) {
    let refused = |why: &str| Some(Placement::Refused(why.to_owned()));
    if !function.blocks[number].is_reached {
        placements[number] = refused("no known jump leads to it: it may be data");
        return;
    }
    if candidates.is_empty() {
        placements[number] = refused("it has no instruction that may be moved");
        return;
    }
    for site in candidates {
        if site.then.iter().any(|then| placements[then.block].is_some()) {
            continue;
        }
        if let Some(trampoline) = code.take(site, room) {
            for then in &site.then {
                placements[then.block] = Some(Placement::Within);
            }
            let site = Site { trampoline, ..site.clone() };
            placements[number] = Some(Placement::Placed(site));
            return;
        }
    }
    let why = "no free address that a jump over its short instructions could reach";
    placements[number] = refused(why);
}

/// Where the trampoline of a pun can lie. `tail` are the bytes after its instruction.
fn pun(site: &Site, tail: &[u8], room: &mut Room) -> Option<u64> {
    let length = (site.next - site.at) as usize;
    let (mut low, mut high) = ([0; 4], [0xff; 4]);
    for at in length..JUMP as usize {
        low[at - 1] = *tail.get(at - length)?;
        high[at - 1] = low[at - 1];
    }
    // The sign is in the last byte, which is never free.
    let base = site.at + JUMP;
    let (low, high) = (i32::from_le_bytes(low), i32::from_le_bytes(high));
    room.take(base.wrapping_add_signed(low.into()), u64::from(high.abs_diff(low)) + 1)
}

/// Marks blocks without a place whose counts follow from the others.
pub fn derive(function: &Function, placements: &mut [Placement]) {
    let known = |p: &Placement| p.is_counted().then_some(0);
    let counted: Vec<Option<i64>> = placements.iter().map(known).collect();
    let solved = solve(function, &counted, 0);
    for (placement, found) in placements.iter_mut().zip(solved.blocks) {
        match (&placement, found) {
            (Placement::Placed(_) | Placement::Within, _) => {}
            (_, Some(_)) => *placement = Placement::Derived,
            (Placement::Derived, None) => {
                let why = "the probes around it cannot be placed";
                *placement = Placement::Refused(why.to_owned());
            }
            _ => {}
        }
    }
}
