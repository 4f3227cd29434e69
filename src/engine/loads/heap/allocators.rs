//! The allocators in the files of a program, and its live memory: addresses → the sites that allocated them.

use probe::bursts::Recorded;
use probe::count::Wanted;
use probe::facts::{Allocator, Call, allocators};
use probe::plan::{Request, What};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;

/// The allocation functions of a run.
pub(in super::super) struct Allocators {
    /// The wanted functions, and after them the allocators that are none of them.
    pub wanted: Vec<Wanted>,
    /// By number of the wanted function.
    of: BTreeMap<usize, Allocator>,
}

impl Allocators {
    /// The allocation functions that these files define, for a run with these functions.
    pub fn new(files: &BTreeSet<PathBuf>, wanted: &[Wanted]) -> Self {
        let mut all = Self { wanted: wanted.to_vec(), of: BTreeMap::new() };
        for path in files {
            for found in allocators(path) {
                let one = Wanted { path: path.clone(), range: found.range.clone() };
                // The program may be named by another path.
                let is_it = |w: &Wanted| {
                    w.range == one.range
                        && (w.path == one.path
                            || w.path.canonicalize().is_ok_and(|p| p == one.path))
                };
                let known = all.wanted.iter().position(is_it);
                let number = known.unwrap_or_else(|| {
                    all.wanted.push(one);
                    all.wanted.len() - 1
                });
                all.of.insert(number, found);
            }
        }
        all
    }

    /// The request for a function, if it is one of them.
    pub fn request(&self, number: usize) -> Option<Request> {
        let found = self.of.get(&number)?;
        Some(Request { at: found.range.start, what: What::Allocated { call: found.call } })
    }

    /// The files of the allocation functions.
    pub fn files(&self) -> BTreeSet<&PathBuf> {
        self.of.keys().map(|number| &self.wanted[*number].path).collect()
    }

    /// The allocator of a record's site.
    pub fn at(&self, recorded: &Recorded, site: u32) -> Option<&Allocator> {
        self.of.get(&recorded.observed.get(site as usize)?.function)
    }

    /// Limits of a run with them.
    pub fn notes(&self, recorded: &Recorded) -> Vec<String> {
        if self.of.values().all(|one| matches!(one.call, Call::Map | Call::Remap | Call::Unmap)) {
            return vec![
                "allocation sites are not known: no file of the program defines malloc by name"
                    .to_owned(),
            ];
        }
        let refused = recorded.observed.iter().filter_map(|observed| {
            let name = &self.of.get(&observed.function)?.name;
            let why = observed.refused.as_ref()?;
            let is_one = matches!(observed.request.what, What::Allocated { .. });
            is_one.then(|| {
                format!("calls of {name} are not logged ({why}): what it gave has no site, or an older one")
            })
        });
        let forked = recorded.heaps.iter().any(|heap| heap.is_forked).then(|| {
            "the program forked: where processes have allocated the same addresses, all sites are given"
                .to_owned()
        });
        let lost: u64 = recorded.heaps.iter().map(|heap| heap.lost).sum();
        let full = (lost > 0).then(|| {
            let kept: usize = recorded.heaps.iter().map(|heap| heap.allocations.len()).sum();
            format!(
                "the log of allocations was full after {kept} calls, {lost} more came faster than it was read, or were too many: \
                 the sites of addresses recorded after that are not known"
            )
        });
        refused.chain(forked).chain(full).collect()
    }
}

/// A set of sites: its number.
pub(super) type Set = u32;

/// Who gave which addresses.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// First address → end, and who.
    of: BTreeMap<u64, (u64, Set)>,
    /// Sites of each set, ascending.
    sets: Vec<Vec<usize>>,
    numbers: HashMap<Vec<usize>, Set>,
}

impl Live {
    /// The sites of a set.
    pub fn sites(&self, set: Set) -> &[usize] {
        self.sets.get(set as usize).map_or(&[], Vec::as_slice)
    }

    /// Who gave an address.
    pub fn at(&self, address: u64) -> Option<Set> {
        let (_, (end, set)) = self.of.range(..=address).next_back()?;
        (address < *end).then_some(*set)
    }

    /// Nobody has given these addresses any more.
    pub fn take(&mut self, range: &Range<u64>) {
        self.cut(range);
    }

    /// A site has given these addresses: the last one counts.
    pub fn give(&mut self, range: &Range<u64>, site: usize) {
        if range.is_empty() {
            return;
        }
        self.cut(range);
        let set = self.set(vec![site]);
        self.of.insert(range.start, (range.end, set));
    }

    /// A site has given these addresses, before or after the others that have.
    pub fn join(&mut self, range: &Range<u64>, site: usize) {
        let before = self.cut(range);
        let mut from = range.start;
        let only = self.set(vec![site]);
        for (own, set) in before {
            if from < own.start {
                self.of.insert(from, (own.start, only));
            }
            let mut all = self.sites(set).to_vec();
            if let Err(place) = all.binary_search(&site) {
                all.insert(place, site);
            }
            let both = self.set(all);
            self.of.insert(own.start, (own.end, both));
            from = own.end;
        }
        if from < range.end {
            self.of.insert(from, (range.end, only));
        }
    }

    fn set(&mut self, sites: Vec<usize>) -> Set {
        if let Some(number) = self.numbers.get(&sites) {
            return *number;
        }
        let number = self.sets.len() as Set;
        self.sets.push(sites.clone());
        self.numbers.insert(sites, number);
        number
    }

    /// Takes out what lies in a range; returns that.
    fn cut(&mut self, range: &Range<u64>) -> Vec<(Range<u64>, Set)> {
        let mut found = Vec::new();
        if range.is_empty() {
            return found;
        }
        let before = self.of.range(..range.start).next_back().map(|(start, of)| (*start, *of));
        let from = before.filter(|(_, (end, _))| *end > range.start).map(|(start, _)| start);
        let inside = self.of.range(range.clone()).map(|(start, _)| *start);
        let starts: Vec<u64> = from.into_iter().chain(inside).collect();
        for start in starts {
            let Some((end, set)) = self.of.remove(&start) else { continue };
            if start < range.start {
                self.of.insert(start, (range.start, set));
            }
            if end > range.end {
                self.of.insert(range.end, (end, set));
            }
            found.push((start.max(range.start)..end.min(range.end), set));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(live: &Live, address: u64) -> Vec<usize> {
        live.at(address).map_or(Vec::new(), |set| live.sites(set).to_vec())
    }

    #[test]
    fn the_last_one_counts() {
        let mut live = Live::default();
        live.give(&(100..200), 1);
        live.give(&(120..140), 2);
        live.give(&(190..210), 3);
        let all = [99, 100, 119, 120, 139, 140, 189, 190, 209, 210].map(|a| at(&live, a));
        let one = |site| vec![site];
        assert_eq!(all[..5], [vec![], one(1), one(1), one(2), one(2)]);
        assert_eq!(all[5..], [one(1), one(1), one(3), one(3), vec![]]);
        live.take(&(110..205));
        assert_eq!([109, 110, 204, 205].map(|a| at(&live, a)), [one(1), vec![], vec![], one(3)]);
    }

    #[test]
    fn without_an_order_all_count() {
        let mut live = Live::default();
        live.join(&(100..200), 2);
        live.join(&(150..250), 1);
        live.join(&(90..110), 2);
        let all = [90, 100, 149, 150, 199, 200, 249, 250].map(|a| at(&live, a));
        let two = || vec![1, 2];
        assert_eq!(all[..4], [vec![2], vec![2], vec![2], two()]);
        assert_eq!(all[4..], [two(), vec![1], vec![1], vec![]]);
    }
}
