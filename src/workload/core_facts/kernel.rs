//! Generated loops and their core cycles, with a chain of additions before and after them as the clock. Measures
//! with them the rates of loads, of stores, and of pairs of a store and a load that it is forwarded to; and the
//! speed of straight code by its length.

use super::super::memory::{Executable, Pages, Region};
use super::times::{Curve, Rates};
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::cell::Cell;
use tma::Result;

/// Bytes before the loop, which starts at a line.
const HEAD: usize = 64;
/// `dec rdi`, `jnz` to the loop, `ret`.
const DECREMENT: [u8; 3] = [0x48, 0xff, 0xcf];
const JUMP: [u8; 2] = [0x0f, 0x85];
const RETURN: u8 = 0xc3;
/// `nop`.
const NOP: u8 = 0x90;
/// `add rax, rcx`: a latency of one cycle on every x86-64 core (uops.info).
const ADD: [u8; 3] = [0x48, 0x01, 0xc8];
/// Additions in the clock's loop, and its rounds: some microseconds.
const ADDS: usize = 64;
const ROUNDS: u64 = 200;
/// Permitted difference of the clock before and after a run, and from the fastest recent one, which
/// decays by this share with each run.
const SAME_CLOCK: f64 = 0.02;
const FORGET: f64 = 0.9999;

/// A loop in memory. Its body may change `rax`, `rcx`, `rdx`, `rsi`, `r8` to `r11`, `xmm0` to
/// `xmm15` and the flags; `rsi` and `rdx` are parameters.
pub(super) struct Kernel(Executable);

impl Kernel {
    /// Generates a loop.
    pub fn new(body: &[u8]) -> Result<Self> {
        let mut code = vec![NOP; HEAD];
        code.extend(body);
        code.extend(DECREMENT);
        code.extend(JUMP);
        let back = HEAD as i64 - (code.len() as i64 + 4);
        code.extend((back as i32).to_le_bytes());
        code.push(RETURN);
        let mut region = Region::new(code.len() as u64, Pages::Default)?;
        region.contents()[..code.len()].copy_from_slice(&code);
        Ok(Self(region.executable()?))
    }

    /// Ticks of `rounds` (not 0) rounds.
    ///
    /// # Safety
    /// With these values of `rsi` and `rdx`, the body must only access valid memory.
    pub unsafe fn ticks(&self, rounds: u64, rsi: *const u8, rdx: *const u8) -> u64 {
        // SAFETY: the region holds a function of this type, written by `new`, which follows the
        // calling convention and ends after `rounds`; the caller guarantees the accesses of its
        // body.
        unsafe {
            let run: extern "sysv64" fn(u64, *const u8, *const u8) =
                std::mem::transmute(self.0.entry());
            _mm_lfence();
            let begin = _rdtsc();
            _mm_lfence();
            run(rounds.max(1), rsi, rdx);
            _mm_lfence();
            let end = _rdtsc();
            _mm_lfence();
            end.wrapping_sub(begin)
        }
    }
}

/// The core's clock.
pub(super) struct Clock {
    chain: Kernel,
    /// The fastest recent rate.
    best: Cell<f64>,
}

impl Clock {
    /// A clock.
    ///
    /// # Errors
    /// As [`Kernel::new`].
    pub fn new() -> Result<Self> {
        Ok(Self { chain: Kernel::new(&ADD.repeat(ADDS))?, best: Cell::new(0.0) })
    }

    /// Core cycles per tick now.
    fn rate(&self) -> f64 {
        // SAFETY: the body accesses no memory.
        let ticks =
            (0..3).map(|_| unsafe { self.chain.ticks(ROUNDS, std::ptr::null(), std::ptr::null()) });
        (ROUNDS as f64 * ADDS as f64) / ticks.min().unwrap_or(1).max(1) as f64
    }

    /// The least core cycles of `rounds` runs; `None` if the clock changed during all of them.
    pub fn least(&self, rounds: usize, mut ticks: impl FnMut() -> u64) -> Option<f64> {
        let one = |_| {
            let before = self.rate();
            let ticks = ticks() as f64;
            let after = self.rate();
            let now = before.max(after);
            // An interrupted chain makes the core seem slow, and the run fast: a slower clock is
            // accepted only after a while.
            let best = now.max(self.best.get() * FORGET);
            self.best.set(best);
            let is_same =
                (before / after - 1.0).abs() <= SAME_CLOCK && now >= best * (1.0 - SAME_CLOCK);
            is_same.then_some(ticks * now)
        };
        (0..rounds).filter_map(one).min_by(f64::total_cmp)
    }
}

/// Instructions per round, rounds per run, and runs, of which the fastest counts.
const BODY: usize = 48;
const RATE_ROUNDS: u64 = 400;
const RATE_RUNS: usize = 150;
/// Bytes of the memory, of which one line is used.
const BYTES: u64 = 4096;

