//! Records in order of time, without all of them in memory.
//!
//! A first pass notes the earliest time of each block of records, so that a later pass knows how much of the records
//! read so far comes before everything that follows. The order is that of sorting the whole recording; records wait
//! only where ring buffers read in sequence put them in disorder.

use pmu::records::raw::Header;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Records in a block.
const BLOCK: usize = 256;
/// Most bytes of waiting records: two rounds of 256 ring buffers of perf's usual size (512 KiB). Only files crafted to
/// need more exceed it; their order is lost.
const MOST_WAITING: usize = 256 << 20;

/// The earliest times of a recording's records, block by block.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// Earliest time of each block; after [`finish`](Self::finish), of the block and all that follow.
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
///
/// Records wait as the kernel wrote them, which takes less memory than what they are decoded to.
#[derive(Debug)]
pub struct Sorter<'a> {
    bounds: &'a Bounds,
    /// Records of the recording so far, also those that are not passed on.
    read: usize,
    /// The records of the block that is read, and …
    block: Vec<Placed>,
    /// … their bodies.
    bodies: Vec<u8>,
    /// Records of earlier blocks that some record of a later one may come before.
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Bytes of `waiting`, and how many it may have.
    held: usize,
    most: usize,
    /// Time of the last one passed on.
    last: u64,
    /// Records passed on after later ones, because too many would have waited.
    late: u64,
}

/// A record of the block that is read.
#[derive(Debug)]
struct Placed {
    time: u64,
    kind: u32,
    misc: u16,
    body: Range<usize>,
}

/// A record of an earlier block; the earliest first, of one time the first in the file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    time: u64,
    number: usize,
    kind: u32,
    misc: u16,
    body: Box<[u8]>,
}

impl Waiting {
    /// Bytes that it takes, with those that an allocation takes.
    fn size(&self) -> usize {
        size_of::<Self>() + 16 + self.body.len()
    }
}

impl<'a> Sorter<'a> {
    /// For a recording with these bounds.
    pub fn new(bounds: &'a Bounds) -> Self {
        Self {
            bounds,
            read: 0,
            block: Vec::new(),
            bodies: Vec::new(),
            waiting: BinaryHeap::new(),
            held: 0,
            most: MOST_WAITING,
            last: 0,
            late: 0,
        }
    }

    /// The next record of the recording, `None` for one that is not passed on, and its time.
    pub fn take(
        &mut self,
        time: u64,
        record: Option<&Header<'_>>,
        visit: &mut dyn FnMut(&Header<'_>),
    ) {
        if let Some(Header { kind, misc, body }) = record {
            let start = self.bodies.len();
            self.bodies.extend_from_slice(body);
            let body = start..self.bodies.len();
            self.block.push(Placed { time, kind: *kind, misc: *misc, body });
        }
        self.read += 1;
        if self.read.is_multiple_of(BLOCK) {
            self.end_block(self.bounds.after(self.read), visit);
        }
    }

    /// After the last record. Returns how many were passed on after later ones.
    pub fn finish(mut self, visit: &mut dyn FnMut(&Header<'_>)) -> u64 {
        self.end_block(u64::MAX, visit);
        self.late
    }

    /// After a block: no later record is earlier than `bound`.
    fn end_block(&mut self, bound: u64, visit: &mut dyn FnMut(&Header<'_>)) {
        let mut block = std::mem::take(&mut self.block);
        block.sort_by_key(|one| one.time);
        let bodies = std::mem::take(&mut self.bodies);
        for (number, Placed { time, kind, misc, body }) in block.drain(..).enumerate() {
            let body = &bodies[body];
            if time <= bound {
                self.pass_on(time, visit);
                self.passes(time);
                visit(&Header { kind, misc, body });
            } else {
                let number = self.read + number;
                let waiting = Waiting { time, number, kind, misc, body: body.into() };
                self.held += waiting.size();
                self.waiting.push(Reverse(waiting));
            }
        }
        self.pass_on(bound, visit);
        (self.block, self.bodies) = (block, bodies);
        self.bodies.clear();
        while self.held > self.most {
            let Some(Reverse(first)) = self.waiting.peek() else { break };
            self.pass_on(first.time, visit);
        }
    }

    /// Passes on what waits up to a time.
    fn pass_on(&mut self, until: u64, visit: &mut dyn FnMut(&Header<'_>)) {
        while self.waiting.peek().is_some_and(|Reverse(first)| first.time <= until) {
            let Some(Reverse(first)) = self.waiting.pop() else { break };
            self.held -= first.size();
            self.passes(first.time);
            visit(&Header { kind: first.kind, misc: first.misc, body: &first.body });
        }
    }

    fn passes(&mut self, time: u64) {
        self.late += u64::from(time < self.last);
        self.last = self.last.max(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bounds(times: &[u64]) -> Bounds {
        let mut bounds = Bounds::default();
        times.iter().for_each(|time| bounds.note(*time));
        bounds.finish()
    }

    /// The numbers of the records in the order they are passed on, and how many are late.
    fn sorted(times: &[u64], most: usize) -> (Vec<u64>, u64) {
        let bounds = bounds(times);
        let mut found = Vec::new();
        let mut visit = |record: &Header<'_>| {
            found.push(u64::from_le_bytes(record.body.try_into().unwrap()));
        };
        let mut sorter = Sorter { most, ..Sorter::new(&bounds) };
        for (number, time) in times.iter().enumerate() {
            let body = (number as u64).to_le_bytes();
            let record = Header { kind: 9, misc: 0, body: &body };
            sorter.take(*time, Some(&record), &mut visit);
            assert!(sorter.held <= most);
        }
        let late = sorter.finish(&mut visit);
        (found, late)
    }

    proptest! {
        /// Against sorting everything at once.
        #[test]
        fn the_order_is_that_of_a_stable_sort(times in prop::collection::vec(0_u64..50, 0..3000)) {
            let (found, late) = sorted(&times, MOST_WAITING);
            let mut expected: Vec<u64> = (0..times.len() as u64).collect();
            expected.sort_by_key(|number| times[*number as usize]);
            prop_assert_eq!(found, expected);
            prop_assert_eq!(late, 0);
        }

        /// Rounds of a few ring buffers: what waits is never more than a round and a block.
        #[test]
        fn little_waits_in_a_recording_of_rounds(rounds in 2_u64..30) {
            let times = (0..rounds)
                .flat_map(|round| (0..4).flat_map(move |_| (0..200).map(move |n| 200 * round + n)));
            let times: Vec<u64> = times.collect();
            let bounds = bounds(&times);
            let mut sorter = Sorter::new(&bounds);
            for time in times {
                let record = Header { kind: 9, misc: 0, body: &[] };
                sorter.take(time, Some(&record), &mut |_| {});
                prop_assert!(sorter.waiting.len() <= 800 + 2 * BLOCK);
            }
        }
    }

    #[test]
    fn what_waits_has_a_limit_and_what_comes_late_is_counted() {
        let times: Vec<u64> = (0..10_000).rev().collect();
        let (found, late) = sorted(&times, 100_000);
        assert_eq!(found.len(), times.len(), "none is lost");
        // Each block is sorted; all but the first records come late.
        assert!(late > 8000, "{late}");
    }
}
