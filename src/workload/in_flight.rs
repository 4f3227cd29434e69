//! The number of cache misses a core can have in flight: independent walks in random order over
//! more memory than the caches hold. Each prefetches its next line, so that no load blocks later
//! instructions.
//!
//! With k walks at most k misses are in flight. Time per miss falls as 1 ÷ k until the core has no room for more, or
//! memory delivers no more.

use super::memory::{Pages, Region, allowance, largest_cache};
use crate::memory::cycle;
use std::arch::asm;
use std::time::Instant;
use tma::{Error, Result};

/// Numbers of walks. 16 to 64 miss buffers are usual (Intel's line fill buffers: 10 to 16, and 48 to 64 of the
/// second cache; Intel's optimization manual, 2024).
const WALKS: [usize; 18] = [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192];
/// Misses per run: some tenths of a millisecond, so that few runs are interrupted.
const MISSES: usize = 16_000;
/// Most steps per walk and run.
const STEPS: usize = 2_000;
/// Groups of rounds, whose difference is the error.
const GROUPS: usize = 3;
/// Rounds per group, of which the fastest counts: other programs only slow memory down.
const ROUNDS: usize = 20;
/// Least bytes walked over, and the multiple of the largest cache.
const LEAST: u64 = 256 << 20;
const CACHES: u64 = 4;
/// Bytes of a cache line (64 on x86).
const LINE: u64 = 64;

/// Time per miss by the number of misses in flight, for each group of rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InFlight {
    /// Bytes walked over.
    pub bytes: u64,
    /// Misses in flight and nanoseconds per miss, ascending.
    pub groups: Vec<Vec<(usize, f64)>>,
    /// The least nanoseconds per miss, on huge pages if available: the time of memory without walks
    /// of page tables, whose cost grows with a program's memory.
    pub fastest: f64,
}

/// Measures on pages of the system's size for large allocations.
///
/// # Errors
/// There is too little memory.
pub fn misses_in_flight() -> Result<InFlight> {
    let bytes = LEAST.max(CACHES * largest_cache().unwrap_or(0));
    if allowance().is_some_and(|free| free < bytes) {
        return Err(Error::not_possible("how many misses are in flight is not known").because(
            format!("{} MiB of memory are not free, which the caches do not hold", bytes >> 20),
        ));
    }
    let mut walks = Walks::new(bytes, Pages::Default)?;
    let groups: Vec<Vec<(usize, f64)>> = (0..GROUPS).map(|_| walks.group()).collect();
    drop(walks);
    let huge = Walks::new(bytes, Pages::Huge)?.group();
    let fastest = groups.iter().chain([&huge]).flatten().map(|(_, ns)| *ns);
    Ok(InFlight { bytes, fastest: fastest.fold(f64::INFINITY, f64::min), groups })
}

/// A ring of lines in random order, each with the number of the next, and the positions of walks.
struct Walks {
    region: Region,
    lines: u32,
    at: [u32; WALKS[WALKS.len() - 1]],
    random: fastrand::Rng,
}

impl Walks {
    fn new(bytes: u64, pages: Pages) -> Result<Self> {
        let lines = u32::try_from(bytes / LINE).unwrap_or(u32::MAX);
        let mut region = Region::new(u64::from(lines) * LINE, pages)?;
        let contents = region.contents();
        // In order, since the kernel fills pages when they are touched.
        for (line, next) in contents.chunks_exact_mut(LINE as usize).zip(cycle(lines)?) {
            line[..4].copy_from_slice(&next.to_ne_bytes());
        }
        let random = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
        Ok(Self { region, lines, at: [0; WALKS[WALKS.len() - 1]], random })
    }

    /// The fastest rounds by the number of walks, which are interleaved.
    fn group(&mut self) -> Vec<(usize, f64)> {
        let mut best = WALKS.map(|walks| (walks, f64::INFINITY));
        for _ in 0..ROUNDS {
            for (walks, least) in &mut best {
                *least = least.min(self.run(*walks));
            }
        }
        best.to_vec()
    }

    /// Nanoseconds per miss of a number of walks.
    fn run(&mut self, walks: usize) -> f64 {
        // Other places each time: lines of the last run may still be in a cache.
        for at in &mut self.at[..walks] {
            *at = self.random.u32(..self.lines);
        }
        let steps = (MISSES / walks).min(STEPS);
        let begin = Instant::now();
        // SAFETY: the numbers of lines are those of lines of the region, which lives, and `at` has so many.
        unsafe { walk(self.region.start(), &mut self.at[..walks], steps) };
        begin.elapsed().as_secs_f64() * 1e9 / (steps * walks) as f64
    }
}

/// Takes a step in each of the walks `at`, `steps` times.
///
/// # Safety
/// `at` is not empty, has numbers of lines from `start` on, and each line begins with such a number.
unsafe fn walk(start: *const u8, at: &mut [u32], steps: usize) {
    // SAFETY: loads of lines and of `at`, stores to that; a prefetch accesses nothing that a program could see.
    unsafe {
        asm!(
            "2:",
            "xor {walk:e}, {walk:e}",
            "3:",
            "mov {line:e}, [{at} + 4 * {walk}]",
            "shl {line}, 6",
            "mov {line:e}, [{start} + {line}]",
            "mov [{at} + 4 * {walk}], {line:e}",
            "shl {line}, 6",
            "prefetcht0 [{start} + {line}]",
            "inc {walk}",
            "cmp {walk}, {walks}",
            "jb 3b",
            "dec {steps}",
            "jnz 2b",
            walk = out(reg) _, line = out(reg) _, steps = inout(reg) steps.max(1) => _,
            walks = in(reg) at.len(), at = in(reg) at.as_mut_ptr(), start = in(reg) start,
            options(nostack)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step goes to another line, and misses in flight together take less time each.
    #[test]
    fn several_misses_at_a_time_take_less_time_each() {
        let mut walks = Walks::new(64 << 20, Pages::Default).unwrap();
        let next = walks.region.contents()[..4].try_into().map(u32::from_ne_bytes).unwrap();
        assert!(next > 0 && next < walks.lines);
        let times: Vec<(usize, f64)> = walks.group();
        let of = |walks: usize| times.iter().find(|(n, _)| *n == walks).unwrap().1;
        assert!(of(8) < of(1), "{times:?}");
    }
}
