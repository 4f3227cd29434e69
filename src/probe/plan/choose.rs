//! Blocks → places of their counts.

use super::candidates::candidates;
use super::conservation::solve;
use super::room::Room;
use super::site::{JUMP, Kind, Site};
use crate::facts::Function;

/// How a block is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// By a probe.
    Placed(Site),
    /// From the counts of its neighbours.
    Derived,
    /// Not, for this reason.
    Refused(String),
}

/// The plan of a function.
#[derive(Debug, Clone)]
pub struct Planned {
    /// By block.
    pub placements: Vec<Placement>,
}

impl Planned {
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
/// From the last block to the first: the displacement of a pun ends in bytes that follow, which must
/// stay as they are.
pub fn plan(function: &Function, room: &mut Room) -> Planned {
    let mut code = Code { bytes: function.bytes.iter().copied().map(Some).collect() };
    let mut placements: Vec<Placement> = Vec::new();
    for number in (0..function.blocks.len()).rev() {
        placements.push(place(function, number, &mut code, room));
    }
    placements.reverse();
    derive(function, &mut placements);
    Planned { placements }
}

/// The code; bytes that are patched are none.
struct Code {
    bytes: Vec<Option<u8>>,
}

fn place(function: &Function, number: usize, code: &mut Code, room: &mut Room) -> Placement {
    let block = &function.blocks[number];
    if !block.is_reached {
        return Placement::Refused("no known jump leads to it: it may be data".to_owned());
    }
    let all = candidates(function, number);
    if all.is_empty() {
        return Placement::Refused("it has no instruction that may be moved".to_owned());
    }
    for mut site in all {
        let start = (site.at - function.range.start) as usize;
        let patched = (site.next - site.at).min(JUMP) as usize;
        if site.kind == Kind::Pun {
            let Some(found) = pun(&site, &code.bytes[start..], room) else { continue };
            site.trampoline = Some(found);
        }
        code.bytes[start..start + patched].fill(None);
        return Placement::Placed(site);
    }
    Placement::Refused("no free address that a jump over its short instructions could reach".into())
}

/// Where the trampoline of a pun can lie. `bytes` are those from the instruction on.
fn pun(site: &Site, bytes: &[Option<u8>], room: &mut Room) -> Option<u64> {
    let length = (site.next - site.at) as usize;
    let (mut low, mut high) = ([0; 4], [0xff; 4]);
    for at in length..JUMP as usize {
        low[at - 1] = (*bytes.get(at)?)?;
        high[at - 1] = low[at - 1];
    }
    // The sign is in the last byte, which is never free.
    let base = site.at + JUMP;
    let (low, high) = (i32::from_le_bytes(low), i32::from_le_bytes(high));
    room.take(base.wrapping_add_signed(low.into()), u64::from(high.abs_diff(low)) + 1)
}

/// Marks blocks without a place whose counts follow from the others.
pub fn derive(function: &Function, placements: &mut [Placement]) {
    let known = |p: &Placement| matches!(p, Placement::Placed(_)).then_some(0);
    let counted: Vec<Option<i64>> = placements.iter().map(known).collect();
    let solved = solve(function, &counted, 0);
    for (placement, found) in placements.iter_mut().zip(solved.blocks) {
        if found.is_some() && !matches!(placement, Placement::Placed(_)) {
            *placement = Placement::Derived;
        }
    }
}
