//! Branches with their targets, numbered: events repeat few of them.

use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::sample::Branch;
use rustc_hash::FxHashMap;

/// A branch and one of its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The branch; `None` outside all known mappings.
    pub from: Option<ModuleAddress>,
    /// Its target.
    pub to: Option<ModuleAddress>,
}

/// The edges of all events of a recording, numbered from 0 in the order they come.
#[derive(Debug)]
pub struct Edges {
    all: Vec<(usize, Edge)>,
    numbers: FxHashMap<(usize, Edge), u32>,
    /// Edges resolved lately, each where its addresses say.
    recent: Vec<Option<Recent>>,
    /// How often the mappings have changed.
    now: u64,
}

/// An edge as it was resolved, and the number of mapping changes until then.
#[derive(Debug, Clone, Copy)]
struct Recent {
    at: u64,
    event: usize,
    pid: u32,
    from: u64,
    to: u64,
    number: u32,
}

/// How many are remembered, a power of 2.
const REMEMBERED: usize = 1 << 11;

impl Default for Edges {
    fn default() -> Self {
        let recent = vec![None; REMEMBERED];
        Self { all: Vec::new(), numbers: FxHashMap::default(), recent, now: 0 }
    }
}

impl Edges {
    /// The edge of this number.
    pub fn get(&self, number: u32) -> Edge {
        self.all[number as usize].1
    }

    /// The event of the edge of this number.
    pub fn event(&self, number: u32) -> usize {
        self.all[number as usize].0
    }

    /// The number of an edge of an event.
    pub fn number(&self, event: usize, edge: &Edge) -> Option<u32> {
        self.numbers.get(&(event, *edge)).copied()
    }

    /// After the mappings have changed.
    pub fn forget(&mut self) {
        self.now += 1;
    }

    /// The number of the edge of a branch in a process as it is now.
    pub fn resolve(
        &mut self,
        spaces: &mut AddressSpaces,
        event: usize,
        pid: u32,
        branch: &Branch,
    ) -> u32 {
        let Branch { from, to, .. } = *branch;
        let mixed = (from ^ from >> 11).wrapping_add(to << 3 ^ to >> 7) ^ u64::from(pid);
        let slot = mixed as usize % REMEMBERED;
        match &self.recent[slot] {
            Some(recent)
                if (recent.from, recent.to, recent.pid) == (from, to, pid)
                    && (recent.at, recent.event) == (self.now, event) =>
            {
                recent.number
            }
            _ => {
                let mut place = |ip| spaces.resolve(pid, ip, None);
                let edge = Edge { from: place(from), to: place(to) };
                let number = self.add(event, edge);
                self.recent[slot] = Some(Recent { at: self.now, event, pid, from, to, number });
                number
            }
        }
    }

    fn add(&mut self, event: usize, edge: Edge) -> u32 {
        *self.numbers.entry((event, edge)).or_insert_with(|| {
            self.all.push((event, edge));
            (self.all.len() - 1) as u32
        })
    }
}
