//! Collects times, threads and call chains of samples while they are read.

use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::sample::Sample;
use std::collections::HashMap;

/// Most samples stored; of longer recordings every second one, every fourth, and so on.
const MOST: usize = 1 << 20;

/// A thread with samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimedThread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Its last name; empty if unknown.
    pub name: String,
    /// The name of its process likewise.
    pub process: String,
}

/// When a sample was taken, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimedSample {
    /// Nanoseconds since the first sample.
    pub time: u64,
    /// Number of its thread.
    pub thread: u32,
    /// Number of its call chain.
    pub stack: u32,
}

/// Samples while they are read.
#[derive(Debug)]
pub(super) struct Moments {
    pub threads: Vec<TimedThread>,
    numbers: HashMap<(u32, u32), u32>,
    pub stacks: HashMap<Vec<Option<ModuleAddress>>, u32>,
    pub samples: Vec<TimedSample>,
    most: usize,
    /// How many samples each of them stands for.
    pub every: u32,
    /// Samples since the last stored one.
    since: u32,
}

impl Default for Moments {
    fn default() -> Self {
        Self::at_most(MOST)
    }
}

impl Moments {
    fn at_most(most: usize) -> Self {
        Self {
            threads: Vec::new(),
            numbers: HashMap::new(),
            stacks: HashMap::new(),
            samples: Vec::new(),
            most,
            every: 1,
            since: 0,
        }
    }

    /// Adds a sample with its call chain, the innermost place first; one without time is left out.
    pub(super) fn add(
        &mut self,
        sample: &Sample,
        chain: Vec<Option<ModuleAddress>>,
        spaces: &AddressSpaces,
    ) {
        let Some(time) = sample.time else { return };
        self.since += 1;
        if self.since < self.every {
            return;
        }
        self.since = 0;
        let (pid, tid) = (sample.pid.unwrap_or_default(), sample.tid.unwrap_or_default());
        let thread = *self.numbers.entry((pid, tid)).or_insert_with(|| {
            self.threads.push(TimedThread { pid, tid, ..TimedThread::default() });
            self.threads.len() as u32 - 1
        });
        let name = |tid| spaces.thread_name(pid, tid).unwrap_or_default();
        let of = &mut self.threads[thread as usize];
        for (kept, now) in [(&mut of.name, name(tid)), (&mut of.process, name(pid))] {
            if kept != now && !now.is_empty() {
                now.clone_into(kept);
            }
        }
        let next = self.stacks.len() as u32;
        let stack = *self.stacks.entry(chain).or_insert(next);
        self.samples.push(TimedSample { time, thread, stack });
        if self.samples.len() >= self.most {
            self.thin_out();
        }
    }

    /// Drops every second sample.
    fn thin_out(&mut self) {
        let mut number = 0_usize;
        self.samples.retain(|_| {
            number += 1;
            number.is_multiple_of(2)
        });
        self.every = self.every.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SearchPaths;

    #[test]
    fn a_long_recording_keeps_samples_of_all_its_time() {
        let spaces = AddressSpaces::new(SearchPaths::default(), &[]);
        let mut moments = Moments::at_most(100);
        for time in 0..1000 {
            let mut sample = Sample::default();
            (sample.time, sample.tid) = (Some(time), Some(7));
            moments.add(&sample, vec![None], &spaces);
        }
        let kept = moments.samples.len() as u64 * u64::from(moments.every);
        // None of the later half is missing more than one stride at its ends.
        assert!(moments.samples.len() < 100 && kept.abs_diff(1000) <= u64::from(moments.every));
        let gaps = moments.samples.windows(2).map(|pair| pair[1].time - pair[0].time);
        assert_eq!(gaps.max(), Some(u64::from(moments.every)), "evenly");
        assert_eq!(moments.threads.len(), 1);
    }
}
