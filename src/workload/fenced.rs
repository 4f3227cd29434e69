//! Latencies of single loads from each cache and from memory, timed between fences as in the
//! latency probe, for comparison with the loads of a program.

use super::memory::{Pages, Region};
use crate::command_line::parse_size;
use crate::memory::cycle;
use std::arch::asm;
use std::fs;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Timed loads per round.
const LOADS: usize = 1_000;
/// Rounds per level.
const ROUNDS: usize = 24;
/// Rounds that count: those with the least means, since other programs only evict lines.
const BEST_ROUNDS: usize = 8;
/// Bytes of a cache line (64 on x86).
const LINE: u64 = 64;
/// Passes over the memory before the timed one.
const PASSES: usize = 2;
/// Least size of a cache whose next level is shared by cores (as of 2026: 256 KiB to 3 MiB against
/// 48 KiB).
const SHARED: u64 = 256 << 10;
/// Least time over which the counter's rate is measured.
const RATE: Duration = Duration::from_millis(20);

/// Ticks of three successive measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Triple {
    /// Between the fences without a load.
    pub none: u32,
    /// With a load from the stack, which is in the first cache.
    pub near: u32,
    /// With a load from a known level.
    pub load: u32,
}

/// Latencies of loads of known levels.
#[derive(Debug, Clone, Default)]
pub struct Fenced {
    /// By level of the caches; memory is last, with the number 0.
    pub levels: Vec<(u8, Vec<Triple>)>,
    /// Ticks per nanosecond.
    pub ticks_per_ns: f64,
}

/// Times loads from all levels: by walks in random order over memory that a cache holds and the one
/// before it does not, and with flushed lines.
///
/// # Errors
/// The sizes of the caches are unknown, or memory cannot be mapped.
pub fn fenced_loads() -> Result<Fenced> {
    let begin = (Instant::now(), counter());
    let caches = caches();
    if caches.is_empty() {
        return Err(Error::not_possible("what loads take on this machine is not known").because(
            "the kernel reports no sizes of caches (/sys/devices/system/cpu/cpu0/cache)",
        ));
    }
    let mut found = Fenced::default();
    let mut largest = 0;
    for (number, (level, size)) in caches.iter().enumerate() {
        let before = number.checked_sub(1).map_or(0, |before| caches[before].1);
        largest = walked(*size, before);
        found.levels.push((*level, Walk::new(largest)?.rounds(false)));
    }
    found.levels.push((0, Walk::new(largest)?.rounds(true)));
    while begin.0.elapsed() < RATE {}
    let ticks = counter().wrapping_sub(begin.1) as f64;
    found.ticks_per_ns = ticks / begin.0.elapsed().as_nanos() as f64;
    Ok(found)
}

/// All measurements of the rounds with the least means.
fn best(mut rounds: Vec<Vec<Triple>>) -> Vec<Triple> {
    rounds.sort_by_key(|round| round.iter().map(|one| u64::from(one.load)).sum::<u64>());
    rounds.into_iter().take(BEST_ROUNDS).flatten().collect()
}

/// Bytes to walk over for a cache after one of `before` bytes: few enough for it to hold beside
/// other data, and too many for the one before. A walk in a ring of twice its size misses a cache.
fn walked(size: u64, before: u64) -> u64 {
    match before {
        0 => size / 3,
        // Other cores may use most of a shared cache.
        before if before >= SHARED => 2 * before,
        before => (2 * before).max(size / 4).min(size),
    }
}

/// The caches of the first processor that hold data, as the kernel reports them: level and bytes,
/// ascending.
pub fn caches() -> Vec<(u8, u64)> {
    let folder = fs::read_dir("/sys/devices/system/cpu/cpu0/cache");
    let mut all: Vec<(u8, u64)> = folder
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let read = |file: &str| fs::read_to_string(path.join(file)).ok();
            let holds_data = read("type")?.trim() != "Instruction";
            let level = read("level")?.trim().parse().ok()?;
            let size = parse_size(read("size")?.trim()).ok()?;
            holds_data.then_some((level, size))
        })
        .collect();
    all.sort_unstable();
    all.dedup_by_key(|(level, _)| *level);
    all
}

/// A walk over all lines of a region, in random order.
struct Walk {
    region: Region,
    next: Vec<u32>,
    at: u32,
}