/// Measures all rates.
pub(super) fn rates(clock: &Clock) -> Result<Rates> {
    let memory = Region::new(BYTES, Pages::Default)?;
    let at: *const u8 = memory.start();
    let cycles = |instruction: &dyn Fn(usize) -> Vec<u8>, each: usize| -> Result<Option<f64>> {
        let body: Vec<u8> = (0..BODY).flat_map(instruction).collect();
        let kernel = Kernel::new(&body)?;
        // SAFETY: the bodies below access a line at rsi and rdx, which is in the region.
        let least = clock.least(RATE_RUNS, || unsafe { kernel.ticks(RATE_ROUNDS, at, at) });
        Ok(least.map(|cycles| cycles / (RATE_ROUNDS * (BODY / each) as u64) as f64))
    };
    // mov r8..r11, [rsi + 0..56]; movups xmm0..xmm3, [rsi + 0..48]
    let load = |i: usize| vec![0x4c, 0x8b, 0x46 | (i as u8 % 4) << 3, i as u8 % 8 * 8];
    let vector = |i: usize| vec![0x0f, 0x10, 0x46 | (i as u8 % 4) << 3, i as u8 % 4 * 16];
    // mov [rsi + 0..56], rcx
    let store = |i: usize| vec![0x48, 0x89, 0x4e, i as u8 % 8 * 8];
    // mov [rsi + 8], rax; mov rax, [rsi + 8], and ds mov eax, [rsi + 12]
    let slot = |i: usize| vec![0x48, if i.is_multiple_of(2) { 0x89 } else { 0x8b }, 0x46, 8];
    let half = |i: usize| if i.is_multiple_of(2) { slot(0) } else { vec![0x3e, 0x8b, 0x46, 12] };
    let (first, second) = (cycles(&load, 1)?, cycles(&vector, 1)?);
    Ok(Rates {
        load: [first, second].into_iter().flatten().min_by(f64::total_cmp),
        store: cycles(&store, 1)?,
        slot: cycles(&slot, 2)?,
        half: cycles(&half, 2)?,
    })
}

/// Fewest and most instructions, and lengths in an octave.
const FEWEST: f64 = 192.0;
const MOST: f64 = 24_576.0;
const STEPS: f64 = 6.0;
/// Least instructions per run, and runs, of which the fastest counts.
const CODE_RUN: usize = 60_000;
const CODE_RUNS: usize = 9;

/// Four instructions of four bytes and one slot on different units, and four on other registers, so
/// that none waits for the one before: `ds add r8d, ecx`, `ds mov r9, [rsi]`, `ds ds xor eax, eax`,
/// `pand xmm0, xmm4`
const SHORT: [&[u8]; 8] = [
    &[0x3e, 0x41, 0x01, 0xc8],
    &[0x3e, 0x4c, 0x8b, 0x0e],
    &[0x3e, 0x3e, 0x31, 0xc0],
    &[0x66, 0x0f, 0xdb, 0xc4],
    &[0x3e, 0x41, 0x01, 0xca],
    &[0x3e, 0x4c, 0x8b, 0x1e],
    &[0x3e, 0x3e, 0x31, 0xd2],
    &[0x66, 0x0f, 0xdb, 0xcc],
];
/// Additional prefixes without effect, for instructions of six bytes. No constants, of which lines
/// of some op caches hold fewer.
const LONGER: [u8; 2] = [0x3e; 2];

/// Cycles per instruction by the number of instructions, for short and for long ones.
///
/// # Errors
/// There is no memory, or none that is executable.
///
/// Beyond the op cache it comes from the decoders, beyond the instruction cache from the second cache (Agner Fog, "The
/// microarchitecture of Intel, AMD and VIA CPUs"; uops.info and Chips and Cheese measure op caches so).
pub(super) fn code(clock: &Clock) -> Result<(Curve, Curve)> {
    let memory = Region::new(4096, Pages::Default)?;
    let at: *const u8 = memory.start();
    let curve = |prefixes: &[u8]| -> Result<Curve> {
        let mut curve = Curve::new();
        for count in lengths() {
            let one = |i: usize| prefixes.iter().chain(SHORT[i % 8]).copied();
            let body: Vec<u8> = (0..count).flat_map(one).collect();
            let kernel = Kernel::new(&body)?;
            let rounds = CODE_RUN.div_ceil(count).max(3);
            // SAFETY: the instructions load 8 bytes at rsi, which is in the region.
            let run = || unsafe { kernel.ticks(rounds as u64, at, at) };
            run();
            let least = clock.least(CODE_RUNS, run);
            curve.extend(least.map(|cycles| (count as f64, cycles / (rounds * count) as f64)));
        }
        Ok(curve)
    };
    Ok((curve(&[])?, curve(&LONGER)?))
}

/// Numbers of instructions, in groups of eight.
fn lengths() -> Vec<usize> {
    let octaves = (MOST / FEWEST).log2();
    let size = |n: usize| (FEWEST * (n as f64 / STEPS).exp2()) as usize / 8 * 8;
    (0..=(octaves * STEPS) as usize).map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `add rax, rcx` takes a cycle of this clock; a 64-bit multiplication three on Intel's cores
    /// since Nehalem and on every Zen, and never less than two.
    #[test]
    fn the_clock_tells_a_cycle_from_several() {
        let clock = Clock::new().unwrap();
        let cycles = |body: &[u8]| {
            let kernel = Kernel::new(&body.repeat(64)).unwrap();
            // SAFETY: registers only.
            let run = || unsafe { kernel.ticks(500, std::ptr::null(), std::ptr::null()) };
            Some(clock.least(40, run)? / (500.0 * 64.0))
        };
        // On a busy machine the clock may give no result.
        let (Some(add), Some(multiply)) = (cycles(&ADD), cycles(&[0x48, 0x0f, 0xaf, 0xc1])) else {
            return;
        };
        assert!(add > 0.5, "{add}");
        // imul rax, rcx
        assert!(multiply > 1.5 * add, "{multiply} {add}");
    }

    #[test]
    fn instructions_have_the_length_they_are_named_by() {
        assert!(SHORT.iter().all(|i| i.len() == 4 && i.len() + LONGER.len() == 6));
        let all = lengths();
        assert_eq!((all[0], all.last()), (192, Some(&24_576)));
        assert!(all.windows(2).all(|two| two[0] < two[1]));
    }
}
