//! Measures the latency of loads by the size of the memory: dependent loads along a chain of pointers in random
//! order, as in lmbench (McVoy and Staelin, "lmbench: Portable Tools for Performance Analysis", 1996); and two
//! loads that miss all caches, with instructions in between.

use super::super::memory::{Pages, Region, allowance, largest_cache};
use super::kernel::{Clock, Kernel};
use super::times::Curve;
use crate::memory::cycle;
use std::arch::asm;
use tma::{Error, Result};

/// Bytes of a line and of a small page.
const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// Least and most memory walked over, and the wanted multiple of the largest cache.
const SMALLEST: u64 = 4 << 10;
const LEAST: u64 = 256 << 20;
const MOST: u64 = 1 << 30;
const CACHES: u64 = 4;
/// Sizes per octave; fewer above the second size, which take long.
const STEPS: i32 = 4;
const COARSE: u64 = 8 << 20;
/// Loads per round of the loop, and per run in small and in large memory.
const LOADS: u64 = 32;
const RUN: u64 = 16_384;
const LARGE_RUN: u64 = 4_096;
/// Runs, of which the fastest counts.
const RUNS: usize = 9;
/// Largest memory that is walked over before; no cache would hold more.
const WARMED: u64 = 64 << 20;
/// Numbers of pages of which one line each is walked over: all lines fit a first cache, the most
/// pages exceed a first TLB.
const TRANSLATED: [u32; 8] = [16, 24, 32, 48, 64, 96, 128, 256];
/// Largest ratio of times if translations cost nothing.
const ALIKE: f64 = 1.15;
/// Lines flushed and walked over.
const FLUSHED: u32 = 2_048;
/// `mov rsi, [rsi]`
const LOAD: [u8; 3] = [0x48, 0x8b, 0x36];

/// Memory to walk over.
pub(super) struct Memory {
    region: Region,
    bytes: u64,
    random: fastrand::Rng,
    /// Links of its ring.
    links: Vec<u64>,
}

