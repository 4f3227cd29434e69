//! The functions that give memory, in the files of a program.

use probe::bursts::Recorded;
use probe::count::Wanted;
use probe::facts::{Allocator, Call, allocators};
use probe::plan::{Request, What};
use std::collections::{BTreeMap, BTreeSet};
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
