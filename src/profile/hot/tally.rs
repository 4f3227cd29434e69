//! Sums of samples, per address, process and function, and how exact a share of them is.

use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::files::Gap;
use crate::sample::Sample;
use crate::symbols::Symbols;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Number and weight of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Their number.
    pub samples: u64,
    /// The sum of their periods, or their number if they have none.
    pub weight: f64,
    /// The sum of the squares of their periods.
    pub squares: f64,
}

impl Tally {
    /// That of one sample.
    pub(super) fn of(sample: &Sample) -> Self {
        let weight = sample.period.map_or(1.0, |period| period as f64);
        Self { samples: 1, weight, squares: weight * weight }
    }

    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight += other.weight;
        self.squares += other.squares;
    }

    /// Number of samples of equal weight that give the same error (L. Kish, *Survey Sampling*, 1965, §8.2).
    pub fn effective(&self) -> f64 {
        if self.squares > 0.0 { self.weight * self.weight / self.squares } else { 0.0 }
    }
}

/// Half width of the 95 % interval of a share of `samples` independent samples: Wilson's (JASA 22, 1927), which is
/// not 0 where no or all samples are in it.
pub fn half_width(share: f64, samples: f64) -> f64 {
    const Z: f64 = 1.96;
    if samples <= 0.0 {
        return 1.0;
    }
    let share = share.clamp(0.0, 1.0);
    let spread = share * (1.0 - share) / samples + Z * Z / (4.0 * samples * samples);
    Z * spread.sqrt() / (1.0 + Z * Z / samples)
}

/// Cached addresses in memory, a power of two.
const AT_HAND: usize = 1 << 12;

/// Sums by address; `None`: no mapping is known there.
#[derive(Debug, Default)]
pub struct Places {
    sums: Vec<(Option<ModuleAddress>, Tally)>,
    /// Positions in `sums`.
    numbers: HashMap<Option<ModuleAddress>, usize>,
    /// Addresses in memory, by some of their bits; empty, or [`AT_HAND`] long.
    at_hand: Vec<Option<(Key, usize)>>,
}

/// Key of the mapping at a sample: process, address, mode.
type Key = (u32, u64, Option<bool>);

impl Places {
    /// Adds a sample, and returns its address.
    pub fn add(
        &mut self,
        sample: &Sample,
        tally: Tally,
        spaces: &mut AddressSpaces,
    ) -> Option<ModuleAddress> {
        let number = match sample.ip {
            Some(ip) => self.find((sample.pid.unwrap_or(u32::MAX), ip, sample.user), spaces),
            None => self.number(None),
        };
        let (place, sum) = &mut self.sums[number];
        sum.add(tally);
        *place
    }

    /// To be called when mappings change.
    pub fn forget(&mut self) {
        self.at_hand.clear();
    }

    /// The sums.
    pub fn into_sums(self) -> Vec<(Option<ModuleAddress>, Tally)> {
        self.sums
    }

    fn find(&mut self, key: Key, spaces: &mut AddressSpaces) -> usize {
        let (pid, ip, user) = key;
        let slot = (ip ^ ip >> 12 ^ u64::from(pid)) as usize % AT_HAND;
        if let Some(Some((known, number))) = self.at_hand.get(slot)
            && *known == key
        {
            return *number;
        }
        let number = self.number(spaces.resolve(pid, ip, user));
        self.at_hand.resize(AT_HAND, None);
        self.at_hand[slot] = Some((key, number));
        number
    }

    fn number(&mut self, place: Option<ModuleAddress>) -> usize {
        let sums = &mut self.sums;
        *self.numbers.entry(place).or_insert_with(|| {
            sums.push((place, Tally::default()));
            sums.len() - 1
        })
    }
}

/// A process, by its samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Busiest {
    /// Its number.
    pub pid: u32,
    /// The last name of its first thread; empty if unknown.
    pub name: String,
    /// Share of the samples.
    pub share: f64,
}

#[derive(Debug, Default)]
pub(super) struct Processes(FxHashMap<u32, f64>);

impl Processes {
    /// Adds a sample with this weight.
    pub fn add(&mut self, pid: u32, weight: f64) {
        *self.0.entry(pid).or_default() += weight;
    }

    /// The one that has most, without the idle task.
    pub fn busiest(&self, spaces: &AddressSpaces) -> Option<Busiest> {
        let all: f64 = self.0.values().sum();
        let busy = self.0.iter().filter(|(pid, _)| **pid != 0);
        // Ties go to the lowest pid, whatever the order of the map.
        let (pid, own) = busy.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)))?;
        let name = spaces.thread_name(*pid, *pid).unwrap_or_default().to_owned();
        Some(Busiest { pid: *pid, name, share: own / all })
    }
}

/// A function with samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HotFunction {
    /// Demangled name.
    pub name: String,
    /// The name without parameters and return type.
    pub short: String,
    /// Name of its module.
    pub module: String,
    /// Path of its module.
    pub path: String,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Number of samples.
    pub samples: u64,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line of its first instruction.
    pub line: Option<u32>,
    /// Its line with most samples, where that was looked up.
    pub hottest: Option<HotLine>,
    /// First address (p_vaddr).
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The reason why its code cannot be shown.
    pub gap: Option<Gap>,
}

/// A source line, and the function it was inlined from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotLine {
    /// Source file.
    pub file: String,
    /// Line in `file`.
    pub line: u32,
    /// Inlined function that it belongs to; `None` if not inlined.
    pub inlined: Option<String>,
}

/// Identity of a function: its module and start address; [`u64::MAX`] for addresses of a module outside any function.
pub type FunctionKey = (usize, u64);

/// The key of samples outside of all mappings.
pub(super) const UNMAPPED: FunctionKey = (usize::MAX, 0);
/// In place of a start address: no function is known.
pub(super) const NO_FUNCTION: u64 = u64::MAX;

pub(super) fn key_at(
    place: Option<ModuleAddress>,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> FunctionKey {
    let Some(place) = place else { return UNMAPPED };
    let module = &spaces.modules.all[place.module];
    let function = symbols.function_at(module, place.address);
    (place.module, function.map_or(NO_FUNCTION, |function| function.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SearchPaths;
    use crate::record::Record;

    #[test]
    fn the_idle_task_is_no_process() {
        let mut spaces = AddressSpaces::new(SearchPaths::default(), &[]);
        let mut processes = Processes::default();
        assert_eq!(processes.busiest(&spaces), None);
        processes.add(0, 6.0);
        assert_eq!(processes.busiest(&spaces), None);
        let name = "work".to_owned();
        spaces.apply(&Record::Name { pid: 7, tid: 7, name, exec: true, time: None });
        for (pid, weight) in [(7, 2.0), (8, 1.0), (7, 1.0)] {
            processes.add(pid, weight);
        }
        let found = Busiest { pid: 7, name: "work".to_owned(), share: 0.3 };
        assert_eq!(processes.busiest(&spaces), Some(found));
    }
}
