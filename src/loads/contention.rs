//! Cache lines that threads of a process contend for, by recorded addresses of their loads and stores.

use crate::recorded::{Accesses, Actor, Line, LineAccess, Lines, SharedLine, Sharing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A line that passes between threads less often is handed over: one thread sets it up, another uses it.
const HANDOVERS: u64 = 4;
/// Share of locked accesses from which on they are what the line is shared for.
const LOCKED: f64 = 0.01;

/// How threads contend for a line that one of them writes: named as the nodes of Intel's tree, by what ends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contention {
    /// They access different bytes of it.
    #[default]
    FalseSharing,
    /// They access the same bytes.
    ContestedAccesses,
    /// They access the same bytes, by locked instructions, too.
    LockLatency,
}

/// In words.
impl fmt::Display for Contention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FalseSharing => "false sharing",
            Self::ContestedAccesses => "contested accesses",
            Self::LockLatency => "lock latency",
        })
    }
}

/// A line that threads contend for.
#[derive(Debug, Clone)]
pub struct Contended {
    /// The line.
    pub line: Line,
    /// How.
    pub contention: Contention,
    /// How often one of its recorded accesses was of another thread than that before.
    pub handovers: u64,
    /// Recorded accesses.
    pub recorded: u64,
    /// By thread, offset and instruction.
    pub accesses: BTreeMap<(Actor, u8, usize), Accesses>,
}

/// The lines that threads contend for, those with most accesses first. `all` are in order of time; `is_locked` tells
/// locked instructions by their number.
pub fn contended(
    all: impl Iterator<Item = LineAccess> + Clone,
    is_locked: &dyn Fn(usize) -> bool,
) -> Vec<Contended> {
    let mut lines = Lines::default();
    all.clone().for_each(|access| lines.note(&access));
    let mut shared: BTreeMap<Line, Passed> =
        lines.shared().into_iter().map(|(line, of)| (line, Passed::of(of))).collect();
    for access in all {
        if let Some(of) = shared.get_mut(&access.line) {
            of.add(&access);
        }
    }
    let found = shared.into_iter().filter_map(|(line, of)| of.contended(line, is_locked));
    let mut found: Vec<Contended> = found.collect();
    found.sort_by_key(|of| std::cmp::Reverse(of.recorded));
    found
}

/// A line that passes between threads.
struct Passed {
    of: SharedLine,
    last: Option<Actor>,
    handovers: u64,
}

impl Passed {
    fn of(of: SharedLine) -> Self {
        Self { of, last: None, handovers: 0 }
    }

    fn add(&mut self, access: &LineAccess) {
        self.handovers += u64::from(self.last.is_some_and(|last| last != access.actor));
        self.last = Some(access.actor);
        self.of.add(access);
    }

    fn contended(self, line: Line, is_locked: &dyn Fn(usize) -> bool) -> Option<Contended> {
        let Self { of, handovers, .. } = self;
        let number = |one: &Accesses| one.loads + one.writes;
        let recorded: u64 = of.accesses.values().map(number).sum();
        let locked = of.accesses.iter().filter(|((.., site), _)| is_locked(*site));
        let locked: u64 = locked.map(|(_, one)| number(one)).sum();
        let contention = match of.sharing() {
            Sharing::Same if locked as f64 >= LOCKED * recorded as f64 => Contention::LockLatency,
            Sharing::Same => Contention::ContestedAccesses,
            Sharing::Different => Contention::FalseSharing,
            Sharing::Unknown => return None,
        };
        let accesses = of.accesses;
        let found = Contended { line, contention, handovers, recorded, accesses };
        (handovers >= HANDOVERS).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(thread: u32, address: u64, writes: bool) -> LineAccess {
        LineAccess {
            line: Line::of(Some(1), address),
            actor: Actor::Thread(thread),
            cpu: None,
            offset: (address % 64) as u8,
            bytes: Some(8),
            site: 0,
            writes,
            modified: false,
            remote: false,
            latency: None,
        }
    }

    /// Two threads in turn, each at its own address, so often.
    fn turns(addresses: [u64; 2], times: u32, is_locked: bool, writes: bool) -> Vec<Contention> {
        let one = |number: u32| {
            access(number % 2, addresses[(number % 2) as usize], writes && number.is_multiple_of(2))
        };
        let found = contended((0..times).map(one), &|_| is_locked);
        found.iter().map(|of| of.contention).collect()
    }

    #[test]
    fn how_threads_contend_follows_from_bytes_and_instructions() {
        assert_eq!(turns([0x1000, 0x1008], 10, false, true), [Contention::FalseSharing]);
        assert_eq!(turns([0x1000, 0x1008], 10, true, true), [Contention::FalseSharing]);
        assert_eq!(turns([0x1000, 0x1004], 10, false, true), [Contention::ContestedAccesses]);
        assert_eq!(turns([0x1000, 0x1000], 10, true, true), [Contention::LockLatency]);
    }

    #[test]
    fn own_lines_and_lines_that_are_only_read_are_not_contended() {
        assert_eq!(turns([0x1000, 0x1040], 10, false, true), []);
        assert_eq!(turns([0x1000, 0x1000], 10, false, false), []);
    }

    #[test]
    fn a_line_that_is_handed_over_is_not_contended() {
        let of = |number: u32| access(u32::from(number >= 50), 0x1000, true);
        assert!(contended((0..100).map(of), &|_| false).is_empty());
        let found = contended((0..5).map(|number| access(number % 2, 0x1000, true)), &|_| false);
        assert_eq!((found[0].handovers, found[0].recorded), (4, 5));
    }
}