impl Walk {
    fn new(bytes: u64) -> Result<Self> {
        let lines = u32::try_from((bytes / LINE).max(1)).unwrap_or(u32::MAX);
        let mut region = Region::new(u64::from(lines) * LINE, Pages::Default)?;
        region.contents().fill(1);
        Ok(Self { region, next: cycle(lines)?, at: 0 })
    }

    /// The next line.
    fn step(&mut self) -> *const u8 {
        self.at = self.next[self.at as usize];
        self.region.start().wrapping_byte_add(self.at as usize * LINE as usize)
    }

    /// Latencies of loads along the walk; `flushed` lines come from memory.
    fn rounds(mut self, flushed: bool) -> Vec<Triple> {
        (0..PASSES * self.next.len()).for_each(|_| self.pass());
        best((0..ROUNDS).map(|_| self.round(flushed)).collect())
    }

    /// Loads the next line.
    fn pass(&mut self) {
        let line = self.step();
        // SAFETY: a line of the region, which lives.
        unsafe { line.read_volatile() };
    }

    fn round(&mut self, flushed: bool) -> Vec<Triple> {
        // A short ring is walked once before, as others may have evicted it; in a long one only
        // some lines are timed, so that a round covers it.
        let others = (self.next.len() / LOADS).max(1) - 1;
        (0..self.next.len().min(LOADS)).for_each(|_| self.pass());
        let near = 0_u64;
        let time = |_| {
            (0..others).for_each(|_| self.pass());
            let line = self.step();
            if flushed {
                // SAFETY: as above; writing a line back changes no contents.
                unsafe { asm!("clflush [{}]", "mfence", in(reg) line, options(nostack)) };
            }
            let none = empty();
            // The first one gets the code into the cache, as in the probe.
            // SAFETY: 8 bytes of a local variable, and of the line.
            unsafe {
                timed(&raw const near);
                let near = timed(&raw const near);
                Triple { none, near, load: timed(line.cast()) }
            }
        };
        (0..LOADS).map(time).collect()
    }
}

/// Ticks of a load with its fences. Each `rdtsc` is between two fences, since it does not wait for
/// loads, nor loads for it.
///
/// # Safety
/// 8 bytes at `at` must be readable.
#[inline(never)]
unsafe fn timed(at: *const u64) -> u32 {
    let ticks;
    // SAFETY: one load, which the caller permits.
    unsafe {
        asm!(
            "lfence", "rdtsc", "lfence",
            "mov {begin:e}, eax",
            "mov {value}, [{at}]",
            "lfence", "rdtsc",
            "sub eax, {begin:e}",
            begin = out(reg) _, value = out(reg) _, at = in(reg) at,
            out("eax") ticks, out("edx") _,
            options(nostack, readonly)
        );
    }
    ticks
}

/// Ticks between the fences without a load.
#[inline(never)]
fn empty() -> u32 {
    let ticks;
    // SAFETY: reads the time-stamp counter only.
    unsafe {
        asm!(
            "lfence", "rdtsc", "lfence",
            "mov {begin:e}, eax",
            "lfence", "rdtsc",
            "sub eax, {begin:e}",
            begin = out(reg) _, out("eax") ticks, out("edx") _,
            options(nostack, nomem)
        );
    }
    ticks
}

/// The time-stamp counter.
fn counter() -> u64 {
    // SAFETY: reads the time-stamp counter only.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_fits_its_cache_and_not_the_one_before() {
        // A Zen 5 and a Golden Cove server: 48 KiB, 1 or 2 MiB, 32 or 105 MiB.
        for caches in [[48 << 10, 1 << 20, 32 << 20], [48 << 10, 2 << 20, 105 << 20]] {
            let mut before = 0;
            for size in caches {
                let bytes = walked(size, before);
                assert!(bytes <= size && bytes >= before * 2, "{bytes} of {size} after {before}");
                before = size;
            }
        }
    }

    #[test]
    fn memory_takes_longer_than_the_first_cache() {
        let Ok(found) = fenced_loads() else { return };
        let median = |all: &[Triple], of: fn(&Triple) -> u32| {
            let mut all: Vec<u32> = all.iter().map(of).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        let (first, memory) = (&found.levels[0], found.levels.last().unwrap());
        assert_eq!((first.0, memory.0), (1, 0));
        assert!(median(&memory.1, |t| t.load) > 2 * median(&memory.1, |t| t.near));
        assert!(median(&first.1, |t| t.near) >= median(&first.1, |t| t.none));
        assert!(found.ticks_per_ns > 0.1);
    }
}
