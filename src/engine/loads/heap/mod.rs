//! Where the memory that loads read was allocated: the sites of the recorded addresses of loads.
//!
//! | file | concern |
//! |---|---|
//! | `allocators` | the functions that give memory, and what of it is live |
//! | `names` | callers → the site in the program |

mod allocators;
mod names;

pub(super) use allocators::Allocators;
use allocators::Live;
use names::Names;
use probe::bursts::{Heap, Recorded};
use probe::facts::Call;
use probe::plan::What;
use report::documents::count::{AllocatedAt, AllocationSite, LoadMemory};
use std::collections::{BTreeMap, HashMap};

/// Allocations and their accesses.
#[derive(Debug, Default)]
pub(in crate::loads) struct Found {
    /// The sites that loads read from.
    pub sites: Vec<AllocationSite>,
    /// By load: what its addresses are of.
    pub of: BTreeMap<usize, LoadMemory>,
    /// Limits of these.
    pub notes: Vec<String>,
}

/// The object that an address is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// Memory that these sites gave.
    Sites(Vec<usize>),
    /// None that was allocated: static data, the stack.
    Other,
    /// It is not known.
    Unknown,
}

/// The sites of the addresses of each load; `of` gives the load of a recorded request.
pub(in crate::loads) fn found(
    recorded: &Recorded,
    of: &[Option<usize>],
    allocators: &Allocators,
) -> Found {
    let mut names = Names::new(allocators);
    let mut sums: BTreeMap<usize, BTreeMap<Of, u64>> = BTreeMap::new();
    for heap in &recorded.heaps {
        let steps = steps(recorded, heap, allocators, &mut names);
        let own = recorded.bursts.iter().filter(|burst| burst.image == heap.image);
        let mut replay = Replay::new(heap, &steps);
        for burst in own {
            replay.begin(burst.logged.0, burst.logged.1);
            for record in &burst.records {
                let site = record.site as usize;
                let is_address =
                    recorded.observed.get(site).is_some_and(|o| o.request.what == What::Address);
                if let (true, Some(Some(load))) = (is_address, of.get(site)) {
                    let own = sums.entry(*load).or_default();
                    *own.entry(replay.at(record.value)).or_default() += 1;
                }
            }
        }
    }
    let notes = allocators.notes(recorded);
    let (sites, of) = rows(names.all, sums);
    Found { sites, of, notes }
}

/// A call of the log.
enum Step {
    Gives(usize),
    /// It is nobody's: unmapped, or an allocator's own.
    TakesBack,
    /// An allocation of no bytes, or one in which the program was killed.
    Nothing,
}

/// The effect of each call of the log; adds it to the sums of its site.
fn steps(
    recorded: &Recorded,
    heap: &Heap,
    allocators: &Allocators,
    names: &mut Names<'_>,
) -> Vec<Step> {
    let mut known: HashMap<(u32, u32), Option<usize>> = HashMap::new();
    let step = |one: &probe::bursts::Allocation| {
        let Some(function) = allocators.at(recorded, one.site).filter(|_| !one.range.is_empty())
        else {
            return Step::Nothing;
        };
        let number = *known.entry((one.callers, one.site)).or_insert_with(|| {
            let callers = heap.callers.get(one.callers as usize).map_or(&[][..], Vec::as_slice);
            let maps = matches!(function.call, Call::Map | Call::Remap);
            let is_own = maps && names.is_own(heap, callers);
            let gives = function.call != Call::Unmap && !is_own;
            gives.then(|| names.number(heap, callers, &function.name))
        });
        let Some(number) = number else { return Step::TakesBack };
        let site = &mut names.all[number];
        site.allocations += 1;
        site.bytes += one.range.end - one.range.start;
        Step::Gives(number)
    };
    heap.allocations.iter().map(step).collect()
}

/// The log, as far as it had come when addresses were recorded.
struct Replay<'a> {
    heap: &'a Heap,
    steps: &'a [Step],
    live: Live,
    /// Calls that are in it.
    done: usize,
    /// Allocated while the burst lasted, before or after an access.
    meanwhile: Live,
    is_complete: bool,
}

impl<'a> Replay<'a> {
    fn new(heap: &'a Heap, steps: &'a [Step]) -> Self {
        let (live, meanwhile) = (Live::default(), Live::default());
        let mut replay = Self { heap, steps, live, done: 0, meanwhile, is_complete: true };
        if heap.is_forked {
            // Processes have the same addresses.
            for (one, step) in heap.allocations.iter().zip(steps) {
                if let Step::Gives(site) = step {
                    replay.live.join(&one.range, *site);
                }
            }
            replay.done = steps.len();
        }
        replay
    }

