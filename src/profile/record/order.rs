//! Records in order of time, without all of them in memory.
//!
//! A first pass notes the earliest time of each block of records, so that a later pass knows how much of
//! what it has read comes before everything that follows. The order is that of sorting the whole
//! recording; what waits is what ring buffers that were read in turns put in disorder.

use super::kinds::Record;

/// Records in a block.
const BLOCK: usize = 256;

/// The earliest times of a recording's records, block by block.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// Of each block; after [`finish`](Self::finish), of it and all that follow.
    earliest: Vec<u64>,
    records: usize,
}

impl Bounds {
    /// Notes the time of the next record.
    pub fn note(&mut self, time: u64) {
        match self.earliest.last_mut() {
            Some(earliest) if !self.records.is_multiple_of(BLOCK) => {
                *earliest = time.min(*earliest);
            }
            _ => self.earliest.push(time),
        }
        self.records += 1;
    }

    /// After the last record.
    pub fn finish(mut self) -> Self {
        let mut least = u64::MAX;
        for earliest in self.earliest.iter_mut().rev() {
            least = least.min(*earliest);
            *earliest = least;
        }
        self
    }

    /// No record after the first `read` ones, a multiple of [`BLOCK`], is earlier.
    fn after(&self, read: usize) -> u64 {
        self.earliest.get(read / BLOCK).copied().unwrap_or(u64::MAX)
    }
}

/// Passes records on in order of time; those of the same time in the order they came.
#[derive(Debug)]
pub struct Sorter<'a> {
    bounds: &'a Bounds,
    /// Records of the recording so far, also those that are not passed on.
    read: usize,
    /// Records that wait, in the order they came but for a sorted beginning.
    waiting: Vec<(u64, Record)>,
    /// The earliest time among them.
    earliest: u64,
}

impl<'a> Sorter<'a> {
    /// For a recording with these bounds.
    pub fn new(bounds: &'a Bounds) -> Self {
        Self { bounds, read: 0, waiting: Vec::new(), earliest: u64::MAX }
    }

    /// The next record of the recording, `None` for one that is not passed on, and its time.
    pub fn take(&mut self, time: u64, record: Option<Record>, visit: &mut dyn FnMut(Record)) {
        if let Some(record) = record {
            self.waiting.push((time, record));
            self.earliest = self.earliest.min(time);
        }
        self.read += 1;
        if self.read.is_multiple_of(BLOCK) {
            let bound = self.bounds.after(self.read);
            if self.earliest <= bound {
                self.pass_on(bound, visit);
            }
        }
    }

    /// After the last record.
    pub fn finish(mut self, visit: &mut dyn FnMut(Record)) {
        self.pass_on(u64::MAX, visit);
    }

    fn pass_on(&mut self, bound: u64, visit: &mut dyn FnMut(Record)) {
        self.waiting.sort_by_key(|(time, _)| *time);
        let ready = self.waiting.partition_point(|(time, _)| *time <= bound);
        self.waiting.drain(..ready).for_each(|(_, record)| visit(record));
        self.earliest = self.waiting.first().map_or(u64::MAX, |(time, _)| *time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against sorting everything at once.
        #[test]
        fn the_order_is_that_of_a_stable_sort(times in prop::collection::vec(0_u64..50, 0..3000)) {
            let mut bounds = Bounds::default();
            times.iter().for_each(|time| bounds.note(*time));
            let bounds = bounds.finish();
            let mut found = Vec::new();
            let mut visit = |record: Record| {
                let Record::Lost { count } = record else { return };
                found.push(count);
            };
            let mut sorter = Sorter::new(&bounds);
            for (number, time) in times.iter().enumerate() {
                let record = Record::Lost { count: number as u64 };
                sorter.take(*time, Some(record), &mut visit);
            }
            sorter.finish(&mut visit);
            let mut sorted: Vec<u64> = (0..times.len() as u64).collect();
            sorted.sort_by_key(|number| times[*number as usize]);
            prop_assert_eq!(found, sorted);
        }

        /// Rounds of a few ring buffers: what waits is never more than a round and a block.
        #[test]
        fn little_waits_in_a_recording_of_rounds(rounds in 2_u64..30) {
            let times = (0..rounds)
                .flat_map(|round| (0..4).flat_map(move |_| (0..200).map(move |n| 200 * round + n)));
            let times: Vec<u64> = times.collect();
            let mut bounds = Bounds::default();
            times.iter().for_each(|time| bounds.note(*time));
            let bounds = bounds.finish();
            let mut sorter = Sorter::new(&bounds);
            for time in times {
                sorter.take(time, Some(Record::Throttled), &mut |_| {});
                prop_assert!(sorter.waiting.len() <= 800 + 2 * BLOCK);
            }
        }
    }
}
