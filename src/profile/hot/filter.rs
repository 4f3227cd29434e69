//! Filters the samples of a recording, and tells how exact their addresses are and in which region their thread
//! was.

use super::reads::{FunctionReads, Since};
use crate::event::Event;
use crate::module::ModuleAddress;
use crate::recording::About;
use crate::sample::Sample;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Threads as a user names them: a name, which may consist of digits, or the number of a thread or process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadWord {
    /// As written.
    pub name: String,
    /// The number that it may be.
    pub number: Option<u32>,
}

impl From<&str> for ThreadWord {
    fn from(word: &str) -> Self {
        Self { name: word.to_owned(), number: word.parse().ok() }
    }
}

/// Which samples count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Index of the event; the first that has samples if `None`.
    pub event: Option<usize>,
    /// Threads and processes; all if empty.
    pub threads: Vec<ThreadWord>,
    /// Nanoseconds since the first sample, from and to.
    pub time: Option<(u64, u64)>,
    /// Whether call chains are read: only callers and folded stacks need them, and they take most of
    /// the time.
    pub chains: bool,
    /// Whether to tell how and where samples in the kernel entered it, which their call chains show.
    pub entries: bool,
    /// Whether to store the time of each sample.
    pub timeline: bool,
    /// Leave inlined functions out of call chains: to find them, the debug information of all code in chains is
    /// read.
    pub omit_inlined: bool,
    /// When threads were in which regions: samples are summed by region, too.
    pub regions: Option<Arc<Within>>,
}

impl Filter {
    /// Index of the event whose samples count.
    pub fn event_of(&self, recording: &About) -> usize {
        self.event.unwrap_or_else(|| recording.main_event())
    }
}

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

/// How exact the addresses of samples are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skid {
    /// Exact: the instruction that caused the event.
    None,
    /// The instruction that caused the event, or one a few after it.
    #[default]
    Some,
    /// The point where the timer interrupt was taken: often the instruction after a slow one.
    Timer,
}

impl Skid {
    /// The skid of an event's samples.
    pub fn of(event: &Event) -> Self {
        // PERF_TYPE_SOFTWARE: clocks (0 and 1) are sampled in a timer interrupt; faults and
        // switches are synchronous.
        match (event.kind, event.config, event.precise) {
            (1, 0 | 1, _) => Self::Timer,
            (1 | 2 | 5, ..) | (_, _, 3) => Self::None,
            _ => Self::Some,
        }
    }

    /// The note of a report.
    pub fn explain(self) -> &'static str {
        match self {
            Self::None => "samples are on the instruction itself",
            Self::Some => "skid: the instruction that caused the event, or one a few after it",
            Self::Timer => "skid: usually the instruction after the stalled one",
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
