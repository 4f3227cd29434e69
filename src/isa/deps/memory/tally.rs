//! Counts, for each load, of the stores that it reads.

use super::machine::Observer;
use crate::deps::Overlap;

/// A store of the same or an earlier iteration that a load read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    writer: u32,
    delta: u32,
    /// Counts of [`Overlap::Full`], [`Overlap::Partial`] and [`Overlap::Blocked`].
    times: [u32; 3],
}

/// A dependency seen in most iterations of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Index of the loading access in the program.
    pub access: usize,
    /// Index of the storing instruction.
    pub writer: usize,
    /// Iterations from the store to the load.
    pub delta: u32,
    /// The most frequent overlap.
    pub overlap: Overlap,
}

/// The counts of one run.
#[derive(Debug, Default)]
pub struct Tally {
    /// Instructions per iteration.
    length: u32,
    /// Size of the reorder buffer: earlier stores have been written to the cache.
    window: u32,
    seen: Vec<Vec<Seen>>,
    /// Origins of each access's address, from the last iteration.
    pub origins: Vec<u64>,
    /// Each access's address in the [`PROBED`] iteration, and its change since the one before.
    pub probes: Vec<Probe>,
}

/// Where an access was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Probe {
    /// Its address.
    pub address: u64,
    /// Minus its address in the iteration before.
    pub stride: u64,
}

/// The iteration, from 0, whose addresses two runs compare.
pub const PROBED: u32 = 2;

impl Tally {
    /// Clears the counts, for a program with `accesses` accesses.
    pub fn reset(&mut self, length: usize, window: u32, accesses: usize) {
        (self.length, self.window) = (length as u32, window);
        self.seen.iter_mut().for_each(Vec::clear);
        self.seen.resize_with(accesses.max(self.seen.len()), Vec::new);
        self.origins.clear();
        self.origins.resize(accesses, 0);
        self.probes.clear();
        self.probes.resize(accesses, Probe::default());
    }

    /// The dependencies seen in at least half of the iterations in which they are possible.
    pub fn majority(&self, iterations: u32) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (access, all) in self.seen.iter().enumerate() {
            for seen in all {
                let times: u32 = seen.times.iter().sum();
                let possible = iterations.saturating_sub(seen.delta);
                if times > 0 && times * 2 >= possible {
                    candidates.push(Candidate {
                        access,
                        writer: seen.writer as usize,
                        delta: seen.delta,
                        overlap: most_frequent(seen.times),
                    });
                }
            }
        }
        candidates
    }
}

fn most_frequent([full, partial, blocked]: [u32; 3]) -> Overlap {
    if full >= partial && full >= blocked {
        Overlap::Full
    } else if partial >= blocked {
        Overlap::Partial
    } else {
        Overlap::Blocked
    }
}

impl Observer for Tally {
    fn loaded(&mut self, index: usize, step: u16, bytes: u32, writers: &[(u16, u32)]) {
        if writers.is_empty() || self.length == 0 {
            return;
        }
        let (window, length) = (self.window, self.length);
        let step = u32::from(step);
        let near = |writer: &&(u16, u32)| step - u32::from(writer.0) <= window;
        let stores = writers.iter().filter(near).count();
        for (writer, of) in writers.iter().filter(near) {
            let overlap = match stores {
                1 if *of == bytes => 0,
                1 => 1,
                _ => 2,
            };
            let writer = u32::from(*writer);
            let delta = step / length - writer / length;
            let writer = writer % length;
            let all = &mut self.seen[index];
            let seen = match all.iter_mut().position(|s| s.writer == writer && s.delta == delta) {
                Some(at) => &mut all[at],
                None => {
                    all.push(Seen { writer, delta, times: [0; 3] });
                    let last = all.len() - 1;
                    &mut all[last]
                }
            };
            seen.times[overlap] += 1;
        }
    }

    fn located(&mut self, index: usize, step: u16, address: u64, origins: u64) {
        self.origins[index] = origins;
        if self.length > 0 && u32::from(step) / self.length <= PROBED {
            let before = self.probes[index].address;
            self.probes[index] = Probe { address, stride: address.wrapping_sub(before) };
        }
    }
}