impl Memory {
    /// Maps several times the largest cache.
    ///
    /// # Errors
    /// There is too little free memory for any cache.
    pub fn new() -> Result<Self> {
        let wanted = (CACHES * largest_cache().unwrap_or(0)).clamp(LEAST, MOST);
        let bytes = allowance().map_or(wanted, |free| wanted.min(free / 2));
        if bytes < LEAST / 4 {
            return Err(Error::not_possible("the caches are not measured")
                .because("too little memory is free"));
        }
        let region = Region::new(bytes, Pages::Huge)?;
        let random = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
        Ok(Self { region, bytes, random, links: Vec::new() })
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes a ring of `lines` in random order, line `i` at byte `place(i)`.
    fn ring(&mut self, lines: u32, place: impl Fn(u64) -> u64) -> Result<()> {
        let start = self.region.start() as u64;
        let next = cycle(lines)?;
        self.links = (0..u64::from(lines)).map(&place).collect();
        let contents = self.region.contents();
        for (i, next) in next.iter().enumerate() {
            let at = self.links[i] as usize;
            let value = start + self.links[*next as usize];
            contents[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    }

    /// Makes a ring over all lines.
    ///
    /// # Errors
    /// There is no memory for the order.
    pub fn whole(&mut self) -> Result<()> {
        let lines = self.bytes / LINE;
        self.ring(u32::try_from(lines).unwrap_or(u32::MAX), |i| i * LINE)
    }

    /// A link of the ring.
    pub fn link(&mut self) -> *const u8 {
        let number = self.random.usize(..self.links.len().max(1));
        let at = self.links.get(number).copied().unwrap_or(0);
        self.region.start().wrapping_byte_add(at as usize)
    }

    /// Cycles per load in the ring, from another link each time.
    fn load(&mut self, clock: &Clock, walk: &Kernel, loads: u64) -> f64 {
        let least = clock.least(RUNS, || {
            let link = self.link();
            // SAFETY: every link of the ring is in the region, and each leads to another one.
            unsafe { walk.ticks(loads / LOADS, link, link) }
        });
        least.map_or(f64::INFINITY, |cycles| cycles / (loads / LOADS * LOADS) as f64)
    }

    /// Cycles per load by bytes walked over.
    ///
    /// # Errors
    /// There is no memory for the order, or none that is executable.
    pub fn walk(&mut self, clock: &Clock) -> Result<Curve> {
        let walk = Kernel::new(&LOAD.repeat(LOADS as usize))?;
        let mut curve = Curve::new();
        for bytes in sizes(self.bytes) {
            self.ring((bytes / LINE) as u32, |i| i * LINE)?;
            let loads = if bytes <= COARSE { RUN } else { LARGE_RUN };
            if bytes <= WARMED {
                let link = self.link();
                // SAFETY: as in `load`.
                unsafe { walk.ticks((bytes / LINE).div_ceil(LOADS), link, link) };
            }
            let cycles = self.load(clock, &walk, loads);
            curve.extend(cycles.is_finite().then_some((bytes as f64, cycles)));
        }
        Ok(curve)
    }

    /// Cycles per load of a flushed line: the latency of memory, independent of caches.
    pub fn flushed(&mut self, clock: &Clock) -> Result<Option<f64>> {
        // Each in its own page: no prefetcher follows, and a huge page holds 512.
        self.ring(FLUSHED, |i| i * PAGE + i % (PAGE / LINE) * LINE)?;
        let walk = Kernel::new(&LOAD.repeat(LOADS as usize))?;
        let least = clock.least(RUNS, || {
            for at in &self.links {
                let line = self.region.start().wrapping_byte_add(*at as usize);
                // SAFETY: a line of the region; writing it back changes no contents.
                unsafe { asm!("clflush [{}]", in(reg) line, options(nostack)) };
            }
            let link = self.region.start().wrapping_byte_add(self.links[0] as usize);
            // SAFETY: as in `load`; the fence waits for the flushes.
            unsafe {
                asm!("mfence", options(nostack));
                walk.ticks(u64::from(FLUSHED) / LOADS, link, link)
            }
        });
        Ok(least.map(|cycles| cycles / f64::from(FLUSHED)))
    }

    /// Bytes of the most pages of which one line each takes no longer than as many adjacent lines:
    /// their translations cost nothing. Infinite if that holds for the most pages tried: then one
    /// translation covers many, in a guest and in its host.
    pub fn reach(&mut self, clock: &Clock) -> Result<f64> {
        let walk = Kernel::new(&LOAD.repeat(LOADS as usize))?;
        let mut reach = 0.0;
        for pages in TRANSLATED {
            self.ring(pages, |i| i * LINE)?;
            let packed = self.load(clock, &walk, RUN);
            // At another line in each page, for different sets of the cache.
            self.ring(pages, |i| i * PAGE + i % (PAGE / LINE) * LINE)?;
            if self.load(clock, &walk, RUN) > ALIKE * packed {
                return Ok(reach);
            }
            reach = f64::from(pages) * PAGE as f64;
        }
        Ok(f64::INFINITY)
    }
}

/// Sizes to walk over, up to `most`.
fn sizes(most: u64) -> Vec<u64> {
    let fine = |n: i32| {
        (SMALLEST as f64 * f64::from(n).mul_add(1.0 / f64::from(STEPS), 0.0).exp2()) as u64
    };
    let all = (0..).map(|n| (n, fine(n) / LINE * LINE)).take_while(|(_, bytes)| *bytes <= most);
    all.filter(|(n, bytes)| *bytes <= COARSE || n % 2 == 0).map(|(_, bytes)| bytes).collect()
}

/// Fewest and most instructions in between; the most exceed every buffer (Lion Cove's: 576
/// entries).
const NARROWEST: usize = 24;
const WIDEST: usize = 1_200;
/// Rounds per run, of two misses each, and runs, of which the fastest counts.
const WINDOW_ROUNDS: u64 = 150;
const WINDOW_RUNS: usize = 4;
/// `mov rsi, [rsi]`, `mov rdx, [rdx]`
const MISSES: [[u8; 3]; 2] = [[0x48, 0x8b, 0x36], [0x48, 0x8b, 0x12]];

/// Instructions in between. Each kind is also limited by its registers, of which a core may have
/// fewer.
pub(super) const FILLERS: [&[&[u8]]; 3] = [
    // nop: only needs an entry, unless two share one
    &[&[0x90]],
    // add r8d, ecx, …: general registers
    &[&[0x41, 0x01, 0xc8], &[0x41, 0x01, 0xc9], &[0x41, 0x01, 0xca], &[0x41, 0x01, 0xcb]],
    // add r8d, ecx; pand xmm0, xmm4; add r9d, ecx; pand xmm1, xmm4: both kinds of registers
    &[
        &[0x41, 0x01, 0xc8],
        &[0x66, 0x0f, 0xdb, 0xc4],
        &[0x41, 0x01, 0xc9],
        &[0x66, 0x0f, 0xdb, 0xcc],
    ],
];

/// Cycles of two misses by the number of instructions in between, for each kind.
///
/// # Errors
/// There is no memory, or none that is executable.
///
/// The misses overlap while the reorder buffer holds these instructions (Henry Wong, "Measuring Reorder Buffer Capacity",
/// 2013).
pub(super) fn windows(clock: &Clock, memory: &mut Memory) -> Result<[Curve; 3]> {
    memory.whole()?;
    let mut curves = [const { Curve::new() }; 3];
    for (filler, curve) in FILLERS.iter().zip(&mut curves) {
        for between in widths() {
            let fill = || (0..between).flat_map(|i| filler[i % filler.len()].iter().copied());
            let body: Vec<u8> =
                MISSES.iter().flat_map(|load| load.iter().copied().chain(fill())).collect();
            let kernel = Kernel::new(&body)?;
            let least = clock.least(WINDOW_RUNS, || {
                let (one, other) = (memory.link(), memory.link());
                // SAFETY: both are links of a ring, each of which leads to another one.
                unsafe { kernel.ticks(WINDOW_ROUNDS, one, other) }
            });
            curve.extend(least.map(|cycles| (between as f64, cycles / WINDOW_ROUNDS as f64)));
        }
    }
    Ok(curves)
}

/// Numbers of instructions in between, a 32nd apart.
fn widths() -> Vec<usize> {
    let next = |n: &usize| Some(n + (n / 32).max(4));
    std::iter::successors(Some(NARROWEST), next).take_while(|n| *n <= WIDEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_a_fifth_and_later_by_two_fifths() {
        let all = sizes(256 << 20);
        assert_eq!((all[0], all[4], all.last()), (4 << 10, 8 << 10, Some(&(256 << 20))));
        assert!(all.contains(&(32 << 10)), "{all:?}");
        assert!(all.windows(2).all(|two| two[1] > two[0] && two[1] < two[0] * 3 / 2));
    }

    /// A ring is walked over as a whole: after as many loads as it has lines the first one comes again.
    #[test]
    fn a_ring_leads_back_to_its_first_line() {
        let mut memory = Memory::new().unwrap();
        memory.ring(100, |i| i * LINE).unwrap();
        let start = memory.region.start() as u64;
        let contents = memory.region.contents();
        let (mut at, mut seen) = (0_usize, 0);
        loop {
            let next = u64::from_ne_bytes(contents[at..at + 8].try_into().unwrap());
            (at, seen) = ((next - start) as usize, seen + 1);
            if at == 0 || seen > 100 {
                break;
            }
        }
        assert_eq!(seen, 100);
    }
}
