//! Blocks → places of their counts.

use super::bytes::Bytes;
use super::candidates::candidates;
use super::conservation::solve;
use super::room::Room;
use super::site::{Kind, Site};
use crate::facts::Function;

/// Bytes that the trampoline of a count may have.
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
#[derive(Debug, Clone)]
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
    let mut code = Bytes::new(function);
    let all: Vec<Vec<Site>> =
        (0..function.blocks.len()).map(|number| candidates(function, number)).collect();
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

fn place(
    function: &Function,
    number: usize,
    candidates: &[Site],
    (code, room): (&mut Bytes, &mut Room),
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
        if let Some(trampoline) = code.take(site.kind, site.at..site.next, room, LONGEST) {
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