    /// A burst, with the calls that had been logged before it began and by the time that it was over.
    fn begin(&mut self, before: u64, after: u64) {
        self.is_complete = after <= self.steps.len() as u64;
        let number =
            |logged: u64| usize::try_from(logged).unwrap_or(usize::MAX).min(self.steps.len());
        let (before, after) = (number(before), number(after));
        for index in self.done..before {
            let range = &self.heap.allocations[index].range;
            match &self.steps[index] {
                Step::Gives(site) => self.live.give(range, *site),
                Step::TakesBack => self.live.take(range),
                Step::Nothing => {}
            }
        }
        self.meanwhile = Live::default();
        for index in self.done.max(before)..after {
            if let Step::Gives(site) = &self.steps[index] {
                self.meanwhile.join(&self.heap.allocations[index].range, *site);
            }
        }
        self.done = self.done.max(before);
    }

    fn at(&self, address: u64) -> Of {
        if !self.is_complete {
            return Of::Unknown;
        }
        let sites =
            |live: &Live| live.at(address).map_or(Vec::new(), |set| live.sites(set).to_vec());
        let mut all = sites(&self.live);
        all.extend(sites(&self.meanwhile));
        all.sort_unstable();
        all.dedup();
        if all.is_empty() { Of::Other } else { Of::Sites(all) }
    }
}

/// The sites that are read from, those with most addresses first, and the shares of each load.
fn rows(
    all: Vec<AllocationSite>,
    sums: BTreeMap<usize, BTreeMap<Of, u64>>,
) -> (Vec<AllocationSite>, BTreeMap<usize, LoadMemory>) {
    let mut read: BTreeMap<usize, u64> = BTreeMap::new();
    for (of, number) in sums.values().flatten() {
        let Of::Sites(sites) = of else { continue };
        sites.iter().for_each(|site| *read.entry(*site).or_default() += number);
    }
    let mut order: Vec<usize> = read.keys().copied().collect();
    order.sort_by_key(|site| (std::cmp::Reverse(read[site]), *site));
    let place: HashMap<usize, usize> =
        order.iter().enumerate().map(|(n, site)| (*site, n)).collect();
    let memory = |own: BTreeMap<Of, u64>| {
        let addresses: u64 = own.values().sum();
        let mut row = LoadMemory { addresses, ..LoadMemory::default() };
        for (of, number) in own {
            let share = number as f64 / addresses.max(1) as f64;
            match of {
                Of::Sites(sites) => {
                    let mut sites: Vec<usize> = sites.iter().map(|site| place[site]).collect();
                    sites.sort_unstable();
                    row.sites.push(AllocatedAt { sites, share });
                }
                Of::Other => row.other = share,
                Of::Unknown => row.unknown = share,
            }
        }
        row.sites.sort_by(|a, b| b.share.total_cmp(&a.share));
        row
    };
    let of = sums.into_iter().map(|(load, own)| (load, memory(own))).collect();
    let mut sites: Vec<Option<AllocationSite>> = all.into_iter().map(Some).collect();
    (order.into_iter().filter_map(|site| sites[site].take()).collect(), of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::bursts::Allocation;

    /// Three sites: 0 gave 100..200, then 1 took 150..160 of it; at last 2 gave 190..210.
    fn heap(lost: u64, is_forked: bool) -> Heap {
        let one = |range| Allocation { range, site: 0, callers: 0 };
        Heap {
            image: 0,
            allocations: vec![one(100..200), one(150..160), one(190..210)],
            lost,
            callers: Vec::new(),
            files: Vec::new(),
            is_forked,
        }
    }

    const STEPS: [Step; 3] = [Step::Gives(0), Step::Gives(1), Step::Gives(2)];

    fn at(heap: &Heap, logged: (u64, u64), address: u64) -> Of {
        let mut replay = Replay::new(heap, &STEPS);
        replay.begin(logged.0, logged.1);
        replay.at(address)
    }

    #[test]
    fn the_last_site_before_a_burst_counts_and_all_sites_in_it() {
        let heap = heap(0, false);
        let of = |sites: &[usize]| Of::Sites(sites.to_vec());
        assert_eq!(at(&heap, (0, 0), 150), Of::Other);
        assert_eq!(at(&heap, (1, 1), 150), of(&[0]));
        assert_eq!(at(&heap, (2, 2), 150), of(&[1]));
        assert_eq!(at(&heap, (2, 3), 150), of(&[1]));
        assert_eq!(at(&heap, (1, 3), 150), of(&[0, 1]));
        assert_eq!(at(&heap, (2, 3), 195), of(&[0, 2]));
        assert_eq!(at(&heap, (2, 3), 205), of(&[2]));
        assert_eq!(at(&heap, (3, 3), 195), of(&[2]));
    }

    #[test]
    fn nothing_is_known_after_the_log_was_full() {
        let heap = heap(2, false);
        assert_eq!(at(&heap, (3, 3), 150), Of::Sites(vec![1]));
        assert_eq!(at(&heap, (3, 4), 150), Of::Unknown);
        assert_eq!(at(&heap, (5, 5), 150), Of::Unknown);
    }

    #[test]
    fn processes_have_no_order() {
        let heap = heap(0, true);
        assert_eq!(at(&heap, (0, 0), 150), Of::Sites(vec![0, 1]));
        assert_eq!(at(&heap, (3, 3), 120), Of::Sites(vec![0]));
    }
}
