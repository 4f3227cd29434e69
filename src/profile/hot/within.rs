//! Samples by the region that their thread was in, by a record of when each thread entered and left which.

use super::reads::{FunctionReads, Since};
use crate::module::ModuleAddress;
use crate::sample::Sample;
use std::collections::{BTreeMap, HashMap};

/// A time that a thread spent in a region, and in none inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// Nanoseconds of the clock of the samples, from.
    pub from: u64,
    /// To.
    pub to: u64,
    /// The region, by number.
    pub region: u32,
    /// A number of the thread.
    pub thread: u32,
}

/// When which thread was in which region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Within {
    /// By the kernel's number of the thread, in order of time.
    pub stays: HashMap<u32, Vec<Stay>>,
    /// Enclosing region, by region.
    pub around: Vec<Option<u32>>,
}

impl Within {
    /// Where a thread was at a time.
    fn at(&self, tid: u32, time: u64) -> Option<&Stay> {
        let of = self.stays.get(&tid)?;
        let stay = of.get(of.partition_point(|stay| stay.from <= time).checked_sub(1)?)?;
        (time < stay.to).then_some(stay)
    }

    /// A region and those around it.
    fn all(&self, region: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(region), |one| *self.around.get(*one as usize)?)
    }
}

/// The samples of a region, those of regions inside it included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RegionSamples {
    /// How many.
    pub samples: u64,
    /// By address; `None`: no mapping is known there.
    pub places: HashMap<Option<ModuleAddress>, u64>,
    /// Counts up to these samples; `same`: since a sample in the same region.
    pub reads: FunctionReads,
}

/// A region, and a thread or all.
pub type RegionKey = (u32, Option<u32>);

/// Samples by region.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ByRegion {
    /// By region and thread; `None`: of all threads.
    pub sums: BTreeMap<RegionKey, RegionSamples>,
    /// Where the last reading of each thread and group was.
    last: HashMap<(Option<u32>, Option<u64>), (u32, u32)>,
}

impl ByRegion {
    /// Adds a sample at a place, with what was counted until it.
    pub(super) fn add(
        &mut self,
        within: &Within,
        sample: &Sample,
        place: Option<ModuleAddress>,
        since: Option<&Since>,
    ) {
        let at = sample.tid.zip(sample.time).and_then(|(tid, time)| within.at(tid, time));
        let before = since.and_then(|since| match at {
            Some(stay) => self.last.insert(since.of, (stay.region, stay.thread)),
            None => self.last.remove(&since.of),
        });
        let Some(stay) = at else { return };
        let was_in = |region: u32| {
            before.is_some_and(|(last, of)| {
                of == stay.thread && within.all(last).any(|one| one == region)
            })
        };
        for region in within.all(stay.region) {
            for thread in [None, Some(stay.thread)] {
                let sum = self.sums.entry((region, thread)).or_default();
                sum.samples += 1;
                *sum.places.entry(place).or_default() += 1;
                if let Some(since) = since {
                    sum.reads.add(since, was_in(region));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: region 1 is inside region 0; a sample at the end of a stay is in none.
    #[test]
    fn a_sample_is_of_the_region_of_its_thread_and_of_those_around() {
        let stay = |from, to, region| Stay { from, to, region, thread: 3 };
        let stays = HashMap::from([(7, vec![stay(10, 20, 0), stay(22, 30, 1), stay(31, 40, 0)])]);
        let within = Within { stays, around: vec![None, Some(0)] };
        let mut all = ByRegion::default();
        for (tid, time) in [(7, 9), (7, 10), (7, 20), (7, 21), (7, 29), (7, 35), (8, 25), (7, 40)] {
            let mut sample = Sample::default();
            (sample.tid, sample.time) = (Some(tid), Some(time));
            all.add(&within, &sample, None, None);
        }
        let samples = |region, thread| all.sums.get(&(region, thread)).map(|sum| sum.samples);
        assert_eq!((samples(0, None), samples(1, None)), (Some(3), Some(1)));
        assert_eq!((samples(0, Some(3)), samples(1, Some(4))), (Some(3), None));
    }
}
